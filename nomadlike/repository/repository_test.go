package repository

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/gitservers"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// company is a repository on a server, and who asks it.
type company struct {
	t       *testing.T
	Root    string // of the repositories that are served
	Work    string // a work tree of the one
	Environ []string
}

// newCompany makes a repository of two commits, on two branches and two tags.
func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{t: t, Root: t.TempDir(), Work: t.TempDir()}
	c.Environ = append(slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "GIT_") }), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	c.git("init", "-q")
	c.write("README.md", "read me\n", 0o644)
	c.commit("first")
	c.git("tag", "v1")
	c.write("train/train.py", "print(1)\r\n", 0o644)
	c.write("train/run.sh", "#!/bin/sh\n", 0o755)
	c.write("train/src/model.py", "print(2)\n", 0o644)
	c.write("train/data/big", "weights", 0o644)
	c.write("train/.gitignore", "*.ckpt\n", 0o644)
	c.write("train/a.ckpt", "committed all the same", 0o644)
	if err := os.Symlink("src/model.py", filepath.Join(c.Work, "train", "model.py")); err != nil {
		t.Fatal(err)
	}
	c.git("add", "-f", "train/a.ckpt")
	c.commit("second")
	c.git("tag", "-a", "-m", "annotated", "v2")
	c.git("branch", "team/exp")
	c.publish()
	return c
}

func (c *company) git(args ...string) string {
	c.t.Helper()
	return gitservers.Git(c.t, c.Work, args...)
}

func (c *company) commit(what string) {
	c.t.Helper()
	c.git("add", ".")
	c.git("commit", "-qm", what)
}

func (c *company) publish() {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.Root, "team")); err != nil {
		c.t.Fatal(err)
	}
	c.git("clone", "-q", "--bare", ".", filepath.Join(c.Root, "team", "train.git"))
}

func (c *company) write(name, text string, mode os.FileMode) {
	c.t.Helper()
	at := filepath.Join(c.Work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), mode), os.Chmod(at, mode)); err != nil {
		c.t.Fatal(err)
	}
}

// web serves the repositories over HTTP, and returns the address of the one.
func (c *company) web(guard func(http.Handler) http.Handler) string {
	c.t.Helper()
	handler, err := gitservers.Handler(c.Root)
	if err != nil {
		c.t.Fatal(err)
	}
	if guard != nil {
		handler = guard(handler)
	}
	server := httptest.NewServer(handler)
	c.t.Cleanup(server.Close)
	return server.URL + "/team/train.git"
}

// fetch fetches, and looks that nothing stays behind.
func (c *company) fetch(source, ref, subdir string, change ...func(*Options)) (*Checkout, error) {
	c.t.Helper()
	temporary := c.t.TempDir()
	c.t.Setenv("TMPDIR", temporary)
	options := Options{Environ: c.Environ}
	for _, one := range change {
		one(&options)
	}
	got, err := Fetch(c.t.Context(), source, structs.WorkdirRepo{Ref: ref, Subdir: subdir}, options)
	left := func() {
		if names, err := os.ReadDir(temporary); err != nil || len(names) > 0 {
			c.t.Errorf("left behind: %v, %v", names, err)
		}
	}
	if err != nil {
		left()
		return nil, err
	}
	c.t.Cleanup(func() {
		if err := got.Close(); err != nil {
			c.t.Error(err)
		}
		left()
	})
	return got, nil
}

// scan reads a directory that was fetched as the command line does.
func scan(t *testing.T, got *Checkout, most int64) (tree.Manifest, []tree.LeftOut, error) {
	t.Helper()
	return tree.Scan(t.Context(), got.Dir, tree.Options{
		BytesMax: most, Committed: true, Fill: func(files []string) error { return got.Fill(t.Context(), files) },
	})
}

