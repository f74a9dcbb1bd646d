package agent

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/workspace"
)

// findings are the places and messages of a look, warnings with a question mark.
func findings(config config.Config, now time.Time) []string {
	var all []string
	for _, f := range Preflight(config, now) {
		mark := ""
		if f.Warning {
			mark = "?"
		}
		all = append(all, mark+f.Problem.ID)
	}
	slices.Sort(all)
	return all
}

// allFiles is every file below a directory, with size, mode and time of change.
func allFiles(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all = append(all, strings.Join([]string{path, info.Mode().String(), info.ModTime().Format(time.RFC3339Nano)}, " "))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// stoppedServer is the configuration of a server that ran once.
func stoppedServer(t *testing.T) config.Config {
	t.Helper()
	dir, yes := filepath.Join(t.TempDir(), "data"), true
	expect := 1
	server := startAgent(t, config.Settings{DataDir: &dir, Server: &config.ServerBlock{Enabled: &yes, BootstrapExpect: &expect}}, testOptions(t))
	eventually.Within(t, time.Minute, "lead", func() bool { return server.raft.IsLeader() })
	config := server.configured
	stopAgent(t, server)
	return config
}

func TestPreflightFindsNothing(t *testing.T) {
	config := stoppedServer(t)
	before := allFiles(t, config.DataDir)
	if got := findings(config, time.Now()); len(got) > 0 {
		t.Error(got)
	}
	if diff := cmp.Diff(before, allFiles(t, config.DataDir)); diff != "" {
		t.Errorf("the look has changed something (-before +after):\n%s", diff)
	}
	fresh := config
	fresh.DataDir = filepath.Join(t.TempDir(), "not", "yet")
	if got := findings(fresh, time.Now()); len(got) > 0 {
		t.Error("a directory that is not there yet:", got)
	}
	if _, err := os.Stat(filepath.Dir(fresh.DataDir)); err == nil {
		t.Error("the look has made the directory")
	}
}

// TestPreflightTellsEverything breaks one thing after the other, and expects all
// that was broken so far in one look.
func TestPreflightTellsEverything(t *testing.T) {
	config := stoppedServer(t)
	now := time.Now()
	var want []string
	step := func(name, id string, wreck func()) {
		t.Helper()
		wreck()
		want = append(want, id)
		slices.Sort(want)
		if diff := cmp.Diff(want, findings(config, now)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", name, diff)
		}
	}
	identity := filepath.Join(config.DataDir, identityDir)
	chmod := func(path string, mode fs.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	step("a key that others read", "agent.preflight.readable", func() { chmod(filepath.Join(identity, agentKeyFile), 0o640) })
	step("a directory that others write", "agent.preflight.writable", func() { chmod(config.DataDir, 0o777) })
	step("a foreign address", "?agent.preflight.advertise", func() { config.Advertise = "192.0.2.77" })
	step("a certificate that is over", "?agent.preflight.cert_over", func() { now = now.Add(10 * 365 * 24 * time.Hour) })
	step("a storage that is not mounted", "?agent.preflight.missing", func() {
		config.Client.Enabled = true
		config.Client.Storages = append(config.Client.Storages, workspace.Storage{Name: "home", Path: filepath.Join(t.TempDir(), "nas", "{user}")})
	})
	step("a plugin directory that is a file", "agent.preflight.no_directory", func() { config.PluginDir = filepath.Join(identity, agentFile) })
	step("a taken port", "agent.preflight.port", func() {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { taken.Close() })
		config.HTTPPort = taken.Addr().(*net.TCPAddr).Port
	})
	step("a damaged vote", "agent.refuse.corrupt", func() {
		if err := os.WriteFile(filepath.Join(config.DataDir, serverDir, "vote.rec"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	for _, f := range Preflight(config, now) {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if text := messages.Text(language, f.Problem.ID, f.Problem.Params); text == "" || strings.ContainsAny(text, "{}") {
				t.Errorf("%s in %s: %q", f.Problem.ID, language, text)
			}
		}
	}
}

// TestPreflightBesideAnAgent makes sure that a look beside a running agent does
// not call its ports taken.
func TestPreflightBesideAnAgent(t *testing.T) {
	dir, yes := filepath.Join(t.TempDir(), "data"), true
	expect := 1
	server := startAgent(t, config.Settings{DataDir: &dir, Server: &config.ServerBlock{Enabled: &yes, BootstrapExpect: &expect}}, testOptions(t))
	eventually.Within(t, time.Minute, "lead", func() bool { return server.raft.IsLeader() })
	config := server.configured
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if config.HTTPPort, err = net.LookupPort("tcp", port); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"?agent.preflight.running"}, findings(config, time.Now())); diff != "" {
		t.Error(diff)
	}
}

// TestPreflightOfAnIdentity looks at agents that are somebody else, or nobody.
func TestPreflightOfAnIdentity(t *testing.T) {
	server := stoppedServer(t)
	for _, c := range []struct {
		name  string
		wreck func(config *config.Config)
		want  []string
	}{
		{"another role", func(c *config.Config) { c.Server.Enabled, c.Client.Enabled = false, true }, []string{"agent.refuse.role"}},
		{"a client without a token", func(c *config.Config) {
			c.Server.Enabled, c.Client.Enabled = false, true
			c.DataDir = t.TempDir()
		}, []string{"agent.refuse.no_token"}},
		{"a lost log", func(c *config.Config) { rename(t, c.DataDir, serverDir, "away") }, []string{"agent.refuse.wiped"}},
		{"a lost identity", func(c *config.Config) {
			rename(t, c.DataDir, "away", serverDir)
			rename(t, c.DataDir, identityDir, "gone")
		}, []string{"agent.preflight.log_alone"}},
		{"a file in its place", func(c *config.Config) { c.DataDir = filepath.Join(c.DataDir, lockFile) }, []string{"agent.preflight.no_directory"}},
	} {
		config := server
		c.wreck(&config)
		if diff := cmp.Diff(c.want, findings(config, time.Now())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

// TestPreflightOfAJoinToken warns where others may read the join token, and not of
// a configuration that names the token's own file.
func TestPreflightOfAJoinToken(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open, kept, shown := write("agent.hcl", 0o644), write("join", 0o600), write("join-shown", 0o644)
	for _, c := range []struct {
		joinFile string
		want     string // the file that is warned of
	}{
		{"", open},
		{kept, ""},
		{shown, shown},
	} {
		p := preflight{config: config.Config{Files: []string{open}, JoinFile: c.joinFile}}
		p.config.JoinToken.Secret = "secret"
		if c.joinFile != "" {
			p.config.Files = append(p.config.Files, c.joinFile)
		}
		p.secrets()
		var got []string
		for _, f := range p.found {
			got = append(got, f.Problem.ID+" "+f.Place)
		}
		var want []string
		if c.want != "" {
			want = []string{"agent.preflight.token_readable " + c.want}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token file %q: (-want +got)\n%s", c.joinFile, diff)
		}
	}
}
