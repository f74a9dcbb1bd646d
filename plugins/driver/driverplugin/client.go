package driverplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

// Deadlines of calls to a plugin. A caller's own may be shorter.
const (
	CallTimeout = 15 * time.Second
	// StartTimeout is long because a driver may fetch what it runs; that the
	// plugin is alive meanwhile is known from Ping.
	StartTimeout = 30 * time.Minute
	// DestroyTimeout is above what killing may take.
	DestroyTimeout = time.Minute
	waitEach       = 20 * time.Second
)

// Client is a driver in another process. It implements driver.Driver,
// driver.Lister and driver.Masker; its methods may be called from any goroutine.
type Client struct {
	service proto.DriverServiceClient
}

// Ping asks the plugin for its name, which reports whether it is alive.
func (c *Client) Ping(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	info, err := c.service.Info(ctx, &proto.InfoRequest{})
	if err != nil {
		return "", fmt.Errorf("ping driver plugin: %w: %w", driver.ErrUnavailable, err)
	}
	return info.GetName(), nil
}

// Fingerprint hands the plugin's reports on. When the plugin dies the channel
// is closed, too.
func (c *Client) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	stream, err := c.service.Fingerprint(ctx, &proto.FingerprintRequest{})
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	reports := make(chan driver.Fingerprint)
	go func() { // ends with ctx or with the plugin
		defer close(reports)
		for {
			response, err := stream.Recv()
			if err != nil {
				return
			}
			report := driver.Fingerprint{Health: driver.Health(response.GetHealth()), Reason: response.GetReason(), Attributes: response.GetAttributes()}
			select {
			case reports <- report:
			case <-ctx.Done():
				return
			}
		}
	}()
	return reports, nil
}

// Start starts a task.
func (c *Client) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	response, err := call(ctx, StartTimeout, c.service.Start, &proto.StartRequest{Spec: specToProto(&spec)})
	if err != nil {
		return driver.Handle{}, err
	}
	handle := handleFromProto(response.GetHandle())
	if handle.TaskID != spec.ID || len(handle.State) > driver.HandleStateMax {
		return driver.Handle{}, fmt.Errorf("start task %s: %w: plugin sent a handle of another task", spec.ID, driver.ErrUnavailable)
	}
	return handle, nil
}

// Recover takes over a task.
func (c *Client) Recover(ctx context.Context, handle driver.Handle) error {
	_, err := call(ctx, CallTimeout, c.service.Recover, &proto.RecoverRequest{Handle: handleToProto(handle)})
	return err
}

// Wait asks again and again until the task has ended.
func (c *Client) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	request := &proto.WaitRequest{TaskId: string(id), WaitMs: waitEach.Milliseconds()}
	for {
		response, err := call(ctx, waitEach+CallTimeout, c.service.Wait, request)
		if err != nil {
			return driver.ExitResult{}, err
		}
		if response.GetResult() != nil {
			return resultFromProto(response.GetResult()), nil
		}
	}
}

// Stop asks for the end of a task.
func (c *Client) Stop(ctx context.Context, id driver.TaskID, signal string, grace time.Duration) error {
	_, err := call(ctx, CallTimeout, c.service.Stop, &proto.StopRequest{TaskId: string(id), Signal: signal, GraceNs: grace.Nanoseconds()})
	return err
}

// Destroy forgets a task.
func (c *Client) Destroy(ctx context.Context, id driver.TaskID) error {
	_, err := call(ctx, DestroyTimeout, c.service.Destroy, &proto.DestroyRequest{TaskId: string(id)})
	return err
}

// Signal sends a signal.
func (c *Client) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	_, err := call(ctx, CallTimeout, c.service.Signal, &proto.SignalRequest{TaskId: string(id), Signal: signal})
	return err
}

// Pause stops a task's processes.
func (c *Client) Pause(ctx context.Context, id driver.TaskID) error {
	_, err := call(ctx, CallTimeout, c.service.Pause, &proto.PauseRequest{TaskId: string(id)})
	return err
}

// Continue lets them go on.
func (c *Client) Continue(ctx context.Context, id driver.TaskID) error {
	_, err := call(ctx, CallTimeout, c.service.Continue, &proto.ContinueRequest{TaskId: string(id)})
	return err
}

// Stats measures a task.
func (c *Client) Stats(ctx context.Context, id driver.TaskID) (driver.Usage, error) {
	response, err := call(ctx, CallTimeout, c.service.Stats, &proto.StatsRequest{TaskId: string(id)})
	if err != nil {
		return driver.Usage{}, err
	}
	return driver.Usage{
		At: instant(response.GetAtNs()), CPUTime: time.Duration(response.GetCpuTimeNs()), RSSBytes: response.GetRssBytes(),
		Processes: int(response.GetProcesses()), Threads: int(response.GetThreads()),
	}, nil
}

