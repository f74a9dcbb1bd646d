package agent

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// rawRequest sends bytes over TLS as they are and returns the status line.
func rawRequest(t *testing.T, agent *Agent, text string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", agent.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

func TestSmuggledRequestsAreRefused(t *testing.T) {
	agent, _ := devAgent(t)
	host := "Host: " + agent.Addr() + "\r\n"
	for name, text := range map[string]string{
		"content length and chunks": "POST /v1/jobs HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
		"two content lengths":       "POST /v1/jobs HTTP/1.1\r\n" + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
		"unknown coding":            "POST /v1/jobs HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"two hosts":                 "GET /v1/agent/health HTTP/1.1\r\n" + host + "Host: evil\r\n\r\n",
		"no host":                   "GET /v1/agent/health HTTP/1.1\r\n\r\n",
		"folded header":             "GET /v1/agent/health HTTP/1.1\r\n" + host + "X-A: b\r\n c\r\n\r\n",
		"bare line feed":            "GET /v1/agent/health HTTP/1.1\r\n" + host + "X-A: b\n\r\n",
		"long header":               "GET /v1/agent/health HTTP/1.1\r\n" + host + "X-A: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
	} {
		status := rawRequest(t, agent, text)
		if !strings.Contains(status, " 400") && !strings.Contains(status, " 431") && !strings.Contains(status, " 501") {
			t.Errorf("%s: %s", name, status)
		}
	}
	if status := rawRequest(t, agent, "GET /v1/agent/health HTTP/1.1\r\n"+host+"\r\n"); !strings.Contains(status, " 200") {
		t.Errorf("honest request: %s", status)
	}
}

// Half a request costs its sender the connection, and nobody else anything.
func TestSlowRequestsBlockNobody(t *testing.T) {
	agent, client := devAgent(t)
	for range 50 {
		conn, err := net.Dial("tcp", agent.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "\x16\x03"); err != nil { // the beginning of a handshake
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if _, err := client.Health(t.Context()); err != nil || time.Since(begin) > time.Second {
		t.Errorf("health: %v after %s", err, time.Since(begin))
	}
}
