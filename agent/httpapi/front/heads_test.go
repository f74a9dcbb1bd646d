package front

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// heads serves an echo behind headConn, as serveHTTP does.
func heads(t testing.TB) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			line, _ := buffered.ReadString('!')
			_, _ = io.WriteString(conn, line)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(append([]byte(r.URL.Path+" "), body...))
	}))
	server.Listener, server.Config.ConnState = HeadListener{server.Listener}, HeadState
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// told sends text on one connection, in pieces of size bytes, and returns the
// statuses and bodies of the answers, until the connection ends or has answered
// wanted times.
func told(t testing.TB, addr, text string, size, wanted int) []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := io.WriteString(conn, rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}()
	var answers []string
	for reader := bufio.NewReader(conn); len(answers) < wanted; {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return append(answers, "closed")
		}
		body, _ := io.ReadAll(response.Body)
		answers = append(answers, response.Status[:3]+" "+string(body))
	}
	return answers
}

const headsHost = "Host: h\r\n"

// What honest programs send passes unchanged, on one connection, however it is
// cut into pieces.
func TestHonestHeadsPass(t *testing.T) {
	addr := heads(t)
	long := strings.Repeat("line\n folded?\n\n", 1000)
	text := "GET /one HTTP/1.1\r\n" + headsHost + "\r\n" +
		"POST /two HTTP/1.1\r\n" + headsHost + "Content-Length: 8\r\n\r\na\n b\n\nc\n" +
		"\r\nPOST /three HTTP/1.1\r\n" + headsHost + "transfer-encoding: Chunked\r\n\r\n4;x=y\r\n\n \n\t\r\n003\r\nend\r\n0\r\nX-T: v\r\n\r\n" +
		"PUT /four HTTP/1.1\r\n" + headsHost + "Content-Length: 15000\r\nContent-Length:  15000\r\n\r\n" + long +
		"GET /five HTTP/1.0\r\nConnection: keep-alive\r\nX-Empty:\r\n\r\n" +
		"GET /six HTTP/1.1\r\nConnection: close\r\n" + headsHost + "\r\n"
	want := []string{"200 /one ", "200 /two a\n b\n\nc\n", "200 /three \n \n\tend", "200 /four " + long, "200 /five ", "200 /six "}
	for _, size := range []int{1, 7, 4096, len(text)} {
		got := told(t, addr, text, size, len(want))
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("in pieces of %d bytes: %.300q", size, got)
		}
	}
	if got := told(t, addr, "GET / HTTP/1.1\r\n"+headsHost+"Connection: Upgrade\r\nUpgrade: x\r\n\r\n", 9999, 1); got[0] != "101 " {
		t.Errorf("%q", got)
	}
}