// List names the tasks that the plugin finds.
func (c *Client) List(ctx context.Context) ([]driver.Handle, error) {
	response, err := call(ctx, CallTimeout, c.service.List, &proto.ListRequest{})
	if err != nil {
		return nil, err
	}
	var handles []driver.Handle
	for _, handle := range response.GetHandles() {
		if driver.ValidTaskID(driver.TaskID(handle.GetTaskId())) {
			handles = append(handles, handleFromProto(handle))
		}
	}
	return handles, nil
}

// Mask tells the plugin what logs of a task do not hold; driver.ErrUnsupported of one
// that does not have to be told again.
func (c *Client) Mask(ctx context.Context, id driver.TaskID, mask []structs.Mask) error {
	_, err := call(ctx, CallTimeout, c.service.Mask, &proto.MaskRequest{TaskId: string(id), Mask: maskToProto(mask)})
	return err
}

// call makes a unary call with a deadline and the contract's errors.
func call[Q, R any](ctx context.Context, limit time.Duration, method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := method(limited, request)
	return response, fromStatus(ctx, err)
}

// Exec runs a command inside a task.
func (c *Client) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	if spec.Side {
		return driver.ExitResult{}, driver.ErrNoSide // the protocol of plugins has no such thing
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.service.Exec(limited)
	if err != nil {
		return driver.ExitResult{}, fromStatus(ctx, err)
	}
	to := &execRequests{stream: stream}
	to.send(&proto.ExecRequest{Input: &proto.ExecRequest_Start{Start: &proto.ExecStart{
		TaskId: string(id), Command: spec.Command, Env: spec.Env, Dir: spec.Dir, Tty: spec.TTY, Size: sizeToProto(spec.Size), Survive: spec.Survive,
		HasStdin: streams.Stdin != nil, HasStdout: streams.Stdout != nil, HasStderr: streams.Stderr != nil,
	}}})
	if streams.Stdin != nil {
		go to.copyInput(streams.Stdin) // may outlive the call, see driver.Streams
	}
	var relaying sync.WaitGroup
	relaying.Go(func() { to.relay(limited, streams) })
	result, err := receiveExec(stream, streams)
	cancel()
	relaying.Wait()
	if err != nil {
		return driver.ExitResult{}, fromStatus(ctx, err)
	}
	return result, nil
}

// receiveExec hands output on until the result comes.
func receiveExec(stream grpc.BidiStreamingClient[proto.ExecRequest, proto.ExecResponse], streams driver.Streams) (driver.ExitResult, error) {
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return driver.ExitResult{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return driver.ExitResult{}, err
		}
		// A writer that fails does not end the command: what it would have
		// got is dropped, and the result still comes.
		switch output := response.GetOutput().(type) {
		case *proto.ExecResponse_Stdout:
			if streams.Stdout != nil {
				_, _ = streams.Stdout.Write(output.Stdout)
			}
		case *proto.ExecResponse_Stderr:
			if streams.Stderr != nil {
				_, _ = streams.Stderr.Write(output.Stderr)
			}
		case *proto.ExecResponse_Result:
			return resultFromProto(output.Result), nil
		}
	}
}

// execRequests lets input, sizes and signals share a stream. Errors of
// sending are not looked at: receiving reports why.
type execRequests struct {
	mu     sync.Mutex
	stream grpc.BidiStreamingClient[proto.ExecRequest, proto.ExecResponse]
}

func (r *execRequests) send(request *proto.ExecRequest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream.Send(request) == nil
}

func (r *execRequests) copyInput(from io.Reader) {
	buffer := make([]byte, chunkBytes)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !r.send(&proto.ExecRequest{Input: &proto.ExecRequest_Stdin{Stdin: append([]byte(nil), buffer[:n]...)}}) {
			return
		}
		if err != nil {
			r.send(&proto.ExecRequest{Input: &proto.ExecRequest_StdinEnd{StdinEnd: true}})
			return
		}
	}
}

func (r *execRequests) relay(ctx context.Context, streams driver.Streams) {
	resizes, signals := streams.Resize, streams.Signals
	for {
		select {
		case <-ctx.Done():
			return
		case size, open := <-resizes:
			if !open {
				resizes = nil
				continue
			}
			r.send(&proto.ExecRequest{Input: &proto.ExecRequest_Resize{Resize: sizeToProto(size)}})
		case name, open := <-signals:
			if !open {
				signals = nil
				continue
			}
			r.send(&proto.ExecRequest{Input: &proto.ExecRequest_Signal{Signal: name}})
		}
	}
}
