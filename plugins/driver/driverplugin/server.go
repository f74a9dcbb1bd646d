package driverplugin

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

const (
	// waitMax bounds one Wait call; the host asks again.
	waitMax = 30 * time.Second
	// chunkBytes bounds output in one message.
	chunkBytes = 32 << 10
	// stdinQueue is how many messages of input may wait for a command that
	// does not read; then the flow control of gRPC holds the sender.
	stdinQueue = 16
)

// server answers a host's calls with a driver.
type server struct {
	proto.UnimplementedDriverServiceServer
	name string
	impl driver.Driver
}

func (s *server) Info(context.Context, *proto.InfoRequest) (*proto.InfoResponse, error) {
	return &proto.InfoResponse{Name: s.name}, nil
}

func (s *server) Fingerprint(_ *proto.FingerprintRequest, stream grpc.ServerStreamingServer[proto.FingerprintResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	reports, err := s.impl.Fingerprint(ctx)
	if err != nil {
		return toStatus(err)
	}
	for report := range reports {
		response := &proto.FingerprintResponse{Health: string(report.Health), Reason: report.Reason, Attributes: report.Attributes}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Start(ctx context.Context, r *proto.StartRequest) (*proto.StartResponse, error) {
	handle, err := s.impl.Start(ctx, specFromProto(r.GetSpec()))
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.StartResponse{Handle: handleToProto(handle)}, nil
}

func (s *server) Recover(ctx context.Context, r *proto.RecoverRequest) (*proto.RecoverResponse, error) {
	return &proto.RecoverResponse{}, toStatus(s.impl.Recover(ctx, handleFromProto(r.GetHandle())))
}

func (s *server) Wait(ctx context.Context, r *proto.WaitRequest) (*proto.WaitResponse, error) {
	wait := min(time.Duration(max(r.GetWaitMs(), 0))*time.Millisecond, waitMax)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	result, err := s.impl.Wait(ctx, driver.TaskID(r.GetTaskId()))
	if errors.Is(err, context.DeadlineExceeded) {
		return &proto.WaitResponse{}, nil
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.WaitResponse{Result: resultToProto(result)}, nil
}

func (s *server) Stop(ctx context.Context, r *proto.StopRequest) (*proto.StopResponse, error) {
	err := s.impl.Stop(ctx, driver.TaskID(r.GetTaskId()), r.GetSignal(), time.Duration(r.GetGraceNs()))
	return &proto.StopResponse{}, toStatus(err)
}

func (s *server) Destroy(ctx context.Context, r *proto.DestroyRequest) (*proto.DestroyResponse, error) {
	return &proto.DestroyResponse{}, toStatus(s.impl.Destroy(ctx, driver.TaskID(r.GetTaskId())))
}

func (s *server) Signal(ctx context.Context, r *proto.SignalRequest) (*proto.SignalResponse, error) {
	return &proto.SignalResponse{}, toStatus(s.impl.Signal(ctx, driver.TaskID(r.GetTaskId()), r.GetSignal()))
}

func (s *server) Pause(ctx context.Context, r *proto.PauseRequest) (*proto.PauseResponse, error) {
	return &proto.PauseResponse{}, toStatus(s.impl.Pause(ctx, driver.TaskID(r.GetTaskId())))
}

func (s *server) Continue(ctx context.Context, r *proto.ContinueRequest) (*proto.ContinueResponse, error) {
	return &proto.ContinueResponse{}, toStatus(s.impl.Continue(ctx, driver.TaskID(r.GetTaskId())))
}

func (s *server) Stats(ctx context.Context, r *proto.StatsRequest) (*proto.StatsResponse, error) {
	usage, err := s.impl.Stats(ctx, driver.TaskID(r.GetTaskId()))
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.StatsResponse{
		AtNs: nanoseconds(usage.At), CpuTimeNs: usage.CPUTime.Nanoseconds(), RssBytes: usage.RSSBytes,
		Processes: int64(usage.Processes), Threads: int64(usage.Threads),
	}, nil
}

func (s *server) List(ctx context.Context, _ *proto.ListRequest) (*proto.ListResponse, error) {
	lister, ok := s.impl.(driver.Lister)
	if !ok {
		return nil, toStatus(driver.ErrUnsupported)
	}
	handles, err := lister.List(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	response := &proto.ListResponse{}
	for _, handle := range handles {
		response.Handles = append(response.Handles, handleToProto(handle))
	}
	return response, nil
}

func (s *server) Mask(ctx context.Context, r *proto.MaskRequest) (*proto.MaskResponse, error) {
	masker, ok := s.impl.(driver.Masker)
	if !ok {
		return nil, toStatus(driver.ErrUnsupported)
	}
	return &proto.MaskResponse{}, toStatus(masker.Mask(ctx, driver.TaskID(r.GetTaskId()), maskFromProto(r.GetMask())))
}

// Exec carries one command's streams. A goroutine receives input, another
// feeds stdin, so that a command that does not read can still be signalled.
func (s *server) Exec(stream grpc.BidiStreamingServer[proto.ExecRequest, proto.ExecResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return toStatus(errors.New("exec: the first message is no start"))
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	out := &execSender{stream: stream}
	in := newExecInput()
	streams := driver.Streams{Resize: in.resizes, Signals: in.signals}
	if start.GetHasStdin() {
		streams.Stdin = in.reader
	}
	if start.GetHasStdout() {
		streams.Stdout = execWriter{out, func(p []byte) *proto.ExecResponse {
			return &proto.ExecResponse{Output: &proto.ExecResponse_Stdout{Stdout: p}}
		}}
	}
	if start.GetHasStderr() {
		streams.Stderr = execWriter{out, func(p []byte) *proto.ExecResponse {
			return &proto.ExecResponse{Output: &proto.ExecResponse_Stderr{Stderr: p}}
		}}
	}
	// Both end with ctx: the stream's Recv fails once this call returns, and
	// the pipe is closed below.
	go in.receive(ctx, stream, cancel)
	go in.feed(ctx)
	result, err := s.impl.Exec(ctx, driver.TaskID(start.GetTaskId()), driver.ExecSpec{
		Command: start.GetCommand(), Env: start.GetEnv(), Dir: start.GetDir(),
		TTY: start.GetTty(), Size: sizeFromProto(start.GetSize()), Survive: start.GetSurvive(),
	}, streams)
	in.reader.Close()
	if err != nil {
		return toStatus(err)
	}
	return out.send(&proto.ExecResponse{Output: &proto.ExecResponse_Result{Result: resultToProto(result)}})
}

// execSender lets stdout and stderr share a stream.
type execSender struct {
	mu     sync.Mutex
	stream grpc.BidiStreamingServer[proto.ExecRequest, proto.ExecResponse]
}

func (s *execSender) send(response *proto.ExecResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(response)
}

// execWriter is one output of a command.
type execWriter struct {
	sender *execSender
	wrap   func([]byte) *proto.ExecResponse
}

func (w execWriter) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); sent += chunkBytes {
		if err := w.sender.send(w.wrap(p[sent:min(sent+chunkBytes, len(p))])); err != nil {
			return sent, err
		}
	}
	return len(p), nil
}

// execInput sorts what a caller sends to a command.
type execInput struct {
	stdin   chan []byte
	reader  *io.PipeReader
	writer  *io.PipeWriter
	resizes chan driver.WindowSize
	signals chan string
}

func newExecInput() *execInput {
	in := &execInput{
		stdin:   make(chan []byte, stdinQueue),
		resizes: make(chan driver.WindowSize, 1),
		signals: make(chan string, 1),
	}
	in.reader, in.writer = io.Pipe()
	return in
}

// receive takes messages until the caller is gone, which ends the command.
func (in *execInput) receive(ctx context.Context, stream grpc.BidiStreamingServer[proto.ExecRequest, proto.ExecResponse], gone func()) {
	defer gone()
	ended := false
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			// The caller has nothing more to send, but still listens.
			if !ended {
				close(in.stdin)
			}
			<-ctx.Done()
			return
		}
		if err != nil {
			return
		}
		switch input := message.GetInput().(type) {
		case *proto.ExecRequest_Stdin:
			if !ended {
				deliver(ctx, in.stdin, input.Stdin)
			}
		case *proto.ExecRequest_StdinEnd:
			if !ended {
				close(in.stdin)
				ended = true
			}
		case *proto.ExecRequest_Resize:
			deliver(ctx, in.resizes, sizeFromProto(input.Resize))
		case *proto.ExecRequest_Signal:
			deliver(ctx, in.signals, input.Signal)
		}
	}
}

func deliver[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// feed writes stdin to the command.
func (in *execInput) feed(ctx context.Context) {
	defer in.writer.Close()
	for {
		select {
		case data, open := <-in.stdin:
			if !open {
				return
			}
			if _, err := in.writer.Write(data); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
