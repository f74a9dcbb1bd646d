package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitSays asks git which names of a work tree stay behind, and by which line. It judges
// by ignore files alone, not by what is in its index. git is needed: what is tested here
// is that this package agrees with it.
func gitSays(t testing.TB, dir string, names []string) map[string]string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is not installed: apt-get install git")
	}
	command := exec.Command(git, "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n")
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/none")
	command.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("git check-ignore: %v: %s", err, problems.String())
	}
	said := make(map[string]string)
	fields := strings.Split(string(out), "\x00")
	for ; len(fields) >= 4; fields = fields[4:] {
		file, line, pattern, name := fields[0], fields[1], fields[2], fields[3]
		if file == "" || strings.HasPrefix(pattern, "!") {
			said[name] = ""
			continue
		}
		said[name] = fmt.Sprintf("%s:%s", file, line)
	}
	return said
}

func initGit(t testing.TB, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main", dir}} {
		command := exec.Command("git", args...)
		command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

func writeFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ours asks this package the same question, for every name below dir but .git. What lies
// below a directory that stays behind stays behind by that directory's line.
func ours(t testing.TB, dir string) map[string]string {
	t.Helper()
	m, left, err := Scan(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := make(map[string]string)
	for i := range m.Entries {
		said[m.Entries[i].Path] = ""
	}
	for _, one := range left {
		if one.File == "" { // .git
			continue
		}
		said[one.Path] = fmt.Sprintf("%s:%d", one.File, one.Line)
	}
	return said
}

func compareWithGit(t testing.TB, dir string) (asked int) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		if relative == ".git" {
			return filepath.SkipDir
		}
		if relative != "." {
			names = append(names, relative)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	git, own := gitSays(t, dir, names), ours(t, dir)
	for _, name := range names {
		mine, told := own[name]
		for above := name; !told && above != "."; {
			above = path.Dir(above)
			mine, told = own[above]
		}
		if mine != git[name] {
			t.Errorf("%q: git says %q, this package %q\n%s", name, git[name], mine, ignoreFiles(dir))
		}
	}
	return len(names)
}

func ignoreFiles(dir string) string {
	var text strings.Builder
	filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && (entry.Name() == GitIgnore || strings.HasSuffix(name, "info/exclude")) {
			data, _ := os.ReadFile(name)
			relative, _ := filepath.Rel(dir, name)
			fmt.Fprintf(&text, "  %s: %q\n", relative, data)
		}
		return nil
	})
	return text.String()
}

// vocabulary is what generated names and patterns are made of, so that they meet often.
var vocabulary = []string{"a", "b", "ab", "a.c", "b.py", "data", "x y", "a*", "[a]", "a\\b", "é", "#a", "!a", "-", "a "}

func somePattern(r *rand.Rand) string {
	pieces := []string{
		"a", "b", "ab", "a.c", "*.py", "data", "*", "**", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[[:alpha:]]", "[[:space:]]", "[[:punct:]]", "[",
		"[a", "\\a", "\\*", "\\", "x y", "x\\ y", "é", "a*", "*b", "*a*", "**b", "a**", "***", "[[:nope:]]", "[--a]", "[a\\]]", "#a", "\\#a", "\\!a", " ", "?*", "\xc3", "[\\", "[a-]", "[[:digit:]-b]",
	}
	var text strings.Builder
	if r.IntN(5) == 0 {
		text.WriteByte('!')
	}
	if r.IntN(4) == 0 {
		text.WriteByte('/')
	}
	for i := range 1 + r.IntN(4) {
		if i > 0 && r.IntN(2) == 0 {
			text.WriteByte('/')
		}
		text.WriteString(pieces[r.IntN(len(pieces))])
	}
	if r.IntN(4) == 0 {
		text.WriteByte('/')
	}
	switch r.IntN(12) {
	case 0:
		text.WriteString("  ")
	case 1:
		text.WriteString("\\ ")
	case 2:
		text.WriteString("\r")
	case 3:
		text.WriteString("\t")
	}
	return text.String()
}

func someIgnore(r *rand.Rand) string {
	var text strings.Builder
	if r.IntN(20) == 0 {
		text.WriteString("\xef\xbb\xbf")
	}
	for range 1 + r.IntN(5) {
		if r.IntN(10) == 0 {
			text.WriteString("# a comment\n\n")
		}
		text.WriteString(somePattern(r))
		text.WriteByte('\n')
	}
	if r.IntN(5) == 0 {
		return strings.TrimSuffix(text.String(), "\n")
	}
	return text.String()
}

// someTree makes names of the vocabulary, to a depth of four, with ignore files.
func someTree(t testing.TB, r *rand.Rand, dir string) {
	var fill func(at string, depth int)
	fill = func(at string, depth int) {
		for _, name := range vocabulary {
			if r.IntN(3) > 0 {
				continue
			}
			child := filepath.Join(at, name)
			switch {
			case depth > 0 && r.IntN(2) == 0:
				if err := os.Mkdir(child, 0o755); err != nil {
					t.Fatal(err)
				}
				fill(child, depth-1)
			case r.IntN(10) == 0:
				if err := os.Symlink("a", child); err != nil {
					t.Fatal(err)
				}
			default:
				writeFile(t, child, "")
			}
		}
		if r.IntN(3) == 0 {
			writeFile(t, filepath.Join(at, GitIgnore), someIgnore(r))
		}
	}
	writeFile(t, filepath.Join(dir, GitIgnore), someIgnore(r))
	if r.IntN(4) == 0 {
		writeFile(t, filepath.Join(dir, ".git", "info", "exclude"), someIgnore(r))
	}
	fill(dir, 3)
}

// TestJudgesAsGit compares with `git check-ignore` over generated trees and rules: the
// same names stay behind, and by the same line.
func TestJudgesAsGit(t *testing.T) {
	asked := 0
	for seed := range uint64(120) {
		dir := t.TempDir()
		initGit(t, dir)
		someTree(t, rand.New(rand.NewPCG(seed, 1)), dir)
		if asked += compareWithGit(t, dir); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if asked < 5000 {
		t.Errorf("only %d names were asked about", asked)
	}
	t.Logf("%d names", asked)
}

// FuzzJudgesAsGit looks for ignore files of which git thinks otherwise.
func FuzzJudgesAsGit(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		f.Add([]byte(someIgnore(r)), []byte(someIgnore(r)))
	}
	f.Add([]byte("a**/b\n/a*\n!/a/\n"), []byte("**/\n\\\n"))
	f.Add([]byte("[[:alpha:]-z]\n[]-a]\n[!]a]\n"), []byte("*/*\\/b\n"))
	dir := f.TempDir()
	initGit(f, dir)
	someTree(f, rand.New(rand.NewPCG(7, 3)), dir)
	var ignoring []string
	filepath.WalkDir(dir, func(name string, entry os.DirEntry, _ error) error {
		if entry.Name() == GitIgnore {
			ignoring = append(ignoring, name)
		}
		return nil
	})
	inner := slices.IndexFunc(ignoring, func(name string) bool { return filepath.Dir(name) != dir })
	f.Fuzz(func(t *testing.T, outer, within []byte) {
		for i, name := range ignoring {
			data := []byte(nil)
			switch i {
			case inner:
				data = within
			case slices.Index(ignoring, filepath.Join(dir, GitIgnore)):
				data = outer
			}
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		compareWithGit(t, dir)
	})
}
