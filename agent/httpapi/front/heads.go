package front

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// HeadListener wraps the connections of people in headConn, below net/http.
type HeadListener struct{ net.Listener }

// Accept waits for the next connection.
func (l HeadListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: conn}, nil
}

// HeadState is http.Server.ConnState: a connection that a handler took over
// speaks another protocol from there on.
func HeadState(conn net.Conn, state http.ConnState) {
	if guarded, ok := conn.(*headConn); ok && state == http.StateHijacked {
		guarded.other.Store(true)
	}
}

// headConn is a connection of HTTP/1 whose requests have no folded lines and
// no bare line feed in their heads, the trailers of chunked bodies included.
// net/http reads both as if nothing were wrong, and a proxy before this agent
// may not: what one takes for a header, the other takes for the next request.
// It looks at bytes as they pass and keeps none of them.
type headConn struct {
	net.Conn
	other  atomic.Bool // hijacked
	framer headFramer  // of the one goroutine that reads
}

// Read reads up to the first byte that breaks the rules. net/http answers the
// error that stands for it with 400 and closes the connection: a line that
// breaks a rule comes before the end of its head, so no handler ever sees it.
func (c *headConn) Read(p []byte) (int, error) {
	if c.other.Load() {
		return c.Conn.Read(p)
	}
	if c.framer.err != nil {
		return 0, c.framer.err
	}
	n, err := c.Conn.Read(p)
	if good := c.framer.pass(p[:n]); good < n {
		return good, c.framer.err
	}
	return n, err
}

// ConnectionState lets net/http fill Request.TLS.
func (c *headConn) ConnectionState() tls.ConnectionState {
	if secured, ok := c.Conn.(*tls.Conn); ok {
		return secured.ConnectionState()
	}
	return tls.ConnectionState{}
}

// CloseWrite lets net/http end a connection so that its last answer arrives.
func (c *headConn) CloseWrite() error {
	if closer, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return closer.CloseWrite()
	}
	return nil
}

// errHead is returned for requests that break the rules of headConn.
var errHead = errors.New("malformed head of a request")

// Bounds of what headFramer remembers of a line. What it acts upon is shorter.
const (
	lineKept = 128 // bytes from its beginning
	tailKept = 10  // bytes from its end: "HTTP/1.1\r\n"
)

// framePart is where in a stream of requests a byte stands.
//
//	           ┌──────────────────────────────────────────────┐
//	           ▼                                              │
//	frameStart → frameHeaders ─┬─────────────────────────────►┤ no body
//	                           ├─► frameBody ────────────────►┤
//	                           └─► frameSize ⇄ frameChunk     │
//	                                   └─────► frameTrailers ►┘
type framePart int

const (
	frameStart    framePart = iota // a request line, or an empty line before it
	frameHeaders                   // lines up to an empty one
	frameBody                      // left bytes
	frameSize                      // the line before a chunk
	frameChunk                     // left bytes, and the end of their line
	frameTrailers                  // lines up to an empty one
)

// headFramer finds the heads in a stream of HTTP/1 requests, by the same rules
// as net/http, and checks their lines.
type headFramer struct {
	err  error
	part framePart
	left uint64 // bytes of the body or chunk to come

	line struct { // the one that is being read
		size int
		head [lineKept]byte
		tail [tailKept]byte // the last bytes, at its end
	}
	blank   int    // empty lines before the request line
	modern  bool   // HTTP/1.1
	chunked bool   // a Transfer-Encoding of one value, chunked
	length  string // Content-Length; empty: none
}

// pass looks at the next bytes and returns how many of them are good: all,
// unless err is set.
func (f *headFramer) pass(p []byte) int {
	done := 0
	for done < len(p) && f.err == nil {
		rest := p[done:]
		if f.part == frameBody || f.part == frameChunk && f.left > 0 {
			n := min(uint64(len(rest)), f.left)
			f.left -= n
			done += int(n)
			if f.part == frameBody && f.left == 0 {
				f.begin()
			}
			continue
		}
		done += f.lines(rest)
	}
	return done
}