// TestADirectoryOfACommit: over each road the directory is what was committed: bytes,
// modes and links, with what an ignore file of git's says of other files.
func TestADirectoryOfACommit(t *testing.T) {
	c := newCompany(t)
	ssh := gitservers.StartSSH(t, c.Root)
	byAgent := func(o *Options) {
		o.Environ = append(o.Environ, "SSH_AUTH_SOCK="+ssh.Agent, "GIT_SSH_COMMAND=ssh -F "+ssh.Config)
	}
	none := func(*Options) {}
	want := tree.Manifest{}
	for _, one := range []struct {
		name, source string
		change       func(*Options)
	}{
		{"daemon", gitservers.StartDaemon(t, c.Root) + "/team/train.git", none},
		{"http", c.web(nil), none},
		{"ssh", ssh.Address + "/team/train.git", byAgent},
	} {
		t.Run(one.name, func(t *testing.T) {
			c.t = t
			came := int64(0)
			got, err := c.fetch(one.source, "main", "train", one.change, func(o *Options) { o.Progress = func(received int64) { came = received } })
			if err != nil {
				t.Fatal(err)
			}
			if got.Commit != c.git("rev-parse", "main") || got.Branch != "main" || came == 0 {
				t.Errorf("commit %s of branch %q, %d bytes came", got.Commit, got.Branch, came)
			}
			if count, err := got.git.ask(t.Context(), "rev-list", "--count", "FETCH_HEAD"); err != nil || count != "1" {
				t.Errorf("%s commits were fetched, %v", count, err)
			}
			m, left, err := scan(t, got, 0)
			if err != nil || len(left) > 0 || len(got.Pointers)+len(got.Empty) > 0 {
				t.Fatal(left, got.Pointers, got.Empty, err)
			}
			var lines []string
			for i := range m.Entries {
				entry := &m.Entries[i]
				line := entry.Path
				switch entry.Kind {
				case tree.KindLink:
					line += " -> " + entry.Target
				case tree.KindFile:
					data, err := os.ReadFile(filepath.Join(got.Dir, entry.Path))
					if err != nil {
						t.Fatal(err)
					}
					line += " " + string(data)
				}
				if entry.Kind == tree.KindDir && entry.Mode != 0o755 || entry.Kind == tree.KindFile && (entry.Mode != 0o644) != (entry.Path == "run.sh") {
					t.Errorf("%s has mode %o", entry.Path, entry.Mode)
				}
				lines = append(lines, line)
			}
			if diff := cmp.Diff([]string{
				".gitignore *.ckpt\n", "a.ckpt committed all the same", "data", "data/big weights", "model.py -> src/model.py",
				"run.sh #!/bin/sh\n", "src", "src/model.py print(2)\n", "train.py print(1)\r\n",
			}, lines); diff != "" {
				t.Error(diff)
			}
			if len(want.Entries) > 0 && want.Digest() != m.Digest() {
				t.Error("it is another tree than over the road before")
			}
			want = m
		})
	}
}

// TestWhichCommit: branches, tags, commits, and what the server calls HEAD; what there
// is not is told with what is near.
func TestWhichCommit(t *testing.T) {
	c := newCompany(t)
	first, second := c.git("rev-parse", "main~1"), c.git("rev-parse", "main")
	source := c.web(nil)
	for _, test := range []struct{ ref, commit, branch string }{
		{"", second, ""},
		{"main", second, "main"},
		{"refs/heads/main", second, "main"},
		{"team/exp", second, "team/exp"},
		{"v1", first, ""},
		{"v2", second, ""},
		{second, second, ""},
		{first, first, ""},
	} {
		got, err := c.fetch(source, test.ref, "")
		if err != nil {
			t.Errorf("%q: %v", test.ref, err)
			continue
		}
		if got.Commit != test.commit || got.Branch != test.branch {
			t.Errorf("%q: commit %s of branch %q, want %s of %q", test.ref, got.Commit, got.Branch, test.commit, test.branch)
		}
	}
	for _, test := range []struct{ ref, subdir, id, suggestion string }{
		{"mian", "", "git.ref_near", "main"},
		{"nothing-like-it", "", "git.ref_unknown", ""},
		{strings.Repeat("ab", 20), "", "git.commit_unknown", ""},
		{"main", "trian", "git.subdir_near", "train"},
		{"main", "nothing/like/it", "git.subdir_unknown", ""},
		{"main", "README.md", "git.subdir_unknown", ""},
		{"main", "train/model.py", "git.subdir_unknown", ""},
		{"v1", "train", "git.subdir_unknown", ""},
	} {
		_, err := c.fetch(source, test.ref, test.subdir)
		refused := new(structs.Error)
		if !errors.As(err, &refused) || refused.ID != test.id || refused.Params["suggestion"] != test.suggestion {
			t.Errorf("%s of %s: %v", test.subdir, test.ref, err)
		}
	}
}

