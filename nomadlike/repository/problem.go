package repository

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// problem is why a repository could not be fetched, by what git said. What it said comes
// from a server as well: it is shown in one line, and believed for nothing else than
// which text is shown.
func (g *git) problem(ctx context.Context, asked asked, cause error, said string) error {
	refuse := func(code structs.ErrorCode, id string, params ...any) error {
		return structs.NewError(code, id, append([]any{"source", asked.source, "ref", asked.ref}, params...)...)
	}
	has := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(said, text) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(cause, errSilent):
		return refuse(structs.CodeUnavailable, "git.silent", "span", structs.FormatDuration(structs.Duration(asked.options.patience())))
	case errors.Is(cause, errLarge):
		return refuse(structs.CodeTooLarge, "git.too_large", "max", structs.FormatSize(asked.options.most()))
	case has("couldn't find remote ref"):
		return g.unknownRef(ctx, asked)
	case has("not our ref", "unadvertised object"):
		return refuse(structs.CodeNotFound, "git.commit_unknown")
	case has("Could not resolve", "Couldn't resolve", "unable to look up", "Connection refused", "unable to connect", "Failed to connect", "Couldn't connect",
		"No route to host", "Network is unreachable", "timed out"):
		return refuse(structs.CodeUnavailable, "git.unreachable", "said", printed(said))
	case has("Host key verification failed"):
		return refuse(structs.CodeUnavailable, "git.host_key", "said", printed(said))
	case has("Authentication failed", "could not read Username", "could not read Password", "terminal prompts disabled", "Permission denied",
		"returned error: 401", "returned error: 403", "access denied", "Access denied", "not found", "does not appear to be a git repository",
		"Could not read from remote repository", "not exported"):
		return refuse(structs.CodeUnavailable, "git.no_access", "said", printed(said))
	}
	return refuse(structs.CodeUnavailable, "git.failed", "said", printed(said))
}

// refsMax bounds what a server may say of its branches and tags.
const refsMax = 4 << 20 // bytes

// unknownRef names the branch or tag that was meant, where there is one that is near.
func (g *git) unknownRef(ctx context.Context, asked asked) error {
	unknown := structs.NewError(structs.CodeNotFound, "git.ref_unknown", "source", asked.source, "ref", asked.ref)
	ctx, cancel := context.WithTimeout(ctx, asked.options.patience())
	defer cancel()
	command := g.command(ctx, "ls-remote", "--quiet", "--refs", "--heads", "--tags", "--", asked.source)
	out, err := command.StdoutPipe()
	if err != nil || command.Start() != nil {
		return unknown
	}
	text, err := io.ReadAll(io.LimitReader(out, refsMax))
	cancel()
	_ = command.Wait() // it may have been cut off: what it said is enough
	if err != nil && len(text) == 0 {
		return unknown
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		_, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		_, name, found := strings.Cut(strings.TrimPrefix(ref, "refs/"), "/")
		if found && utf8.ValidString(name) {
			names = append(names, name)
		}
	}
	if near := structs.Nearest(asked.ref, names); near != "" {
		return structs.NewError(structs.CodeNotFound, "git.ref_near", "source", asked.source, "ref", asked.ref, "suggestion", printed(near))
	}
	return unknown
}

// saidMax is how much of what git said is shown.
const saidMax = 300 // bytes

var credentials = regexp.MustCompile(`://[^/\s]*@`)

// printed is the end of what git said in one line that harms no terminal, without what
// may be a password.
func printed(said string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(said, "\r", "\n"), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "% (") { // of its progress
			lines = append(lines, line)
		}
	}
	text := credentials.ReplaceAllString(strings.Join(lines[max(0, len(lines)-3):], " | "), "://")
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) > saidMax {
		text = strings.ToValidUTF8(text[:saidMax], "") + "…"
	}
	return text
}
