package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// replaced registers as the stolen node, and says what is not this node's to say
// any more: that a rank which was replaced has ended well, and where it saved
// its work; and the same of another node's rank. In the end it says of its own
// newest rank that it has ended, which counts.
func (t *target) replaced(ctx context.Context, stolen *auth.Credentials) error {
	victim, theirs, err := t.victim(ctx)
	if err != nil {
		return err
	}
	own := filepath.Base(filepath.Dir(t.node))
	aged, err := t.admin.SubmitJob(ctx, api.JobRequest{HCL: fmt.Sprintf(`job "aged" {
  project = "victims"
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  placement { nodes = [%q] }
  restart {
    max_restarts = 1
    delay        = "1s"
  }
  task { command = "sh -c 'test $NOMADLIKE_ATTEMPT = 2 || exit 3; exec sleep 3600'" }
  stop_grace = "1s"
}
`, own)}, "")
	if err != nil {
		return err
	}
	defer func() {
		for _, id := range []string{victim, aged.JobID} {
			_, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{})
		}
	}()
	first, second, err := t.attempts(ctx, aged.JobID)
	if err != nil {
		return err
	}
	saved := &structs.SavedCheckpoint{Path: "/stolen/step-9.pt", Step: 9}
	lies := structs.ReportBatch{Seq: 1}
	for i, lie := range []struct {
		alloc   string
		attempt uint64
	}{{first, 1}, {first, 2}, {second, 1}, {theirs, 1}, {theirs, 2}} {
		lies.Reports = append(lies.Reports, structs.AllocReport{AllocID: lie.alloc, Attempt: lie.attempt, Status: structs.AllocComplete})
		lies.Notes = append(lies.Notes, structs.AllocNote{AllocID: lie.alloc, Attempt: lie.attempt, Seq: uint64(1000 + i), Checkpoint: saved})
	}
	ack, err := t.told(ctx, stolen, second, &lies)
	if err != nil {
		return err
	}
	for _, id := range []string{first, second, theirs} {
		if !slices.Contains(ack.Refused, id) {
			return fmt.Errorf("what is told of %s is not refused: %v", id, ack.Refused)
		}
	}
	for _, id := range []string{victim, aged.JobID} {
		job, _, err := t.admin.Job(ctx, id, nil)
		if err != nil {
			return err
		}
		if job.State != structs.JobRunning || job.Subjobs[0].Newest() != nil {
			return fmt.Errorf("job %s is %s with checkpoint %v", job.Job.Name, job.State, job.Subjobs[0].Newest())
		}
	}
	ended := structs.ReportBatch{Seq: 2, Reports: []structs.AllocReport{{AllocID: second, Attempt: 2, Status: structs.AllocComplete}}}
	if _, err := t.told(ctx, stolen, second, &ended); err != nil {
		return err
	}
	if err := t.await(ctx, aged.JobID, structs.JobSucceeded); err != nil {
		return fmt.Errorf("not tried: what the node says of its own newest rank does not count either: %w", err)
	}
	return nil
}

// attempts waits until a job of one rank runs in its second attempt, and returns
// the allocations of both.
func (t *target) attempts(ctx context.Context, id string) (first, second string, err error) {
	for {
		for number := range uint64(2) {
			number++
			list, _, err := t.admin.Allocations(ctx, id, api.AllocationFilter{Attempt: &number}, nil)
			if err != nil {
				return "", "", err
			}
			for _, a := range list.Allocations {
				switch {
				case number == 1:
					first = a.ID
				case a.Status == structs.AllocRunning:
					second = a.ID
				}
			}
		}
		if first != "" && second != "" {
			return first, second, nil
		}
		select {
		case <-ctx.Done():
			return "", "", fmt.Errorf("the second attempt of %s does not run: %w", id, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// told registers as the stolen node, with its rank of attempt 2, and says batch.
// The node's own agent lives and wants its session back, so it is tried again
// when that comes between.
func (t *target) told(ctx context.Context, stolen *auth.Credentials, second string, batch *structs.ReportBatch) (*structs.ReportAck, error) {
	for {
		before, _, err := t.admin.Node(ctx, stolen.Self.ID, nil)
		if err != nil {
			return nil, err
		}
		node := before.Node
		node.Incarnation++
		say, end, err := t.session(ctx, stolen, &structs.NodeRegister{Node: node, Inventory: []structs.InventoryItem{{AllocID: second, Attempt: 2}}})
		var ack *structs.ReportAck
		if err == nil {
			ack, err = say(batch)
			end()
		}
		if structs.CodeOf(err) != structs.CodeConflict || ctx.Err() != nil {
			return ack, err
		}
	}
}

// session registers with stolen credentials. What is said is answered by the
// acknowledgement of its batch.
func (t *target) session(ctx context.Context, held *auth.Credentials, hello *structs.NodeRegister) (say func(*structs.ReportBatch) (*structs.ReportAck, error), end func(), err error) {
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(held)})
	conn, err := pool.Conn(rpc.Target{Addr: t.servers[0]})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	stream, err := rpc.OpenStream[structs.SessionUp, structs.SessionDown](ctx, conn, structs.MethodNodeSession)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	end = func() { stream.Close(); pool.Close() }
	if err := stream.Send(&structs.SessionUp{Hello: hello}); err != nil {
		end()
		return nil, nil, err
	}
	if down, err := stream.Recv(); err != nil || down.Welcome == nil {
		end()
		return nil, nil, errors.Join(errors.New("not tried: the node is not welcome"), err)
	}
	return func(batch *structs.ReportBatch) (*structs.ReportAck, error) {
		if err := stream.Send(&structs.SessionUp{Reports: batch}); err != nil {
			return nil, err
		}
		for {
			down, err := stream.Recv()
			if err != nil {
				return nil, err
			}
			if down.ReportAck != nil && down.ReportAck.Seq == batch.Seq {
				return down.ReportAck, nil
			}
		}
	}, end, nil
}
