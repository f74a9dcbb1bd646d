// Package gitservers starts servers of git for tests: git's own daemon, git over HTTP,
// and git over SSH with the sshd of Debian. They serve bare repositories below one
// directory, to be read.
package gitservers

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
)

// Git runs git in a directory, as somebody without settings, and returns what it says.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	always := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}
	command := exec.Command("git", append(always, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Handler serves the repositories below a directory over HTTP.
func Handler(root string) (http.Handler, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("install the package git: %w", err)
	}
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
	}, nil
}

// StartDaemon starts git's own server, and returns its address, "git://…". It ends with
// the test.
func StartDaemon(t testing.TB, root string) string {
	t.Helper()
	at := freePort(t)
	host, port, _ := net.SplitHostPort(at)
	start(t, at, exec.Command("git", "daemon", "--export-all", "--base-path="+root, "--listen="+host, "--port="+port, "--reuseaddr"))
	return "git://" + at
}

// SSH is a server that lets one key in.
type SSH struct {
	Address string // "ssh://user@host:port" and the directory of the repositories
	Agent   string // SSH_AUTH_SOCK of an agent that has the key
	Config  string // file of ssh's settings that knows the server
	Strange string // likewise, of somebody who never met it
}

const startPatience = 20 * time.Second

const sshd = "/usr/sbin/sshd"

// StartSSH starts sshd, and an agent with the key that it takes. They end with the test.
func StartSSH(t testing.TB, root string) *SSH {
	t.Helper()
	for program, from := range map[string]string{sshd: "openssh-server", "ssh-agent": "openssh-client", "ssh-keygen": "openssh-client"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install the package %s", err, from)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" { // where its part without rights is shut in
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "sshd") // short: the path of a socket has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := freePort(t)
	host, port, _ := net.SplitHostPort(at)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "mine"} {
		run(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)))
	}
	write := func(name, text string) string {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	public := func(key string) string {
		text, err := os.ReadFile(in(key + ".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("authorized", public("mine"))
	config := write("sshd_config", strings.Join([]string{
		"Port " + port, "ListenAddress " + host, "HostKey " + in("host"), "AuthorizedKeysFile " + in("authorized"), "StrictModes no", "UsePAM no",
		"PidFile none", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes", "",
	}, "\n"))
	start(t, at, exec.Command(sshd, "-D", "-e", "-f", config))
	s := &SSH{Address: "ssh://" + me.Username + "@" + at + root, Agent: in("agent")}
	start(t, "", exec.Command("ssh-agent", "-D", "-a", s.Agent))
	eventually.Within(t, startPatience, "the agent has the key", func() bool {
		add := exec.Command("ssh-add", "-q", in("mine"))
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+s.Agent)
		return add.Run() == nil
	})
	known := write("known", fmt.Sprintf("[%s]:%s %s", host, port, public("host")))
	s.Config = write("config", "Host *\n  UserKnownHostsFile "+known+"\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n")
	s.Strange = write("strange", "Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n")
	return s
}

// freePort is an address of this machine that nobody listens at.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func run(t testing.TB, command *exec.Cmd) {
	t.Helper()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", command.Args, err, out)
	}
}

// start starts a server, and waits until it listens, where it does.
func start(t testing.TB, at string, server *exec.Cmd) {
	t.Helper()
	server.Stdout, server.Stderr = t.Output(), t.Output()
	server.WaitDelay = 5 * time.Second
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) // git starts its server as another program
		_ = server.Wait()                                      // it was killed
	})
	if at != "" {
		eventually.Within(t, startPatience, "the server listens", func() bool {
			conn, err := net.DialTimeout("tcp", at, time.Second)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}
