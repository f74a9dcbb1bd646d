package taskssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskside"
)

// forward connects a channel with an address that a program inside of the task
// dials.
func (c *connection) forward(ctx context.Context, offered ssh.NewChannel, parse func([]byte) (network, address string, ok bool)) {
	network, address, ok := parse(offered.ExtraData())
	if !ok {
		_ = offered.Reject(ssh.ConnectionFailed, "nomadlike: this address is none") // it is gone otherwise
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &forwarding{offered: offered, input: newLate(ctx), gone: cancel}
	spec := driver.ExecSpec{Command: []string{taskside.Dial, network, address}, Side: true}
	result, err := c.config.Run(ctx, spec, driver.Streams{Stdin: f.input, Stdout: f, Stderr: &f.complaint})
	f.end(result, err)
}

// forwarding accepts its channel when the program in the task says that it is
// connected. The driver writes from one goroutine.
type forwarding struct {
	offered   ssh.NewChannel
	channel   ssh.Channel // nil: not accepted
	input     *late
	gone      context.CancelFunc // called when the client has closed the channel
	complaint complaint
}

// Write takes what the program in the task writes.
func (f *forwarding) Write(data []byte) (int, error) {
	if f.channel != nil {
		return f.channel.Write(data)
	}
	if len(data) == 0 {
		return 0, nil
	}
	if data[0] != taskside.Connected {
		return 0, errors.New("the program in the task speaks another language")
	}
	channel, requests, err := f.offered.Accept()
	if err != nil {
		return 0, err
	}
	f.channel = channel
	go func() { // ends with the channel
		ssh.DiscardRequests(requests)
		f.gone()
	}()
	f.input.set(channel)
	n, err := channel.Write(data[1:])
	return n + 1, err
}

func (f *forwarding) end(result driver.ExitResult, err error) {
	if f.channel != nil {
		_ = f.channel.Close() // the client may have closed it
		return
	}
	why := f.complaint.text()
	var unstarted *driver.StartError
	switch {
	case errors.As(err, &unstarted):
		why = unstarted.Error()
	case err != nil:
		why = err.Error()
	case why == "" && result.Err != nil:
		why = result.Err.Error()
	}
	_ = f.offered.Reject(ssh.ConnectionFailed, "nomadlike: "+why)
}

// complaint keeps the beginning of what a program says went wrong.
type complaint struct {
	mu   sync.Mutex
	said bytes.Buffer
}

const complaintMax = 512

func (c *complaint) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said.Write(data[:min(len(data), complaintMax-c.said.Len())])
	return len(data), nil
}

func (c *complaint) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.said.String())
}

// late is a reader that is not there yet.
type late struct {
	ctx    context.Context
	from   chan io.Reader
	reader io.Reader
}

func newLate(ctx context.Context) *late { return &late{ctx: ctx, from: make(chan io.Reader, 1)} }

func (l *late) set(r io.Reader) { l.from <- r }

// Read waits for the reader, and then is it.
func (l *late) Read(data []byte) (int, error) {
	if l.reader == nil {
		select {
		case l.reader = <-l.from:
		case <-l.ctx.Done():
			return 0, l.ctx.Err()
		}
	}
	return l.reader.Read(data)
}
