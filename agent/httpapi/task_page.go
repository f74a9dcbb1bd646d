package httpapi

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"nomadlike/agent/httpapi/front"
	"nomadlike/agent/httpapi/taskpages"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/taskport"
)

// taskPageHandlers has browsers see what tasks serve.
type taskPageHandlers struct {
	*core
	calls  *nodeCalls
	keys   Authority // of hosts of ssh
	domain string    // "": no pages are shown
	signed *front.Sessions
}

// open puts the pages beside the door of the API.
func (h *taskPageHandlers) open(f *front.Front) {
	h.signed = f.SignIns()
	if h.domain == "" {
		return
	}
	exec := api.AllocationsExec.Route()
	f.Beside = taskpages.New(taskpages.Config{
		Domain: h.domain, Log: h.log, SignIns: h.signed, Use: h.use,
		Alone:    func(handle front.Handler) http.Handler { return f.Alone(exec, handle) },
		ExecPath: func(alloc string) string { return strings.Replace(exec.Pattern, "{id}", alloc, 1) },
	})
}

// address answers allocations.page.
func (h *taskPageHandlers) address(r *front.Request, alloc *structs.Allocation, body *api.TaskPageRequest) (*api.TaskPage, error) {
	if h.domain == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "taskpage.off")
	}
	if !alloc.Enterable() {
		return nil, structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	port, err := portOf(alloc, body.Port)
	if err != nil {
		return nil, err
	}
	host := taskpages.Host(h.domain, alloc.ID, port)
	entry, until, err := h.signed.Entry(r, host)
	if err != nil {
		return nil, err
	}
	if _, number, err := net.SplitHostPort(r.Host); err == nil { // the one that the browser came by
		host = net.JoinHostPort(host, number)
	}
	there := url.URL{Scheme: "https", Host: host, Path: taskpages.EntryPath, RawQuery: url.Values{taskpages.EntryParam: {entry}}.Encode()}
	return &api.TaskPage{Address: there.String(), Port: port, ExpiresAt: structs.At(until)}, nil
}

// portOf is the number of a port that was asked for by number or by name.
func portOf(alloc *structs.Allocation, asked string) (int, error) {
	if number, err := strconv.ParseUint(asked, 10, 16); err == nil && number > 0 {
		return int(number), nil
	}
	if number, ok := alloc.Ports[asked]; ok {
		return number, nil
	}
	return 0, structs.NewError(structs.CodeInvalid, "taskpage.port", "port", asked, "names", strings.Join(slices.Sorted(maps.Keys(alloc.Ports)), ", "))
}

// use makes a client of a task for whoever may enter it, and ends it with the right.
func (h *taskPageHandlers) use(r *front.Request, use func(context.Context, *ssh.Client)) error {
	alloc := h.store.Snapshot().Alloc(r.ID)
	switch {
	case alloc == nil:
		return auth.NotFound(auth.ObjectJob, r.ID)
	case !alloc.Enterable():
		return structs.NewError(structs.CodeConflict, "agent.alloc_ended", "id", alloc.ID)
	}
	conn, err := h.calls.ofAllocation(alloc)
	if err != nil {
		return err
	}
	start := &structs.ExecStart{AllocID: alloc.ID, Attempt: alloc.Attempt, User: r.Caller.Principal.ID}
	if err := hostOf(h.core, h.keys, alloc, start); err != nil {
		return err
	}
	authority, err := h.keys.SSHAuthority()
	if err != nil {
		return err
	}
	cluster, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authority))
	if err != nil {
		return err
	}
	ctx, end := h.whileValid(r)
	defer end()
	h.log.Info("page of a task", logkey.User, r.Caller.Principal.ID, logkey.TokenID, r.Caller.Token.ID, logkey.AllocID, alloc.ID)
	stream, err := rpc.OpenStream[structs.ExecUp, structs.ExecDown](ctx, conn, structs.MethodAllocExec)
	if err != nil {
		return err
	}
	defer stream.Close()
	task := &taskport.Stream{
		Recv: stream.Recv, SendMax: api.ExecMessageMax,
		Send: func(data []byte) error { return stream.Send(&structs.ExecUp{Stdin: data}) },
		End: func() error {
			stream.Close()
			return nil
		},
	}
	if err := stream.Send(&structs.ExecUp{Start: start}); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
		return err
	}
	target := structs.SSHTarget{Job: alloc.JobID, Rank: alloc.Rank, Subjob: alloc.Subjob, Attempt: alloc.Attempt}
	client, err := taskport.Connect(task, target.Host(), cluster)
	if err != nil {
		if said := task.Ending(); said != nil {
			return said
		}
		return structs.NewError(structs.CodeUnavailable, "taskpage.broken").Because(err)
	}
	defer client.Close()
	use(ctx, client)
	return nil
}
