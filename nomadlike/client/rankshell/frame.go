package rankshell

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"nomadlike/nomadlike/structs"
)

// Environment of a task that tells RunShell where its agent listens.
const (
	EnvSocket = "NOMADLIKE_RSH_SOCKET"
	EnvToken  = "NOMADLIKE_RSH_TOKEN"
)

// Bounds of a frame's payload in bytes.
const (
	dataMax    = 32 << 10
	requestMax = 1 << 20
	signalMax  = 32
	exitMax    = 64 << 10
)

// kind is what a frame carries. A frame is its kind, the payload's length in
// four bytes, big endian, and the payload.
type kind byte

const (
	kindRequest    kind = 'R' // shell -> agent, first: JSON of Request
	kindStdin      kind = 'i' // shell -> agent
	kindStdinEnd   kind = 'c' // shell -> agent
	kindSignal     kind = 's' // shell -> agent: name
	kindStdout     kind = 'o' // agent -> shell
	kindStderr     kind = 'e' // agent -> shell
	kindExit       kind = 'X' // agent -> shell, last: JSON of Exit
	frameHeadBytes      = 5
)

func (k kind) max() int {
	switch k {
	case kindRequest:
		return requestMax
	case kindStdin, kindStdout, kindStderr:
		return dataMax
	case kindSignal:
		return signalMax
	case kindExit:
		return exitMax
	case kindStdinEnd:
		return 0
	}
	return -1
}

// Request is what a shell asks for.
type Request struct {
	Token   string `json:"token"`
	Host    string `json:"host"`    // rank name
	Command string `json:"command"` // a command line for /bin/sh -c
}

// Exit is how it ended. Err reports why nothing was run.
type Exit struct {
	Code int            `json:"code"`
	Err  *structs.Error `json:"err,omitempty"`
}

// readFrame reads one frame, of at most the bytes that its kind may have.
func readFrame(r io.Reader) (kind, []byte, error) {
	var head [frameHeadBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), int64(binary.BigEndian.Uint32(head[1:]))
	if n > int64(k.max()) {
		return 0, nil, fmt.Errorf("read frame: %d bytes of kind %q", n, head[0])
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("read frame: %w", err)
	}
	return k, payload, nil
}

// frameWriter writes whole frames from any goroutine.
type frameWriter struct {
	mu struct {
		sync.Mutex
		w io.Writer
	}
}

func newFrameWriter(w io.Writer) *frameWriter {
	f := new(frameWriter)
	f.mu.w = w
	return f
}

func (f *frameWriter) frame(k kind, payload []byte) error {
	if len(payload) > k.max() {
		return fmt.Errorf("write frame: %d bytes of kind %q", len(payload), byte(k))
	}
	frame := make([]byte, 0, frameHeadBytes+len(payload))
	frame = append(frame, byte(k))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload)))
	frame = append(frame, payload...)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.mu.w.Write(frame)
	return err
}

func (f *frameWriter) json(k kind, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	return f.frame(k, data)
}

// stream is a writer of data frames of one kind.
func (f *frameWriter) stream(k kind) io.Writer { return dataWriter{f, k} }

type dataWriter struct {
	frames *frameWriter
	kind   kind
}

func (d dataWriter) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		n := min(len(data), dataMax)
		if err := d.frames.frame(d.kind, data[:n]); err != nil {
			return written, err
		}
		written += n
		data = data[n:]
	}
	return written, nil
}
