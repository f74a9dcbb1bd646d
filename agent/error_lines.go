package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of what is read of logs before it is told that jobs failed: a message without
// the lines is better than a late one.
const (
	errorLinesPatience = time.Second
	errorLinesJobs     = 32 // of one look
	errorLinesRead     = 64 << 10
)

// errorLines reads the last words of tasks that failed, as their nodes show them: with
// the values of secrets masked.
type errorLines struct {
	pool *rpc.Pool
	log  *slog.Logger
}

// of reads them for the events of jobs that failed and whose owners are told so and may
// read the logs.
func (e *errorLines) of(ctx context.Context, view notifyView, events []*structs.Event) map[attemptKey][]string {
	ctx, cancel := context.WithTimeout(ctx, errorLinesPatience)
	defer cancel()
	var mu sync.Mutex
	var reading sync.WaitGroup
	lines, asked := make(map[attemptKey][]string), 0
	for _, event := range events {
		if !notify.TellsFailure(view, event) || asked == errorLinesJobs {
			continue
		}
		key := attemptKey{event.JobID, event.Subjob, event.Attempt}
		node, alloc := failedAlloc(view.Snapshot, key)
		if node == nil || !readsLogs(view.Snapshot, view.Job(event.JobID)) {
			continue
		}
		asked++
		reading.Go(func() {
			found, err := e.read(ctx, node, alloc)
			if err != nil {
				e.log.Debug("a failure is told without its last lines", logkey.AllocID, alloc, logkey.Error, err)
			}
			mu.Lock()
			defer mu.Unlock()
			lines[key] = found
		})
	}
	reading.Wait()
	return lines
}

// attemptKey names an attempt.
type attemptKey struct {
	job     string
	subjob  int
	attempt uint64
}

// failedAlloc is the allocation of an attempt that failed first, and the node that has
// its log; nil when there is none to be asked.
func failedAlloc(snapshot *state.Snapshot, key attemptKey) (*structs.Node, string) {
	attempt := snapshot.Attempt(key.job, key.subjob, key.attempt)
	if attempt == nil || attempt.FirstFailed == "" {
		return nil, ""
	}
	alloc := snapshot.Alloc(attempt.FirstFailed)
	if alloc == nil {
		return nil, ""
	}
	node := snapshot.Node(alloc.NodeID)
	if node == nil || node.RPCAddr == "" || node.Status == structs.NodeLost || node.Status == structs.NodeLeft {
		return nil, ""
	}
	return node, alloc.ID
}

// readsLogs reports whether the owner of a job may read its logs: they may have become
// less in its project since it was submitted.
func readsLogs(snapshot *state.Snapshot, job *structs.Job) bool {
	token := &structs.Token{User: job.User, Role: structs.RoleAccount}
	if snapshot.User(job.User) == nil {
		token.Role, token.Project = structs.RoleUser, job.Project
	}
	standing, refusal := auth.Stand(snapshot, token, job.Project, time.Now())
	object := auth.Object{Kind: auth.ObjectJob, ID: job.ID, Project: job.Project, Owner: job.User, Access: auth.Access(job.Access)}
	return refusal == nil && auth.Allowed(standing.Principal, auth.VerbLogs, object).Allow
}

// read reads the end of what a task said of errors, or of all that it said when it said
// nothing of these.
func (e *errorLines) read(ctx context.Context, node *structs.Node, alloc string) ([]string, error) {
	conn, err := e.pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
	if err != nil {
		return nil, err
	}
	for _, stream := range []string{"stderr", "stdout"} {
		text, err := readEnd(ctx, conn, &structs.LogRequest{AllocID: alloc, Stream: stream, TailLines: notify.LinesLookedAt})
		if lines := notify.ErrorLines(text); err != nil || len(lines) > 0 {
			return lines, err
		}
	}
	return nil, nil
}

// readEnd reads a log from where a request begins, and keeps its last part.
func readEnd(ctx context.Context, conn *rpc.Conn, request *structs.LogRequest) (string, error) {
	stream, err := rpc.OpenStream[structs.LogRequest, structs.LogChunk](ctx, conn, structs.MethodAllocLogs)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	if err := errors.Join(stream.Send(request), stream.CloseSend()); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
		return "", err
	}
	var text []byte
	for {
		chunk := new(structs.LogChunk)
		err := stream.RecvInto(chunk)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text = append(text, chunk.Data...)
		if over := len(text) - errorLinesRead; over > 0 {
			text = text[over:]
			if _, whole, found := bytes.Cut(text, []byte("\n")); found {
				text = whole // the first line lost its beginning
			}
		}
		if err != nil || chunk.EOF {
			return string(text), nil
		}
	}
}
