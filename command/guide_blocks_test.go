package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"nomadlike/internal/messages"
)

// What stands behind the opening ``` of a block of the guides, the language first.
// Blocks of commands are `sh`, or `console` where what they print is shown too: its
// commands begin with "$ ". They say one of
//
//	sh run                    it runs in TestGuideBlocks, and must succeed
//	sh run exits=3            it runs, and must exit with that code
//	sh run background         one command that goes on while the next blocks run: an agent
//	console run               the same, and what is shown is what it prints, with … for what varies
//	sh not-run="REASON"       it runs in no test, for a reason that a person can check
//
// and any other block may say file=NAME: a reader saves it under that name, and so
// does the test. Pages show none of this.
var blockWords = regexp.MustCompile(`^([a-z]+)((?: +(?:run|background|later|exits=\d+|file=[\w./-]+|on=[a-z0-9,]+|not-run="[^"]{10,}"))*)$`)

// unmarked is what is left to do: how many blocks of a page, in each of its
// languages, do not say yet whether they run.
var unmarked = map[string]int{}

// language is the first word behind the opening marks.
func (f fence) language() string {
	language, _, _ := strings.Cut(f.kind, " ")
	return language
}

// words are the others.
func (f fence) words() string {
	_, words, _ := strings.Cut(f.kind, " ")
	return " " + words + " "
}

// commands reports whether the block holds what people type.
func (f fence) commands() bool { return f.language() == "sh" || f.language() == "console" }

// says reports whether a word stands behind the language.
func (f fence) says(word string) bool {
	return strings.Contains(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(f.words(), ""), " "+word+" ")
}

// value returns what stands behind NAME=, or "".
func (f fence) value(name string) string {
	found := regexp.MustCompile(` ` + name + `="?([^" ]+)`).FindStringSubmatch(f.words())
	if found == nil {
		return ""
	}
	return found[1]
}

// marked reports whether a block says what it is: a language and, if it holds
// commands, whether they run.
func (f fence) marked() bool {
	return blockWords.MatchString(f.kind) && (!f.commands() || f.says("run") != (f.value("not-run") != ""))
}

// name is that of a page in both languages.
func (p page) name() string { return strings.TrimSuffix(filepath.Base(p.path), ".md") }

// TestGuideBlocksAreMarked: every block says what it is, and every block of
// commands whether it runs in a test or why not.
func TestGuideBlocksAreMarked(t *testing.T) {
	for _, p := range guides(t) {
		open := 0
		for _, f := range p.fences() {
			at := fmt.Sprintf("%s:%d: ```%s", p.path, f.line, f.kind)
			switch {
			case !f.marked():
				if open++; open > unmarked[p.name()] {
					t.Errorf("%s does not say what the block is: `sh run`, `sh not-run=\"why\"`, or another language", at)
				}
			case !f.commands() && regexp.MustCompile(`(?m)^(\$ |nomadlike )`).MatchString(f.text):
				t.Errorf("%s holds commands: it should be `sh` or `console`", at)
			}
		}
		if open < unmarked[p.name()] {
			t.Errorf("%s: %d blocks do not say what they are, and the table of those that need not allows %d: lower it", p.path, open, unmarked[p.name()])
		}
	}
}

