package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// shellServer is a rank's socket, closed when its allocation ends.
type shellServer interface{ Close() error }

// needsShell reports whether ranks of the assignment reach each other through
// their agents.
func needsShell(a *structs.Assignment) bool {
	return a.Job.FirstRankLeads() && len(a.Members) > 1
}

// openShell listens for the rank's remote shells, and gives the environment
// that tells the task where. Without need for it both are nil.
func (c *Client) openShell(a *structs.Assignment, owner owner) (map[string]string, shellServer, error) {
	if !needsShell(a) {
		return nil, nil, nil
	}
	id, token := a.Alloc.ID, newToken()
	if err := os.MkdirAll(c.files.rsh(id), 0o711); err != nil {
		return nil, nil, fmt.Errorf("open rank shell: %w", err)
	}
	if err := store.WriteFile(c.files.rshToken(id), []byte(token), 0o600, false); err != nil {
		return nil, nil, fmt.Errorf("open rank shell: %w", err)
	}
	s, err := c.listenShell(a, token, owner)
	if err != nil {
		return nil, nil, err
	}
	env := map[string]string{rankshell.EnvSocket: c.files.rshSocket(id), rankshell.EnvToken: token}
	return env, s, nil
}

func (c *Client) listenShell(a *structs.Assignment, token string, owner owner) (shellServer, error) {
	return rankshell.Listen(rankshell.Config{
		Path: c.files.rshSocket(a.Alloc.ID), Token: token, UID: owner.uid, GID: owner.gid, Logger: c.log,
		Handler: func(ctx context.Context, request rankshell.Request, streams rankshell.IO) rankshell.Exit {
			return c.reachRank(ctx, a, request, streams)
		},
	})
}

// reopenShell listens again for a task that was taken over. A task goes on
// without its socket if need be: it has its command already.
func (c *Client) reopenShell(a *structs.Assignment) shellServer {
	if !needsShell(a) {
		return nil
	}
	token, err := os.ReadFile(c.files.rshToken(a.Alloc.ID))
	var by owner
	if err == nil {
		by, err = c.ownerOfRunning(a)
	}
	var s shellServer
	if err == nil {
		s, err = c.listenShell(a, string(token), by)
	}
	if err != nil {
		c.log.Warn("rank shell is not open again", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
		return nil
	}
	return s
}

func closeShell(s shellServer, log *slog.Logger) {
	if s == nil {
		return
	}
	if err := s.Close(); err != nil {
		log.Debug("close rank shell", logkey.Error, err)
	}
}

// reachRank runs a shell's command line in the task of another rank of its
// own attempt: by this agent, or by the one of the rank's node.
func (c *Client) reachRank(ctx context.Context, a *structs.Assignment, request rankshell.Request, streams rankshell.IO) rankshell.Exit {
	member, err := findMember(a.Members, request.Host)
	if err != nil {
		return rankshell.Exit{Code: rankshell.CodeFailed, Err: err}
	}
	start := structs.ExecStart{
		AllocID: member.AllocID,
		Attempt: a.Alloc.Attempt,
		Command: []string{"/bin/sh", "-c", request.Command},
		User:    a.Job.User,
		From:    a.Alloc.ID,
	}
	c.log.Debug("rank shell", logkey.AllocID, a.Alloc.ID, "to", member.Name)
	var exit *structs.ExecExit
	if member.NodeID == c.NodeID() {
		exit = c.execLocal(ctx, start, streams)
	} else {
		exit = c.execRemote(ctx, member, start, streams)
	}
	return rankshell.Exit{Code: exit.Code, Err: exit.Err}
}

// findMember finds the rank with the host name, whole or up to its first dot.
func findMember(members []structs.Member, host string) (structs.Member, *structs.Error) {
	label, _, _ := strings.Cut(host, ".")
	i := slices.IndexFunc(members, func(m structs.Member) bool { return m.Name == host || m.Name == label })
	if i >= 0 {
		return members[i], nil
	}
	const namedMax = 16
	var names []string
	for _, m := range members[:min(len(members), namedMax)] {
		names = append(names, m.Name)
	}
	return structs.Member{}, structs.NewError(structs.CodeNotFound, "client.peer_unknown", "host", host, "ranks", strings.Join(names, ", "))
}

// execLocal runs the command in a task of this node.
func (c *Client) execLocal(ctx context.Context, start structs.ExecStart, streams rankshell.IO) *structs.ExecExit {
	t, err := c.execTarget(ctx, Caller{Role: RoleClient, ID: c.NodeID()}, &start)
	if err != nil {
		return execFailed(start.AllocID, err)
	}
	return t.run(ctx, &start, driver.Streams{
		Stdin: chunkReader(ctx, streams.Input), Stdout: streams.Stdout, Stderr: streams.Stderr, Signals: streams.Signals,
	})
}

// execRemote runs the command in a task of another node, through its agent.
func (c *Client) execRemote(ctx context.Context, member structs.Member, start structs.ExecStart, streams rankshell.IO) *structs.ExecExit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	away := func(err error) *structs.ExecExit {
		var told *structs.Error
		if errors.As(err, &told) && told.Code != structs.CodeUnavailable {
			return &structs.ExecExit{Code: rankshell.CodeFailed, Err: told}
		}
		return &structs.ExecExit{Code: rankshell.CodeFailed, Err: structs.NewError(structs.CodeUnavailable, "client.peer_away",
			"node", member.NodeName, "host", member.Name, "cause", err)}
	}
	if c.config.OpenExec == nil {
		return away(errors.New("this agent reaches no other"))
	}
	peer, err := c.config.OpenExec(ctx, member.NodeID, member.RPCAddr)
	if err != nil {
		return away(err)
	}
	if err := peer.Send(&structs.ExecUp{Start: &start}); err != nil {
		return away(receiveError(peer, err))
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	sending.Go(func() { sendInput(ctx, peer, streams) })
	for {
		down, err := peer.Recv()
		if err != nil {
			return away(err)
		}
		switch {
		case down.Stdout != nil:
			_, err = streams.Stdout.Write(down.Stdout)
		case down.Stderr != nil:
			_, err = streams.Stderr.Write(down.Stderr)
		case down.Exit != nil:
			return down.Exit
		}
		if err != nil {
			return away(fmt.Errorf("write to shell: %w", err))
		}
	}
}

// receiveError is why a stream refused a message: the other side's last word,
// when it left one.
func receiveError(peer ExecPeer, sendErr error) error {
	for {
		down, err := peer.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return sendErr
			}
			return err
		}
		if down.Exit != nil && down.Exit.Err != nil {
			return down.Exit.Err
		}
	}
}

// sendInput hands stdin and signals on until ctx is cancelled.
func sendInput(ctx context.Context, peer ExecPeer, streams rankshell.IO) {
	input := streams.Input
	for {
		var up structs.ExecUp
		select {
		case <-ctx.Done():
			return
		case chunk, ok := <-input:
			if ok {
				up.Stdin = chunk
			} else {
				up.CloseStdin, input = true, nil
			}
		case name := <-streams.Signals:
			up.Signal = name
		}
		if peer.Send(&up) != nil {
			return // Recv tells why
		}
	}
}
