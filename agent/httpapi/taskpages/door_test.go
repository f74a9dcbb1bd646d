package taskpages

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

const (
	testDomain = "tasks.example.com"
	testAlloc  = "57ea506c6c4d4def55902c1aee58b5f0"
)

// pages is a door before one task, which serves on loopback ports of this machine.
type pages struct {
	t       *testing.T
	server  *httptest.Server
	signIns *front.Sessions
	port    int // that the task's program listens on
	refuse  atomic.Pointer[structs.Error]
	revoke  atomic.Pointer[context.CancelFunc] // ends what is open
	opened  atomic.Int32
}

func newPages(t *testing.T, program http.Handler) *pages {
	p := &pages{t: t}
	serving := httptest.NewServer(program)
	t.Cleanup(serving.Close)
	address, err := url.Parse(serving.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.port, _ = strconv.Atoi(address.Port())
	quiet := slog.New(slog.DiscardHandler)
	api := front.New(front.Config{Log: quiet, Now: time.Now, Rest: http.NotFoundHandler()})
	p.signIns = api.SignIns()
	api.Beside = New(Config{
		Domain: testDomain, Log: quiet, SignIns: p.signIns, ExecPath: func(alloc string) string { return "/enter/" + alloc }, Use: p.use,
		Alone: func(handle front.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/enter/"+testAlloc || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("the task was asked for as %s with %q", r.URL.Path, r.Header.Get("Authorization"))
				}
				if err := handle(&front.Request{Request: r}); err != nil {
					api.Fail(w, r, err)
				}
			})
		},
	})
	p.server = httptest.NewTLSServer(api)
	t.Cleanup(p.server.Close)
	return p
}

// use plays the task: a server of ssh that dials ports of this machine.
func (p *pages) use(r *front.Request, use func(context.Context, *ssh.Client)) error {
	p.opened.Add(1)
	if refusal := p.refuse.Load(); refusal != nil {
		return refusal
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // both sides of ssh begin by writing, which a net.Pipe does not buffer
	if err != nil {
		return err
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	far, err := listener.Accept()
	if err != nil {
		return err
	}
	defer far.Close()
	go forwarding(far)
	connection, channels, requests, err := ssh.NewClientConn(near, "task", &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p.revoke.Store(&cancel)
	use(ctx, ssh.NewClient(connection, channels, requests))
	return nil
}

func forwarding(conn net.Conn) {
	_, key, _ := ed25519.GenerateKey(nil)
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		var to struct {
			Host       string
			Port       uint32
			From       string
			FromNumber uint32
		}
		if ssh.Unmarshal(asked.ExtraData(), &to) != nil {
			return
		}
		there, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
		if err != nil {
			_ = asked.Reject(ssh.ConnectionFailed, "nomadlike: "+to.Host+": connection refused")
			continue
		}
		channel, more, err := asked.Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(more)
		go func() {
			defer channel.Close()
			_, _ = io.Copy(channel, there)
		}()
		go func() {
			defer there.Close()
			_, _ = io.Copy(there, channel)
		}()
	}
}

func (p *pages) host(port int) string { return Host(testDomain, testAlloc, port) }

// entry is the address that the API hands out for a port.
func (p *pages) entry(port int) string {
	p.t.Helper()
	asked, _ := http.NewRequest(http.MethodPost, "https://localhost/", nil)
	asked.Header.Set("Authorization", "Bearer secret")
	entry, _, err := p.signIns.Entry(&front.Request{Request: asked, Caller: front.Caller{Token: new(structs.Token)}}, p.host(port))
	if err != nil {
		p.t.Fatal(err)
	}
	return EntryPath + "?" + url.Values{EntryParam: {entry}}.Encode()
}

// ask sends a request as a browser would, and returns the answer with its body.
func (p *pages) ask(host, path, pass string, header ...string) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.server.URL+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Host = host
	if pass != "" {
		r.Header.Set("Cookie", passCookie+"="+pass+"; theirs=1")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := *p.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer, string(body)
}

// pass enters a port, and returns the cookie's value.
func (p *pages) pass(port int) string {
	p.t.Helper()
	answer, body := p.ask(p.host(port), p.entry(port), "")
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/" || len(answer.Cookies()) != 1 {
		p.t.Fatalf("enter: %d %s", answer.StatusCode, body)
	}
	cookie := answer.Cookies()[0]
	if cookie.Name != passCookie || !cookie.Secure || !cookie.HttpOnly || cookie.Domain != "" || cookie.Path != "/" || cookie.SameSite != http.SameSiteLaxMode {
		p.t.Errorf("the pass is %s", cookie)
	}
	return cookie.Value
}

// told is a program that says what it was asked, and speaks backwards on a websocket.
func told(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_ = json.NewEncoder(w).Encode([]string{r.Method, r.URL.Path, r.Host, r.Header.Get("Cookie"), r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-For")})
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, both)
	})
}

