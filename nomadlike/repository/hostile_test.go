package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/gitservers"
	"nomadlike/nomadlike/structs"
)

// TestNothingOfARepositoryRuns: filters that its attributes ask for, hooks that the user
// has for new repositories, updates of submodules; and bytes are those that were
// committed, whatever the user's line endings are.
func TestNothingOfARepositoryRuns(t *testing.T) {
	c := newCompany(t)
	ran := filepath.Join(t.TempDir(), "ran")
	spy := filepath.Join(t.TempDir(), "hooks", "spy")
	if err := errors.Join(os.MkdirAll(filepath.Dir(spy), 0o755), os.WriteFile(spy, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "post-merge", "fsmonitor-watchman"} {
		if err := os.Symlink(spy, filepath.Join(filepath.Dir(spy), hook)); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(settings, fmt.Appendf(nil, `
[filter "lfs"]
	smudge = %[1]s
	process = %[1]s
	required = true
[filter "spy"]
	smudge = %[1]s
[core]
	autocrlf = true
	hooksPath = %[2]s
	fsmonitor = %[1]s
[init]
	templateDir = %[3]s
[submodule]
	recurse = true
[fetch]
	recurseSubmodules = true
[protocol]
	allow = always
`, spy, filepath.Dir(spy), filepath.Dir(filepath.Dir(spy))), 0o600); err != nil {
		t.Fatal(err)
	}
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("ab", 32) + "\nsize 12345\n"
	c.write(".gitattributes", "*.bin filter=lfs\n*.txt filter=spy ident export-ignore\n", 0o644)
	c.write(".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:1/\n", 0o644)
	c.write("a.bin", pointer, 0o644)
	c.write("b.txt", "$Id$\n", 0o644)
	c.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c touch% "+ran+"\n\tupdate = !touch "+ran+"\n", 0o644)
	c.git("add", ".")
	c.git("update-index", "--add", "--cacheinfo", "160000,"+c.git("rev-parse", "HEAD")+",sub")
	c.git("commit", "-qm", "hostile")
	c.publish()
	got, err := c.fetch(c.web(nil), "main", "", func(o *Options) { o.Environ = append(o.Environ, "GIT_CONFIG_GLOBAL="+settings) })
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := scan(t, got, 0)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(ran); err == nil {
		t.Errorf("these ran: %s", said)
	}
	if !slices.Equal(got.Empty, []string{"sub"}) || !slices.Equal(got.Pointers, []string{"a.bin"}) {
		t.Errorf("submodules %v, pointers %v", got.Empty, got.Pointers)
	}
	for name, want := range map[string]string{"a.bin": pointer, "b.txt": "$Id$\n", "train/src/model.py": "print(2)\n"} {
		if data, err := os.ReadFile(filepath.Join(got.Dir, name)); err != nil || string(data) != want {
			t.Errorf("%s has %q, %v", name, data, err)
		}
	}
	if m.Files() == 0 {
		t.Error("nothing goes along")
	}
	if _, err := os.Stat(filepath.Join(got.git.dir, "hooks")); err == nil {
		t.Error("hooks of the user's template are in the repository")
	}
	for name, want := range map[string]string{"core.hooksPath": "/dev/null", "core.fsmonitor": "false", "submodule.recurse": "false", "fetch.recurseSubmodules": "false"} {
		if is, err := got.git.ask(t.Context(), "config", "--get", name); err != nil || is != want {
			t.Errorf("%s is %q, %v", name, is, err)
		}
	}
}

// TestTheEnvironmentOfOthers: variables that turn git to another repository, as hooks
// have them, do nothing, and neither do addresses that start programs.
func TestTheEnvironmentOfOthers(t *testing.T) {
	c := newCompany(t)
	other := t.TempDir()
	gitservers.Git(t, other, "init", "-q")
	trace := filepath.Join(t.TempDir(), "trace")
	hostile := func(o *Options) {
		o.Environ = append(o.Environ, "GIT_DIR="+other+"/.git", "GIT_WORK_TREE="+other, "GIT_INDEX_FILE="+other+"/index", "GIT_OBJECT_DIRECTORY="+other,
			"GIT_ALTERNATE_OBJECT_DIRECTORIES="+other, "GIT_NAMESPACE=x", "GIT_TRACE="+trace, "GIT_TRACE_CURL="+trace, "GIT_CONFIG_PARAMETERS='x", "GIT_ALLOW_PROTOCOL=ext:file")
	}
	if _, err := c.fetch(c.web(nil), "main", "", hostile); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("what was sent was written down")
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for _, source := range []string{"ext::sh -c touch% " + ran, "file://" + c.Root + "/team/train.git", c.Root + "/team/train.git"} { // were they to pass the checks
		if _, err := c.fetch(source, "main", "", hostile); err == nil {
			t.Errorf("%s was fetched", source)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("an address started a program")
	}
}

// TestNamesThatLeadElsewhere: a commit that git itself would never make.
func TestNamesThatLeadElsewhere(t *testing.T) {
	c := newCompany(t)
	blob := c.git("rev-parse", "main:README.md")
	raw := func(entries ...string) string {
		var text strings.Builder
		for _, entry := range entries {
			mode, rest, _ := strings.Cut(entry, " ")
			name, object, _ := strings.Cut(rest, " ")
			text.WriteString(mode + " " + name + "\x00")
			for i := 0; i < len(object); i += 2 {
				var b byte
				if _, err := fmt.Sscanf(object[i:i+2], "%02x", &b); err != nil {
					t.Fatal(err)
				}
				text.WriteByte(b)
			}
		}
		file := filepath.Join(t.TempDir(), "tree")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return c.git("hash-object", "-t", "tree", "-w", "--literally", file)
	}
	inner := raw("100644 x " + blob)
	link := func(target string) string {
		file := filepath.Join(t.TempDir(), "link")
		if err := os.WriteFile(file, []byte(target), 0o600); err != nil {
			t.Fatal(err)
		}
		return c.git("hash-object", "-w", file)
	}
	for name, test := range map[string]struct {
		tree, id string
	}{
		"a parent":        {raw("40000 .. " + inner), "git.path"},
		"a path":          {raw("100644 ../../x " + blob), "git.path"},
		"its settings":    {raw("40000 .git " + inner), "git.path"},
		"in other case":   {raw("40000 .GIT " + inner), "git.path"},
		"twice":           {raw("100644 x "+blob, "100644 x "+blob), "git.twins"},
		"through a link":  {raw("120000 a "+link("/tmp"), "40000 a "+inner), "git.twins"},
		"a link out":      {raw("120000 a " + link("../../etc")), "tree.link_out"},
		"a link of zeros": {raw("120000 a " + link("a\x00b")), "git.path"},
		"a long link":     {raw("120000 a " + link(strings.Repeat("a", 5000))), "git.path"},
		"a long name":     {raw("100644 " + strings.Repeat("n", 256) + " " + blob), "git.path"},
	} {
		commit := c.git("commit-tree", "-m", "hostile", test.tree)
		c.git("update-ref", "refs/heads/hostile", commit)
		c.publish()
		got, err := c.fetch(c.web(nil), "hostile", "")
		if err == nil {
			_, _, err = scan(t, got, 0)
		}
		if refused := new(structs.Error); !errors.As(err, &refused) || refused.ID != test.id {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatGitSaidIsShown: in one line, without what obeys a terminal or opens a door.
func TestWhatGitSaidIsShown(t *testing.T) {
	for said, want := range map[string]string{
		"fatal: a\n": "fatal: a",
		"Receiving objects:  10% (1/10)\rReceiving objects: 100% (10/10), done.\nfatal: b": "fatal: b",
		"remote: \x1b[31mred\nfatal: c":                             "remote: ?[31mred | fatal: c",
		"fatal: unable to access 'https://ann:secret@git.example/'": "fatal: unable to access 'https://git.example/'",
		"1\n2\n3\n4\n": "2 | 3 | 4",
		"\xff":         "?",
	} {
		if got := printed(said); got != want {
			t.Errorf("%q is shown as %q, want %q", said, got, want)
		}
	}
	if got := printed(strings.Repeat("é", 1000)); len(got) > saidMax+3 {
		t.Errorf("%d bytes are shown", len(got))
	}
	kept := new(tail)
	for range 1000 {
		fmt.Fprint(kept, strings.Repeat("x", 100))
	}
	if len(kept.text()) != tailMax || kept.count() != 100_000 {
		t.Errorf("%d of %d bytes are kept", len(kept.text()), kept.count())
	}
}

// TestSettingsHold: git takes every setting, and those of the user cannot undo them.
func TestSettingsHold(t *testing.T) {
	g := &git{dir: filepath.Join(t.TempDir(), "git"), environ: environ(append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/elsewhere"))}
	if err := g.run(t.Context(), "init", "--quiet", "--bare", "--template="); err != nil {
		t.Fatal(err)
	}
	for _, setting := range settings() {
		name, want, _ := strings.Cut(setting, "=")
		if got, err := g.ask(t.Context(), "config", "--get", name); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}