// A connection that a handler took over may say what it likes.
func TestHeadsLetGoOfOtherProtocols(t *testing.T) {
	conn, err := net.Dial("tcp", heads(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n"+headsHost+"Connection: Upgrade\r\nUpgrade: x\r\n\r\n")
	reader := bufio.NewReader(conn)
	if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", response, err)
	}
	_, _ = io.WriteString(conn, "a\n b\n\n!")
	if line, err := reader.ReadString('!'); line != "a\n b\n\n!" {
		t.Errorf("%q %v", line, err)
	}
}

// Folded lines and bare line feeds are answered with 400 and the end of the
// connection, wherever their head stands.
func TestFoldedAndBareLinesAreRefused(t *testing.T) {
	addr := heads(t)
	first := "POST /first HTTP/1.1\r\n" + headsHost + "Content-Length: 3\r\n\r\n\n a"
	chunks := "POST /chunks HTTP/1.1\r\n" + headsHost + "Transfer-Encoding: chunked\r\n\r\n"
	for name, text := range map[string]string{
		"folded":                         "GET / HTTP/1.1\r\n" + headsHost + "X-A: b\r\n c\r\n\r\n",
		"folded with a tab":              "GET / HTTP/1.1\r\n" + headsHost + "X-A: b\r\n\tc\r\n\r\n",
		"folded length":                  "POST / HTTP/1.1\r\n" + headsHost + "Content-Length:\r\n 5\r\n\r\nabcde",
		"folded coding":                  "POST / HTTP/1.1\r\n" + headsHost + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		"bare in the request line":       "GET / HTTP/1.1\n" + headsHost + "\r\n",
		"bare after a header":            "GET / HTTP/1.1\r\nHost: h\nX-A: b\r\n\r\n",
		"bare at the end":                "GET / HTTP/1.1\r\n" + headsHost + "\n",
		"bare everywhere":                "GET / HTTP/1.1\nHost: h\n\n",
		"behind a body":                  first + "GET / HTTP/1.1\r\n" + headsHost + "X-A: b\r\n c\r\n\r\n",
		"bare, behind a body":            first + "GET / HTTP/1.1\n" + headsHost + "\r\n",
		"behind chunks":                  chunks + "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: h\n\r\n",
		"folded trailers":                chunks + "1\r\na\r\n0\r\nX-T: a\r\n b\r\n\r\n",
		"bare in trailers":               chunks + "1\r\na\r\n0\r\nX-T: a\n\r\n",
		"bare behind a chunk":            chunks + "1\r\na\n0\r\n\r\n",
		"bare behind the size of chunks": chunks + "1\na\r\n0\r\n\r\n",
		"an older version with chunks":   "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n",
	} {
		for _, size := range []int{1, len(text)} {
			got := told(t, addr, text+"GET /last HTTP/1.1\r\nConnection: close\r\n"+headsHost+"\r\n", size, 4)
			if strings.HasPrefix(text, first) && len(got) > 1 && strings.HasPrefix(got[0], "200 /first") {
				got = got[1:]
			}
			if strings.HasPrefix(name, "behind chunks") && len(got) > 1 && got[0] == "200 /chunks a" {
				got = got[1:]
			}
			if len(got) != 2 || !strings.HasPrefix(got[0], "400 ") || got[1] != "closed" {
				t.Errorf("%s, in pieces of %d bytes: %.300q", name, size, got)
			}
		}
	}
}

var (
	brokenLine = regexp.MustCompile(`(^|[^\r])\n|\r\n[ \t]`)
	sizeLine   = regexp.MustCompile(`^([0-9a-fA-F]{1,16})[ \t]*\r\n|^([0-9a-fA-F]{1,16});[^\r\n]{0,80}\r\n`)
)

// slowHeads is the slow twin: net/http itself finds the requests, all bytes are
// there, and regular expressions look at their heads. Sure is false where
// net/http would have closed the connection, or the framer may be stricter.
func slowHeads(data []byte) (good, sure bool) {
	last, lenient := "", false
	for {
		if last == http.MethodPost {
			for range 4 { // as net/http does
				if len(data) > 0 && (data[0] == '\r' || data[0] == '\n') {
					data, lenient = data[1:], true
				}
			}
		}
		if lenient {
			return true, false
		}
		if len(data) == 0 {
			return true, true
		}
		raw := bytes.NewReader(data)
		reader := bufio.NewReaderSize(raw, 16)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return true, false
		}
		head := len(data) - raw.Len() - reader.Buffered()
		if brokenLine.Match(data[:head]) {
			return false, true
		}
		if len(request.Header["Content-Length"]) > 0 && len(request.TransferEncoding) > 0 || request.ProtoMinor != 1 || request.ProtoMajor != 1 || bytes.Contains(data[:head], []byte("\r\r")) {
			return true, false
		}
		last = request.Method
		if len(request.TransferEncoding) == 0 {
			if request.ContentLength > int64(len(data)-head) {
				return true, true // cut off
			}
			data = data[head+int(request.ContentLength):]
			continue
		}
		for data = data[head:]; ; {
			size := sizeLine.FindSubmatch(data)
			if size == nil {
				return true, false
			}
			count := 0
			for _, digit := range strings.ToLower(string(size[1]) + string(size[2])) {
				count = min(count<<4|strings.IndexRune("0123456789abcdef", digit), 1<<20)
			}
			data = data[len(size[0]):]
			if count == 0 {
				break
			}
			if len(data) < count+2 || string(data[count:count+2]) != "\r\n" {
				return true, false
			}
			data = data[count+2:]
		}
		if !bytes.HasPrefix(data, []byte("\r\n")) {
			return true, false // trailers
		}
		data = data[2:]
	}
}

// FuzzHeads: what passes has only heads without broken lines, what is refused
// has one, and how the bytes are cut into pieces makes no difference.
func FuzzHeads(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\n aGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n\n a\r\n0\r\n\r\nGET / HTTP/1.1\r\nA: b\n\r\n",
		"POST / HTTP/1.1\r\ncontent-length:5\r\nContent-Length: 5 \r\n\r\n12345\r\nGET / HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var whole, pieces headFramer
		passed := whole.pass(data)
		if (whole.err == nil) != (passed == len(data)) || whole.err != nil && !errors.Is(whole.err, errHead) {
			t.Fatalf("%d of %d bytes passed: %v", passed, len(data), whole.err)
		}
		done := 0
		for done < len(data) && pieces.err == nil {
			done += pieces.pass(data[done:min(len(data), done+int(size)+1)])
		}
		if done != passed || (pieces.err == nil) != (whole.err == nil) {
			t.Fatalf("%d bytes passed whole, %d in pieces of %d", passed, done, int(size)+1)
		}
		good, sure := slowHeads(data)
		if !good && whole.err == nil {
			t.Fatalf("%q passed, and net/http reads a head with a broken line", data)
		}
		if good && sure && whole.err != nil {
			t.Fatalf("%q is refused at byte %d, and every head is good", data, passed)
		}
	})
}