// TestGuideBlocks runs what the guides tell people to type: page by page, block by
// block, each by bash in one directory, as a person does who follows the page. A
// page has a development agent of its own, unless its first block of commands
// starts one. testdata/guide/PAGE.txtar, where there is one, comes first: what the
// page takes as given, such as a job that runs. A page that has people type the same
// in both languages, and shows nothing of what is printed, runs once: each second
// one in Chinese.
func TestGuideBlocks(t *testing.T) {
	scripts, blocks := t.TempDir(), 0
	typed, in := map[string]string{}, map[string]messages.Language{} // in: what a page runs in that runs once
	for _, p := range guides(t) {
		switch text, known := typed[p.name()]; {
		case !known:
			typed[p.name()] = p.typed()
		case text != p.typed():
		case len(in)%2 == 0:
			in[p.name()] = messages.English
		default:
			in[p.name()] = messages.Chinese
		}
	}
	for _, p := range guides(t) {
		script, n := p.script(t)
		blocks += n
		if language, once := in[p.name()]; n > 0 && (!once || language == p.language) {
			if err := os.WriteFile(filepath.Join(scripts, p.name()+"-"+string(p.language)+".txtar"), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if blocks < blocksMin {
		t.Errorf("only %d blocks of commands run", blocks)
	}
	testscript.Run(t, scriptParams(t, scripts))
}

// typed is what a page has people type and save, without comments, and what it
// shows of what is printed.
func (p page) typed() string {
	var b strings.Builder
	for _, f := range p.fences() {
		if f.value("file") != "" || f.commands() && f.says("run") {
			fmt.Fprintf(&b, "%s\n%s\n", f.kind, comment.ReplaceAllString(f.text, ""))
		}
	}
	return b.String()
}

// comment is one of a block, to the end of its line.
var comment = regexp.MustCompile(`(?m)(^|[ \t]+)#.*$`)

// blocksMin is how many blocks of commands run, at the least.
const blocksMin = 56

// script is the test script that does what a page says, and how many blocks of
// commands it runs.
func (p page) script(t *testing.T) (string, int) {
	t.Helper()
	var script, files strings.Builder
	given, err := os.ReadFile(filepath.Join("testdata", "guide", p.name()+".txtar"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	first, rest, more := strings.Cut(string(given), "\n-- ")
	if more {
		files.WriteString("-- " + rest)
	}
	fmt.Fprintf(&script, "env NOMADLIKE_LANG=%s\n", p.language)
	ran, alone := 0, false
	for _, f := range p.fences() {
		if name := f.value("file"); name != "" {
			fmt.Fprintf(&files, "-- saved/%d --\n%s", f.line, f.text)
			fmt.Fprintf(&script, "cp saved/%d %s\n", f.line, name)
		}
		if !f.commands() || !f.says("run") {
			continue
		}
		if ran++; ran == 1 {
			if alone = f.says("background"); !alone {
				script.WriteString("cluster nas\n" + first + "\n")
			}
		}
		fmt.Fprintf(&script, "# %s:%d\n", p.path, f.line)
		p.runs(&script, &files, f)
	}
	if alone {
		script.WriteString("kill -INT agent\nwait agent\n")
	}
	return script.String() + files.String(), ran
}

// runs writes the lines of a script that run a block.
func (p page) runs(script, files *strings.Builder, f fence) {
	code := "0"
	if f.value("exits") != "" {
		code = f.value("exits")
	}
	switch {
	case f.says("background"):
		// The ports of an agent are those of every other one on this machine.
		text := regexp.MustCompile(`^nomadlike agent\b`).ReplaceAllString(f.text, "exec nomadlike agent -port 0 -gossip-port 0")
		fmt.Fprintf(files, "-- block/%d --\n%s", f.line, text)
		fmt.Fprintf(script, "exec bash -eu block/%d &agent&\nuntil ready nomadlike -lang en node status\n", f.line)
	case f.language() == "console":
		for n, said := range strings.Split("\n"+f.text, "\n$ ")[1:] {
			command, output, _ := strings.Cut(said, "\n")
			fmt.Fprintf(files, "-- block/%d.%d --\n%s\n-- shown/%d.%d --\n%s\n", f.line, n, command, f.line, n, output)
			fmt.Fprintf(script, "exits %s bash -euo pipefail block/%d.%d\nprints shown/%d.%d\n", code, f.line, n, f.line, n)
		}
	default:
		fmt.Fprintf(files, "-- block/%d --\n%s", f.line, f.text)
		fmt.Fprintf(script, "exits %s timeout 30 bash -euo pipefail block/%d\n", code, f.line)
	}
}

// prints checks that the last command printed what a file says: … stands for
// anything within a line, a line of … alone for any number of lines, and the width
// of columns does not count.
func prints(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: prints FILE")
	}
	var wanted strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case len(words) == 1 && words[0] == "…":
			wanted.WriteString(`(?:.*\n)*?`)
		default:
			text := regexp.QuoteMeta(strings.Join(words, " "))
			wanted.WriteString(strings.ReplaceAll(text, "…", ".*?") + `\n`)
		}
	}
	var got strings.Builder
	for line := range strings.Lines(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
		if words := strings.Fields(line); len(words) > 0 {
			got.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	if !regexp.MustCompile(`^` + wanted.String() + `$`).MatchString(got.String()) {
		ts.Fatalf("it printed\n%s\nand the page shows\n%s", got.String(), ts.ReadFile(args[0]))
	}
}

// A paragraph of a guide has six lines of 120 columns at the most.
const (
	paragraphLines = 6
	lineColumns    = 120
)

// long counts the paragraphs that are still longer, by page in each language.
var long = map[string]int{}

// TestGuideParagraphsAreShort: nobody reads a wall of text.
func TestGuideParagraphsAreShort(t *testing.T) {
	for _, p := range guides(t) {
		var found []string
		for _, paragraph := range p.paragraphs() {
			if lines := (textWidth(paragraph.text) + lineColumns - 1) / lineColumns; lines > paragraphLines {
				found = append(found, fmt.Sprintf("%s:%d: a paragraph of %d lines", p.path, paragraph.line, lines))
			}
		}
		name := p.name() + "-" + string(p.language)
		switch allowed := long[name]; {
		case len(found) > allowed:
			t.Errorf("%d paragraphs are longer than %d lines, %d may be:\n%s", len(found), paragraphLines, allowed, strings.Join(found, "\n"))
		case len(found) < allowed:
			t.Errorf("%s: %d paragraphs are too long, and the table allows %d: lower it", p.path, len(found), allowed)
		}
	}
}

// paragraphs lists what stands between empty lines outside of code and tables;
// every item of a list is one.
func (p page) paragraphs() []fence {
	var list []fence
	open, code := false, false
	for n, line := range strings.Split(p.text, "\n") {
		trimmed := strings.TrimSpace(line)
		item := regexp.MustCompile(`^([-*]|\d+\.) `).MatchString(trimmed)
		switch {
		case strings.HasPrefix(line, "```"):
			code, open = !code, false
		case code || trimmed == "" || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#"):
			open = false
		case open && !item:
			list[len(list)-1].text += " " + trimmed
		default:
			list, open = append(list, fence{line: n + 1, text: trimmed}), true
		}
	}
	return list
}

// textWidth is how many columns a text takes: a Chinese character is as wide as two letters.
// Where links lead to is not shown.
func textWidth(text string) int {
	width := 0
	for _, r := range regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(text, "]") {
		width++
		if r >= 0x2e80 {
			width++
		}
	}
	return width
}