func TestPageOfATask(t *testing.T) {
	p := newPages(t, told(t))
	host := p.host(p.port)
	pass := p.pass(p.port)
	answer, body := p.ask(host, "/lab/tree", pass)
	if want := `["GET","/lab/tree","` + host + `","theirs=1","https",""]` + "\n"; answer.StatusCode != http.StatusOK || body != want {
		t.Errorf("%d %s, want %s", answer.StatusCode, body, want)
	}
	if _, _ = p.ask(host, "/", pass); p.opened.Load() != 1 {
		t.Errorf("the task was entered %d times", p.opened.Load())
	}

	// A websocket, which goes on in both directions until the right to it ends.
	conn := p.dial(host, pass, "https://"+host)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	switched, err := http.ReadResponse(reader, nil)
	if err != nil || switched.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", switched, err)
	}
	for range 3 {
		fmt.Fprintln(conn, "hello")
		if line, err := reader.ReadString('\n'); line != "hello\n" || err != nil {
			t.Fatalf("%q %v", line, err)
		}
	}
	p.refuse.Store(structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", testAlloc))
	(*p.revoke.Load())()
	if rest, _ := io.ReadAll(reader); len(rest) != 0 {
		t.Errorf("%q after the end", rest)
	}
	for { // the link is forgotten a moment after its last byte
		answer, body = p.ask(host, "/", pass)
		if answer.StatusCode != http.StatusBadGateway {
			break
		}
	}
	if answer.StatusCode != http.StatusConflict || answer.Header.Get("Clear-Site-Data") == "" || !strings.Contains(body, testAlloc) {
		t.Errorf("after its end the task's page says %d %s %v", answer.StatusCode, body, answer.Header)
	}
}

// dial asks for a websocket, and returns the connection before the answer is read.
func (p *pages) dial(host, pass, origin string) net.Conn {
	p.t.Helper()
	conn, err := tls.Dial("tcp", p.server.Listener.Addr().String(), p.server.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: %s=%s\r\n", host, passCookie, pass)
	if origin != "" {
		fmt.Fprintf(conn, "Origin: %s\r\n", origin)
	}
	fmt.Fprint(conn, "\r\n")
	return conn
}

// Whoever has no pass of this very origin, and whoever comes from a page of another one,
// reaches no task.
func TestOtherOrigins(t *testing.T) {
	p := newPages(t, told(t))
	host, pass := p.host(p.port), p.pass(p.port)
	entry := p.entry(p.port)
	if answer, _ := p.ask(p.host(p.port+1), entry, ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("an entry of another port is taken: %d", answer.StatusCode)
	}
	for again, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		if answer, _ := p.ask(host, entry, ""); answer.StatusCode != want {
			t.Errorf("entry used %d times before: %d", again, answer.StatusCode)
		}
	}
	for _, c := range []struct {
		name, host, path, pass string
		header                 []string
		want                   int
	}{
		{"no pass", host, "/", "", nil, http.StatusUnauthorized},
		{"an invented pass", host, "/", strings.Repeat("A", 200), nil, http.StatusUnauthorized},
		{"a pass of another port", p.host(p.port + 1), "/", pass, nil, http.StatusUnauthorized},
		{"an entry for a pass", host, "/", strings.TrimPrefix(p.entry(p.port), EntryPath+"?"+EntryParam+"="), nil, http.StatusUnauthorized},
		{"a host of no port", "lab." + testDomain, "/", pass, nil, http.StatusNotFound},
		{"a page of ours that is none", host, "/.nomadlike/other", pass, nil, http.StatusNotFound},
		{"another site's script", host, "/", pass, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"another task's script", host, "/", pass, []string{"Origin", "https://" + p.host(1)}, http.StatusForbidden},
		{"another task's picture", host, "/", pass, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, http.StatusForbidden},
		{"another task's frame", host, "/", pass, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, http.StatusForbidden},
		{"a link", host, "/", pass, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, http.StatusOK},
		{"its own script", host, "/", pass, []string{"Origin", "https://" + host, "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		{"another protocol", host, "/", pass, []string{"Origin", "https://" + host, "Connection", "Upgrade", "Upgrade", "h2c"}, http.StatusBadRequest},
	} {
		if answer, body := p.ask(c.host, c.path, c.pass, c.header...); answer.StatusCode != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, answer.StatusCode, body, c.want)
		}
	}
	for _, origin := range []string{"", "null", "https://evil.example", "https://" + p.host(1), "http://" + host} {
		conn := p.dial(host, pass, origin)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("a websocket from %q: %v %v", origin, answer, err)
		}
		conn.Close()
	}
}

// A port on which nothing listens yet is looked at again, by people's browsers.
func TestNobodyListens(t *testing.T) {
	p := newPages(t, told(t))
	idle, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := idle.Addr().(*net.TCPAddr).Port
	idle.Close()
	pass := p.pass(port)
	answer, body := p.ask(p.host(port), "/", pass, "Accept", "text/html", "Accept-Language", "zh-CN")
	if answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Refresh") != "2" || !strings.Contains(body, messages.Text(messages.Chinese, "taskpage.nobody", map[string]string{"port": strconv.Itoa(port)})) {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, body)
	}
	if answer, body := p.ask(p.host(port), "/app.js", pass); answer.Header.Get("Refresh") != "" || strings.Contains(body, "<") {
		t.Errorf("%v %s", answer.Header, body)
	}
}

// The task's right is judged anew with each link, and why there is none is shown.
func TestRefusedLink(t *testing.T) {
	p := newPages(t, told(t))
	pass := p.pass(p.port)
	p.refuse.Store(structs.NewError(structs.CodeUnauthorized, "agent.token_revoked"))
	if answer, body := p.ask(p.host(p.port), "/", pass); answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("Clear-Site-Data") != "" || !strings.Contains(body, "token") {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, body)
	}
	p.refuse.Store(nil)
	if answer, _ := p.ask(p.host(p.port), "/", pass); answer.StatusCode != http.StatusOK || p.opened.Load() != 2 {
		t.Errorf("%d, entered %d times", answer.StatusCode, p.opened.Load())
	}
}
