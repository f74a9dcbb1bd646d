package taskssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskside"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTask runs nothing, and writes what it was asked to run.
func fakeTask(ctx context.Context, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	switch word := spec.Command[len(spec.Command)-1]; {
	case spec.Side && spec.Command[0] == taskside.Dial && strings.HasSuffix(word, ":1"):
		fmt.Fprint(streams.Stderr, "connection refused")
		return driver.ExitResult{Code: 1}, nil
	case spec.Side && spec.Command[0] == taskside.Dial:
		_, _ = streams.Stdout.Write([]byte{taskside.Connected})
		_, _ = io.Copy(streams.Stdout, streams.Stdin)
		return driver.ExitResult{}, nil
	case word == "killed":
		return driver.ExitResult{Code: 137, Signal: "SIGKILL"}, nil
	case word == "flood":
		for ctx.Err() == nil {
			if _, err := streams.Stdout.Write(make([]byte, 32<<10)); err != nil {
				return driver.ExitResult{}, err
			}
		}
		return driver.ExitResult{}, ctx.Err()
	case word == "panic":
		panic("of a driver")
	}
	fmt.Fprintf(streams.Stdout, "%v %v", spec.Command[len(spec.Command)-1], spec.Env)
	return driver.ExitResult{Code: 3}, nil
}

// pair is a connection with itself: both sides speak first, so it has to hold some.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if ours, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// connected is a client of a server that serves fakeTask until the test ends.
func connected(t *testing.T, change func(*ssh.ClientConfig)) (client *ssh.Client, end func() error, err error) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Config{HostKey: signer, Run: fakeTask}, theirs) }()
	end = func() error {
		cancel()
		err := <-served
		served <- err
		return err
	}
	t.Cleanup(func() { ours.Close(); _ = end() })
	config := &ssh.ClientConfig{User: "anybody", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())}
	if change != nil {
		change(config)
	}
	conn, channels, requests, err := ssh.NewClientConn(ours, "task", config)
	if err != nil {
		return nil, end, err
	}
	return ssh.NewClient(conn, channels, requests), end, nil
}

func opened(t *testing.T, client *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSessions(t *testing.T) {
	client, _, err := connected(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, client)
	if s.Setenv("LD_PRELOAD", "x") == nil || s.Setenv("LANG", "a\x00b") == nil || s.Setenv("LC_ALL", strings.Repeat("x", envBytesMax+1)) == nil {
		t.Error("the task takes any variable")
	}
	if err := s.Setenv("LC_ALL", "zh_CN.UTF-8"); err != nil {
		t.Error(err)
	}
	output, err := s.Output("it's")
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 3 || string(output) != "it's [LC_ALL=zh_CN.UTF-8]" {
		t.Errorf("the command: %q, %v", output, err)
	}
	if err := opened(t, client).Run("killed"); !errors.As(err, &exit) || exit.Signal() != "KILL" {
		t.Errorf("a killed command: %v", err)
	}
	if opened(t, client).RequestSubsystem("netconf") == nil {
		t.Error("there is any subsystem")
	}
	if err := opened(t, client).Run("panic"); err == nil {
		t.Error("a panic is a success")
	}
	if err := opened(t, client).Run("still"); !errors.As(err, &exit) {
		t.Errorf("after a panic: %v", err)
	}
}

func TestForwarding(t *testing.T) {
	client, _, err := connected(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"tcp 127.0.0.1:80", "unix /run/x"} {
		kind, address, _ := strings.Cut(network, " ")
		conn, err := client.Dial(kind, address)
		if err != nil {
			t.Fatal(err)
		}
		echoed := make([]byte, 5)
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(conn, echoed); err != nil || string(echoed) != "hello" {
			t.Errorf("over %s: %q, %v", network, echoed, err)
		}
		conn.Close()
	}
	for address, want := range map[string]string{"127.0.0.1:1": "connection refused", "a b:80": "is none", "-oProxy:70000": "is none"} {
		var refused *ssh.OpenChannelError
		host, port, _ := strings.Cut(address, ":")
		var number uint32
		if _, err := fmt.Sscan(port, &number); err != nil {
			t.Fatal(err)
		}
		payload := ssh.Marshal(struct {
			Host   string
			Port   uint32
			Origin string
			From   uint32
		}{host, number, "", 0})
		if _, _, err := client.OpenChannel("direct-tcpip", payload); !errors.As(err, &refused) || !strings.Contains(refused.Message, want) {
			t.Errorf("to %s: %v", address, err)
		}
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the task's side listens for the client")
	}
	if ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
		t.Errorf("keep-alive: %v, %v", ok, err)
	}
	if _, _, err := client.OpenChannel("x11", nil); err == nil {
		t.Error("any channel opens")
	}
}

// Channels are bounded, and who never reads holds nobody once access ends.
func TestHungry(t *testing.T) {
	client, end, err := connected(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range channelsMax {
		channel, requests, err := client.OpenChannel("session", nil)
		if err != nil {
			t.Fatalf("channel %d: %v", i, err)
		}
		go ssh.DiscardRequests(requests)
		if i%8 == 0 {
			if _, err := channel.SendRequest("exec", false, ssh.Marshal(struct{ Text string }{"flood"})); err != nil {
				t.Fatal(err)
			}
		}
	}
	var refused *ssh.OpenChannelError
	if _, _, err := client.OpenChannel("session", nil); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("one more channel: %v", err)
	}
	if err := end(); err != nil { // returns when everything has ended
		t.Errorf("the end: %v", err)
	}
}

func TestOldAlgorithms(t *testing.T) {
	for name, change := range map[string]func(*ssh.ClientConfig){
		"key exchange": func(c *ssh.ClientConfig) { c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1} },
		"cipher":       func(c *ssh.ClientConfig) { c.Ciphers = []string{ssh.InsecureCipherAES128CBC} },
		"MAC": func(c *ssh.ClientConfig) {
			c.Ciphers, c.MACs = []string{ssh.CipherAES128CTR}, []string{ssh.InsecureHMACSHA196}
		},
		"host key": func(c *ssh.ClientConfig) { c.HostKeyAlgorithms = []string{ssh.KeyAlgoRSASHA256} },
	} {
		_, end, err := connected(t, change)
		if err == nil {
			t.Errorf("%s: connected", name)
		}
		if end() == nil {
			t.Errorf("%s: the server says nothing", name)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add(ssh.Marshal(struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}{"::1", 80, "", 0}))
	f.Add(ssh.Marshal(struct{ Name, Value string }{"LC_ALL", "C"}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, parse := range []func([]byte) (string, string, bool){parseTCP, parseSocket, parseEnv} {
			if first, second, ok := parse(payload); ok && (first == "" || strings.ContainsRune(first+second, 0)) {
				t.Errorf("%q %q", first, second)
			}
		}
		if term, _, ok := parseTerminal(payload); ok && strings.ContainsAny(term, "\x00=\n /") {
			t.Errorf("terminal %q", term)
		}
		parseSize(payload)
		parseText(payload)
	})
}