// lines takes bytes up to the end of a line.
func (f *headFramer) lines(p []byte) int {
	if f.line.size == 0 && (p[0] == ' ' || p[0] == '\t') && f.part != frameSize {
		return f.refuse() // a folded line, or no request at all
	}
	end := bytes.IndexByte(p, '\n')
	whole := end >= 0
	if whole {
		p = p[:end+1]
	}
	if f.line.size < lineKept {
		copy(f.line.head[f.line.size:], p)
	}
	f.line.size += len(p)
	if len(p) >= tailKept {
		copy(f.line.tail[:], p[len(p)-tailKept:])
	} else {
		copy(f.line.tail[:], f.line.tail[len(p):])
		copy(f.line.tail[tailKept-len(p):], p)
	}
	if !whole {
		return len(p)
	}
	if f.line.size < 2 || f.line.tail[tailKept-2] != '\r' {
		return len(p) - 1 + f.refuse() // a bare line feed
	}
	f.endLine()
	f.line.size = 0
	if f.err != nil {
		return len(p) - 1
	}
	return len(p)
}

// refuse ends the stream before the byte that it is called for.
func (f *headFramer) refuse() int {
	f.err = errHead
	return 0
}

// begin waits for the next request.
func (f *headFramer) begin() {
	f.part, f.blank, f.modern, f.chunked, f.length, f.left = frameStart, 0, false, false, "", 0
}

// text is the line, without its end; cut is set when it was longer.
func (f *headFramer) text() (line []byte, cut bool) {
	size := f.line.size - len("\r\n")
	return f.line.head[:min(size, lineKept)], size > lineKept
}

func (f *headFramer) endLine() {
	line, cut := f.text()
	switch f.part {
	case frameStart:
		if len(line) == 0 { // net/http takes some of them after a POST
			if f.blank++; f.blank > 2 {
				f.refuse()
			}
			return
		}
		f.part, f.modern = frameHeaders, bytes.HasPrefix(f.line.tail[:], []byte("HTTP/1.1"))
	case frameHeaders:
		if len(line) == 0 {
			f.endHead()
			return
		}
		f.header(line, cut)
	case frameSize:
		f.chunkSize(line, cut)
	case frameChunk:
		if len(line) != 0 {
			f.refuse()
			return
		}
		f.part = frameSize
	case frameTrailers:
		if len(line) == 0 {
			f.begin()
		}
	case frameBody: // has no lines
	}
}

// header remembers what tells where the body ends.
func (f *headFramer) header(line []byte, cut bool) {
	name, value, _ := strings.Cut(string(line), ":")
	switch {
	case strings.EqualFold(name, "Transfer-Encoding"):
		// net/http knows no other coding, and answers 501; one that it skips,
		// because of an older version, would have us disagree.
		if cut || f.chunked || !f.modern || !strings.EqualFold(strings.Trim(value, " \t"), "chunked") {
			f.refuse()
		}
		f.chunked = true
	case strings.EqualFold(name, "Content-Length"):
		value = strings.Trim(value, " \t")
		if cut || value == "" || f.length != "" && f.length != value {
			f.refuse()
		}
		f.length = value
	}
}

func (f *headFramer) endHead() {
	switch chunked, length := f.chunked, f.length; {
	case chunked:
		f.part = frameSize
	case length != "":
		left, err := strconv.ParseUint(length, 10, 63)
		if err != nil {
			f.refuse()
			return
		}
		f.begin()
		if left > 0 {
			f.part, f.left = frameBody, left
		}
	default:
		f.begin()
	}
}

func (f *headFramer) chunkSize(line []byte, cut bool) {
	digits, _, extended := strings.Cut(string(line), ";")
	if !extended {
		digits = strings.TrimRight(digits, " \t")
	}
	size, err := strconv.ParseUint(digits, 16, 64)
	switch {
	case err != nil || len(digits) > 16 || cut && !extended:
		f.refuse()
	case size == 0:
		f.part = frameTrailers
	default:
		f.part, f.left = frameChunk, size
	}
}
