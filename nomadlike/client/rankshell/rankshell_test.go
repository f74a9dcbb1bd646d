package rankshell

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, path string, handle Handler) *Server {
	t.Helper()
	s, err := Listen(Config{
		Path: path, Token: "secret", UID: os.Getuid(), GID: os.Getgid(), Handler: handle, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func env(path, token string) []string {
	return []string{"HOME=/", EnvSocket + "=" + path, EnvToken + "=" + token}
}

func TestShellCarriesStreamsAndCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, func(_ context.Context, r Request, streams IO) Exit {
		if r.Token != "" {
			t.Error("the token went on to the handler")
		}
		var text []byte
		for chunk := range streams.Input {
			text = append(text, chunk...)
		}
		fmt.Fprintf(streams.Stdout, "%s|%s|%d bytes", r.Host, r.Command, len(text))
		io.WriteString(streams.Stderr, "warning")
		return Exit{Code: 7}
	})
	var stdout, stderr bytes.Buffer
	input := strings.Repeat("x", 300_000)
	code := RunShell([]string{"-x", "-p", "22", "pi-1-1", "orted", "-mca", `"a b"`}, env(path, "secret"), strings.NewReader(input), &stdout, &stderr)
	if code != 7 || stdout.String() != `pi-1-1|orted -mca "a b"|300000 bytes` || stderr.String() != "warning" {
		t.Fatalf("code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

func TestShellIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ran := false
	s := serve(t, path, func(context.Context, Request, IO) Exit {
		ran = true
		return Exit{Code: CodeFailed, Err: structs.NewError(structs.CodeNotFound, "client.peer_unknown", "host", "h", "ranks", "a, b")}
	})
	shell := func(args []string, path, token, want string) {
		t.Helper()
		var stderr bytes.Buffer
		if code := RunShell(args, env(path, token), nil, io.Discard, &stderr); code != CodeFailed || !strings.Contains(stderr.String(), want) {
			t.Errorf("code %d, stderr %q, want %q", code, stderr.String(), want)
		}
	}
	shell([]string{"h", "true"}, path, "guess", "who asks is not the task")
	if ran {
		t.Fatal("a wrong token reached the handler")
	}
	shell([]string{"h", "true"}, path, "secret", "its ranks are a, b")
	shell([]string{"h"}, path, "secret", "nomadlike mpi-rsh: ")
	shell([]string{"h", "true"}, "", "", "inside a task")
	s.uid = os.Getuid() + 1
	if os.Getuid() != 0 {
		shell([]string{"h", "true"}, path, "secret", "who asks is not the task")
	}
	s.Close()
	shell([]string{"h", "true"}, path, "secret", "cannot be reached")
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestSocketIsPrivateAndLongPathsWork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("path", 20))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	for range 2 { // the second replaces what the first left
		serve(t, path, func(context.Context, Request, IO) Exit { return Exit{Code: 3} })
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if code := RunShell([]string{"h", "true"}, env(path, "secret"), nil, io.Discard, io.Discard); code != 3 {
		t.Fatalf("code %d", code)
	}
}

func TestHungUpShellCancelsTheHandler(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	cancelled := make(chan struct{})
	serve(t, path, func(ctx context.Context, _ Request, _ IO) Exit {
		<-ctx.Done()
		close(cancelled)
		return Exit{}
	})
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := newFrameWriter(conn).json(kindRequest, Request{Token: "secret", Host: "h", Command: "sleep 9"}); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Fatal("the handler still runs")
	}
}

func TestSignalsAreHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ready := make(chan struct{})
	serve(t, path, func(ctx context.Context, _ Request, streams IO) Exit {
		close(ready)
		select {
		case name := <-streams.Signals:
			io.WriteString(streams.Stdout, name)
		case <-ctx.Done():
		}
		return Exit{Code: 130}
	})
	var stdout bytes.Buffer
	var shell sync.WaitGroup
	shell.Go(func() { RunShell([]string{"h", "true"}, env(path, "secret"), nil, &stdout, io.Discard) })
	<-ready
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	shell.Wait()
	if stdout.String() != "SIGUSR1" {
		t.Fatalf("handed on: %q", stdout.String())
	}
}

func TestGarbageIsNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, func(context.Context, Request, IO) Exit {
		t.Error("garbage reached the handler")
		return Exit{}
	})
	huge := binary.BigEndian.AppendUint32([]byte{byte(kindRequest)}, 1<<31)
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", string(huge), "R\x00\x00\x00\x02{]", "i\x00\x00\x00\x01x", "R\x00\x00\x00\x02{}"} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, garbage)
		eventually.Within(t, time.Minute, "connection ends", func() bool {
			_, err := io.ReadAll(conn)
			return err == nil || errors.Is(err, syscall.ECONNRESET)
		})
		conn.Close()
	}
}

func TestTextsExist(t *testing.T) {
	for _, id := range []string{"client.rsh_usage", "client.rsh_outside", "client.rsh_no_agent", "client.rsh_refused"} {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, id) {
				t.Errorf("%s has no text in %s", id, language)
			}
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	var buffer bytes.Buffer
	w := newFrameWriter(&buffer)
	w.json(kindRequest, Request{Token: "t", Host: "h", Command: "c"})
	w.frame(kindStdinEnd, nil)
	f.Add(buffer.Bytes())
	f.Add([]byte{'o', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			k, payload, err := readFrame(r)
			if err != nil {
				return
			}
			if len(payload) > k.max() {
				t.Fatalf("kind %q carries %d bytes", byte(k), len(payload))
			}
			var again bytes.Buffer
			if err := newFrameWriter(&again).frame(k, payload); err != nil {
				t.Fatal(err)
			}
			k2, payload2, err := readFrame(&again)
			if err != nil || k2 != k || !bytes.Equal(payload, payload2) {
				t.Fatalf("frame changed on the way: %v", err)
			}
		}
	})
}
