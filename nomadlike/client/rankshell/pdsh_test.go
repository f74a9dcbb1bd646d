package rankshell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/launch"
)

// TestPdsh makes sure that all hosts run at one time, each with its number, that
// lines are whole and labelled, and how it ends.
func TestPdsh(t *testing.T) {
	together := make(chan string, 3)
	path := filepath.Join(t.TempDir(), "s")
	environ := append(env(path, "secret"), "USER=ann", "LANG=C")
	serve(t, path, func(ctx context.Context, request Request, streams IO) Exit {
		together <- request.Host
		for len(together) < 3 { // as ranks that wait for each other
			select {
			case <-ctx.Done():
				return Exit{Code: CodeFailed}
			case <-time.After(time.Millisecond):
			}
		}
		fmt.Fprintf(streams.Stdout, "first\n%s", request.Command)
		fmt.Fprint(streams.Stderr, "bad\n")
		return Exit{Code: int(request.Host[1] - '0')}
	})
	var out, bad strings.Builder
	code := RunPdsh([]string{"-S", "-f", "1024", "-w", "n[1-3]", "run %n on %h"}, environ, &out, &bad)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	want := []string{"n1: first", "n1: run 0 on n1", "n2: first", "n2: run 1 on n2", "n3: first", "n3: run 2 on n3"}
	if code != 3 || !slices.Equal(lines, want) || strings.Count(bad.String(), ": bad\n") != 3 {
		t.Errorf("code %d, %q, %q", code, lines, bad.String())
	}
	if code := pdshCode([]int{0, 7}, false); code != 0 {
		t.Errorf("without -S a command's own code is not told, but %d", code)
	}
	if code := pdshCode([]int{0, CodeFailed}, false); code != 1 {
		t.Errorf("a host that was not reached: %d", code)
	}
	bad.Reset()
	if code := RunPdsh([]string{"-w", "n1"}, environ, &out, &bad); code != 1 || !strings.Contains(bad.String(), "no command") {
		t.Errorf("code %d, %q", code, bad.String())
	}
}

// TestSSH makes sure that ranks are reached through the agent, and that other
// hosts are left to another ssh in PATH, where there is one.
func TestSSH(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	environ := append(env(path, "secret"), "USER=ann", "LANG=C")
	serve(t, path, func(_ context.Context, request Request, streams IO) Exit {
		fmt.Fprintf(streams.Stdout, "%s: %s", request.Host, request.Command)
		return Exit{}
	})
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hostfile")
	if err := os.WriteFile(hosts, []byte("j-1-0 slots=2\nj-1-1 slots=2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	shims := filepath.Join(dir, launch.ShellDir)
	environ = append(environ, launch.EnvHostFile+"="+hosts, "PATH="+shims)
	run := func(args ...string) (int, string, string) {
		var out, bad strings.Builder
		code := RunSSH(args, environ, nil, &out, &bad)
		return code, out.String(), bad.String()
	}
	if code, out, bad := run("-o", "PasswordAuthentication=no", "-p", "2222", "root@j-1-1", "nvidia-smi", "-L"); code != 0 || out != "j-1-1: nvidia-smi -L" {
		t.Errorf("a rank: %d, %q, %q", code, out, bad)
	}
	// localhost is no rank, but has an address wherever this runs.
	if code, out, _ := run("localhost", "hostname -I"); code != 0 || !slices.Contains([]string{"127.0.0.1\n", "::1\n"}, out) {
		t.Errorf("addresses of a name: %d, %q", code, out)
	}
	for _, c := range []struct {
		host string
		want bool
	}{{"j-1-0", true}, {"j-1-1.cluster", true}, {"j-1-2", false}, {"github.com", false}} {
		if isRank(hosts, c.host) != c.want {
			t.Errorf("%s is a rank: want %t", c.host, c.want)
		}
	}
	if !isRank("", "any") || !isRank(filepath.Join(dir, "gone"), "any") {
		t.Error("without a host file the agent decides")
	}
	real := filepath.Join(dir, "bin")
	for _, place := range []string{shims, real} {
		if err := os.MkdirAll(place, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place, "ssh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if found, ok := realProgram("ssh", shims+":"+real); !ok || found != filepath.Join(real, "ssh") {
		t.Errorf("the real ssh: %q, %t", found, ok)
	}
	if found, ok := realProgram("ssh", shims); ok {
		t.Errorf("the shim calls itself: %q", found)
	}
}