// TestSigningIn: with the user's own helper, and not without; nothing that git says
// brings a password along.
func TestSigningIn(t *testing.T) {
	c := newCompany(t)
	ssh := gitservers.StartSSH(t, c.Root)
	source := c.web(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "ann" || password != "correct-horse" {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "sign in", http.StatusUnauthorized)
				return
			}
			inner.ServeHTTP(w, r)
		})
	})
	settings := func(text string) func(*Options) {
		file := filepath.Join(t.TempDir(), "gitconfig")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return func(o *Options) { o.Environ = append(o.Environ, "GIT_CONFIG_GLOBAL="+file) }
	}
	helper := func(password string) string {
		return "[credential]\n  helper = \"!f() { echo username=ann; echo password=" + password + "; }; f\"\n"
	}
	if _, err := c.fetch(source, "main", "", settings(helper("correct-horse"))); err != nil {
		t.Error(err)
	}
	host := strings.TrimPrefix(source, "http://")
	for name, text := range map[string]string{
		"nobody":        "",
		"another":       helper("wrong-horse"),
		"in an address": "[url \"http://ann:wrong-horse@" + host + "\"]\n  insteadOf = " + source + "\n",
	} {
		_, err := c.fetch(source, "main", "", settings(text))
		refused := new(structs.Error)
		if !errors.As(err, &refused) || refused.ID != "git.no_access" || strings.Contains(err.Error()+refused.Params["said"], "horse") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for id, environ := range map[string][]string{
		"git.host_key":  {"SSH_AUTH_SOCK=" + ssh.Agent, "GIT_SSH_COMMAND=ssh -F " + ssh.Strange},
		"git.no_access": {"SSH_AUTH_SOCK=", "GIT_SSH_COMMAND=ssh -F " + ssh.Config + " -i /dev/null"},
	} {
		_, err := c.fetch(ssh.Address+"/team/train.git", "main", "", func(o *Options) { o.Environ = append(o.Environ, environ...) })
		if refused := new(structs.Error); !errors.As(err, &refused) || refused.ID != id {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestServersThatFail: what is not there, says nothing or sends too much.
func TestServersThatFail(t *testing.T) {
	c := newCompany(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // connections wait in its queue for ever
	silent := listener.Addr().String()
	soon := func(o *Options) { o.silence = 300 * time.Millisecond }
	little := func(o *Options) { o.received = 10 }
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, test := range []struct {
		source, id string
		change     func(*Options)
	}{
		{"git://" + silent + "/team/train.git", "git.silent", soon},
		{"http://" + silent + "/team/train.git", "git.silent", soon},
		{c.web(nil), "git.too_large", little},
		{gone.URL + "/team/train.git", "git.unreachable", soon},
		{strings.Replace(c.web(nil), "train.git", "other.git", 1), "git.no_access", little},
	} {
		began := time.Now()
		_, err := c.fetch(test.source, "main", "", test.change)
		if refused := new(structs.Error); !errors.As(err, &refused) || refused.ID != test.id {
			t.Errorf("%s: %v", test.source, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: it took %s", test.source, took)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Fetch(stopped, c.web(nil), structs.WorkdirRepo{}, Options{Environ: c.Environ}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	t.Setenv("PATH", "")
	_, err = c.fetch("https://git.example/a.git", "main", "")
	if refused := new(structs.Error); !errors.As(err, &refused) || refused.ID != "git.missing" {
		t.Errorf("without git: %v", err)
	}
}

// TestOnlyWhatGoesAlongIsWritten: what an ignore file leaves out is not read, and does
// not count.
func TestOnlyWhatGoesAlongIsWritten(t *testing.T) {
	c := newCompany(t)
	c.write("train/data/big", strings.Repeat("weights", 10_000), 0o644)
	c.commit("large")
	c.publish()
	source := c.web(nil)
	got, err := c.fetch(source, "main", "train")
	if err != nil {
		t.Fatal(err)
	}
	large := new(tree.TooLargeError)
	if _, _, err := scan(t, got, 10_000); !errors.As(err, &large) || len(large.Largest) == 0 || large.Largest[0].Path != "data" {
		t.Errorf("too large: %v", err)
	}
	c.write("train/.nomadlikeignore", "/data\n", 0o644)
	c.commit("less")
	c.publish()
	if got, err = c.fetch(source, "main", "train"); err != nil {
		t.Fatal(err)
	}
	m, left, err := scan(t, got, 10_000)
	if err != nil || len(left) != 1 || left[0].Path != "data" || m.Files() == 0 {
		t.Errorf("%d files, left out: %v, %v", m.Files(), left, err)
	}
	if data, err := os.ReadFile(filepath.Join(got.Dir, "data", "big")); err != nil || strings.Trim(string(data), "\x00") != "" {
		t.Errorf("%d bytes of what stays behind were written, %v", len(data), err)
	}
}
