package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Open listens for the rank's remote shells, and returns the environment
// that tells the task where. Without need for it both are nil.
func (s *Service) Open(a *structs.Assignment, owner account.Owner) (map[string]string, io.Closer, error) {
	if !a.RanksReachEachOther() {
		return nil, nil, nil
	}
	id, token := a.Alloc.ID, rand.Text()
	if err := os.MkdirAll(s.Layout.Rsh(id), 0o711); err != nil {
		return nil, nil, fmt.Errorf("open rank shell: %w", err)
	}
	if err := store.WriteFile(s.Layout.RSHToken(id), []byte(token), 0o600, false); err != nil {
		return nil, nil, fmt.Errorf("open rank shell: %w", err)
	}
	shell, err := s.listenShell(a, token, owner)
	if err != nil {
		return nil, nil, err
	}
	env := map[string]string{rankshell.EnvSocket: s.Layout.RSHSocket(id), rankshell.EnvToken: token}
	return env, shell, nil
}

func (s *Service) listenShell(a *structs.Assignment, token string, owner account.Owner) (io.Closer, error) {
	return rankshell.Listen(rankshell.Config{
		Path: s.Layout.RSHSocket(a.Alloc.ID), Token: token, UID: owner.UID, GID: owner.GID, Logger: s.Log,
		Handler: func(ctx context.Context, request rankshell.Request, streams rankshell.IO) rankshell.Exit {
			return s.reachRank(ctx, a, request, streams)
		},
	})
}

// Reopen listens again for a task that was taken over. A task goes on
// without its socket if need be: it has its command already.
func (s *Service) Reopen(a *structs.Assignment) io.Closer {
	if !a.RanksReachEachOther() {
		return nil
	}
	token, err := os.ReadFile(s.Layout.RSHToken(a.Alloc.ID))
	var by account.Owner
	if err == nil {
		by, err = s.Owners.OfRunning(a)
	}
	var shell io.Closer
	if err == nil {
		shell, err = s.listenShell(a, string(token), by)
	}
	if err != nil {
		s.Log.Warn("rank shell is not open again", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
		return nil
	}
	return shell
}

// reachRank runs a shell's command line in the task of another rank of its
// own attempt: by this agent, or by the one of the rank's node.
func (s *Service) reachRank(ctx context.Context, a *structs.Assignment, request rankshell.Request, streams rankshell.IO) rankshell.Exit {
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
	s.Log.Debug("rank shell", logkey.AllocID, a.Alloc.ID, "to", member.Name)
	var exit *structs.ExecExit
	if member.NodeID == s.NodeID {
		exit = s.execLocal(ctx, start, streams)
	} else {
		exit = s.execRemote(ctx, member, start, streams)
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
func (s *Service) execLocal(ctx context.Context, start structs.ExecStart, streams rankshell.IO) *structs.ExecExit {
	t, err := s.execTarget(ctx, Caller{Role: RoleClient, ID: s.NodeID}, &start)
	if err != nil {
		return execFailed(start.AllocID, err)
	}
	return t.run(ctx, &start, driver.Streams{
		Stdin: chunkReader(ctx, streams.Input), Stdout: streams.Stdout, Stderr: streams.Stderr, Signals: streams.Signals,
	})
}

// execRemote runs the command in a task of another node, through its agent.
func (s *Service) execRemote(ctx context.Context, member structs.Member, start structs.ExecStart, streams rankshell.IO) *structs.ExecExit {
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
	if s.OpenExec == nil {
		return away(errors.New("this agent reaches no other"))
	}
	peer, err := s.OpenExec(ctx, member.NodeID, member.RPCAddr)
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
			return // Recv reports why
		}
	}
}
