// Package execstream is the driver's side of a command that is executed inside
// a task: pipes or a terminal between the caller and the command, window sizes
// and signals on their way in.
//
// A driver makes a Session (Pipes, Terminal), hands the command's descriptors
// (Theirs) to the program beside the task, and calls Relay, which copies until
// the command has ended.
//
// Limits: what a command's descendants still write some hundred milliseconds
// after its exit is not waited for.
package execstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/driver"
)

const (
	copyBytes = 32 << 10
	// outputPatience is how long an output is waited for in silence after the
	// command has exited: its descendants may hold it open for ever.
	outputPatience = 300 * time.Millisecond
	endOfInput     = 4 // what the user of a terminal types at the end
)

// Session is one executed command. One goroutine calls its methods.
type Session struct {
	tty    bool
	theirs []int       // descriptors for the command, closed once sent
	input  *os.File    // write end of stdin; nil: no input
	output [2]*os.File // read ends of stdout and stderr; a terminal is input and output

	copying sync.WaitGroup
	exited  atomic.Bool
}

// Pipes makes a pipe for each stream that the caller has; the others are
// /dev/null. The caller must call Close.
func Pipes(streams driver.Streams) (*Session, error) {
	s := new(Session)
	for i, wanted := range []bool{streams.Stdin != nil, streams.Stdout != nil, streams.Stderr != nil} {
		if err := s.addPipe(i, wanted); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Session) addPipe(number int, wanted bool) error {
	if !wanted {
		fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
		s.theirs = append(s.theirs, fd)
		return nil
	}
	// os.Pipe would make the command's end non-blocking too.
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	ours, theirs := ends[0], ends[1]
	if number == 0 {
		ours, theirs = ends[1], ends[0]
	}
	s.theirs = append(s.theirs, theirs)
	file, err := waitable(ours)
	if err != nil {
		return err
	}
	if number == 0 {
		s.input = file
	} else {
		s.output[number-1] = file
	}
	return nil
}

// Terminal makes a session on a pseudo terminal, which it takes over: ours is
// the master's descriptor, theirs the command's end, if it is made on this
// side. The caller must call Close.
func Terminal(ours int, theirs ...int) (*Session, error) {
	s := &Session{tty: true, theirs: theirs}
	if err := s.SetTerminal(ours); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Unopened is a session on a terminal that the other side makes, see
// SetTerminal. The caller must call Close.
func Unopened() *Session { return &Session{tty: true} }

// SetTerminal takes over the master of the session's terminal.
func (s *Session) SetTerminal(fd int) error {
	terminal, err := waitable(fd)
	if err != nil {
		return err
	}
	s.input, s.output[0] = terminal, terminal
	return nil
}

// waitable makes a file of a descriptor whose reads end with a deadline.
func waitable(fd int) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return os.NewFile(uintptr(fd), "exec stream"), nil
}

// Theirs returns the command's standard streams, one for a terminal or three;
// they stay the session's.
func (s *Session) Theirs() []int { return s.theirs }

// Sent closes the command's descriptors on this side: it has its own.
func (s *Session) Sent() {
	for _, fd := range s.theirs {
		syscall.Close(fd)
	}
	s.theirs = nil
}

// Close closes everything that the session holds.
func (s *Session) Close() {
	s.Sent()
	for _, file := range []*os.File{s.input, s.output[0], s.output[1]} {
		if file != nil {
			file.Close() // a terminal twice, which is harmless
		}
	}
}

// Relay copies the streams of the running command until wait returns, and
// what it has written by then. wait returns an error when nobody can tell of the
// command's end any more; what the command still writes then goes nowhere.
// signal passes a signal on.
func (s *Session) Relay(streams driver.Streams, signal func(number syscall.Signal), wait func() error) error {
	done := make(chan struct{})
	var relaying sync.WaitGroup
	relaying.Go(func() { s.relay(streams, signal, done) })
	if streams.Stdin != nil {
		go s.copyInput(streams.Stdin) // may outlive the call, see driver.Streams
	}
	for i, writer := range []io.Writer{streams.Stdout, streams.Stderr} {
		if s.output[i] != nil {
			s.copying.Go(func() { s.copyOutput(writer, s.output[i]) })
		}
	}
	err := wait()
	if err != nil {
		s.Close()
	}
	s.exited.Store(true)
	for _, file := range s.output {
		if file != nil {
			_ = file.SetReadDeadline(time.Now().Add(outputPatience)) // refused only when closed
		}
	}
	s.copying.Wait()
	close(done)
	relaying.Wait()
	return err
}

// relay passes window sizes and signals on until done.
func (s *Session) relay(streams driver.Streams, signal func(number syscall.Signal), done <-chan struct{}) {
	resizes, signals := streams.Resize, streams.Signals
	for {
		select {
		case <-done:
			return
		case size, open := <-resizes:
			if !open {
				resizes = nil
			} else if s.tty {
				_ = s.Resize(size) // the terminal is gone when its command is
			}
		case name, open := <-signals:
			if !open {
				signals = nil
				continue
			}
			if number, err := driver.ParseSignal(name); err == nil {
				signal(number)
			}
		}
	}
}

// copyInput fills the command's stdin. At the end of the input a pipe is
// closed; a terminal has no such end, its user types one.
func (s *Session) copyInput(from io.Reader) {
	buffer := make([]byte, copyBytes)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := s.input.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !s.tty {
				s.input.Close()
			} else if errors.Is(err, io.EOF) {
				_, _ = s.input.Write([]byte{endOfInput}) // the command may be gone
			}
			return
		}
	}
}

// copyOutput empties one output of the command until its end; after the
// command's exit, until it is silent.
func (s *Session) copyOutput(to io.Writer, from *os.File) {
	if to == nil {
		to = io.Discard
	}
	buffer := make([]byte, copyBytes)
	for {
		if s.exited.Load() {
			_ = from.SetReadDeadline(time.Now().Add(outputPatience))
		}
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				to = io.Discard // the command must not block on a reader that left
			}
		}
		if err != nil {
			return // the end, a terminal without a user (EIO), or silence after the exit
		}
	}
}

// Resize tells the terminal its size; the kernel tells the command.
func (s *Session) Resize(size driver.WindowSize) error {
	raw, err := s.input.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if err == nil {
		err = ioctlErr
	}
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}
