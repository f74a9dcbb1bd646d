package httpapi

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// core is what handlers of every noun do: they read the state when it is new enough,
// wait for a change of it, and put commands into the log.
type core struct {
	replica  Log
	store    *state.Store
	log      *slog.Logger
	now      clockFunc
	stopping <-chan struct{} // closed when the agent stops
}

// whileValid returns a context for answers that stay open: it ends when the
// caller's token does or grants something else, or when the agent stops. The second
// value ends the watch.
func (c *core) whileValid(r *front.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(c.awaitEnd(ctx, &r.Caller))
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}

// awaitEnd returns when the caller's token is gone or over, when the caller may not
// do any more what it may do now, when the agent stops, or when ctx ends; and why.
func (c *core) awaitEnd(ctx context.Context, caller *front.Caller) error {
	revoked := structs.NewError(structs.CodeUnauthorized, "agent.token_revoked")
	var over <-chan time.Time
	if expires := caller.Token.ExpiresAt; expires != 0 {
		timer := time.NewTimer(expires.Time().Sub(c.now()))
		defer timer.Stop()
		over = timer.C
	}
	for {
		snapshot := c.store.Snapshot()
		token := snapshot.Token(caller.Token.ID)
		if token == nil {
			return revoked
		}
		switch standing, refusal := auth.Stand(snapshot, token, caller.Named(), c.now()); {
		case refusal != nil:
			return refusal
		case standing.Principal != caller.Principal:
			return structs.NewError(structs.CodeUnauthorized, "agent.rights_changed")
		}
		var user, service, project <-chan struct{} // never closed for programs
		if token.User != "" {
			service = snapshot.WatchServiceAccount(token.User)
			user, project = snapshot.WatchUser(token.User), snapshot.WatchProject(caller.Standing.Project)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stopping:
			return structs.NewError(structs.CodeUnavailable, "agent.stopping")
		case <-over:
			return revoked
		case <-snapshot.WatchToken(token.ID):
		case <-user:
		case <-service:
		case <-project:
		case <-snapshot.WatchSettings():
		}
	}
}

// refresh makes the server's copy current, unless the caller asked for a
// stale answer.
func (c *core) refresh(r *front.Request) error {
	q := front.Query{R: r}
	if !r.Route.Mutates() && r.Route.Blocking && q.Bool("stale") {
		return q.Err
	}
	if q.Err != nil {
		return q.Err
	}
	_, err := c.replica.Consistent(r.Context())
	return err
}

// reading says how a blocking query knows that something changed.
type reading struct {
	version func(*state.Snapshot) uint64          // index of the newest change of what is read
	watch   func(*state.Snapshot) <-chan struct{} // closed at the next one
	also    func(*state.Snapshot) <-chan struct{} // the same; may be nil
}

// await returns the first state whose version is newer than index, or the
// newest one when ctx ends before.
func (how reading) await(ctx context.Context, store *state.Store, index uint64) *state.Snapshot {
	for {
		now := store.Snapshot()
		if how.version(now) > index || ctx.Err() != nil {
			return now
		}
		var also <-chan struct{}
		if how.also != nil {
			also = how.also(now)
		}
		select {
		case <-how.watch(now):
		case <-also:
		case <-ctx.Done():
		}
	}
}

// block waits, when the caller asked for it, until there is something newer
// than the index that the caller knows, and returns the state to answer from.
func (c *core) block(r *front.Request, how reading) (*state.Snapshot, error) {
	q := front.Query{R: r}
	index, wait := q.Uint("index"), q.Wait()
	if q.Err != nil {
		return nil, q.Err
	}
	valid, end := c.whileValid(r)
	defer end()
	ctx, cancel := context.WithTimeout(valid, wait)
	defer cancel()
	if index == 0 {
		cancel() // not asked to wait
	}
	snapshot := how.await(ctx, c.store, index)
	if valid.Err() != nil {
		return nil, context.Cause(valid)
	}
	r.SetIndex(max(how.version(snapshot), 1))
	return snapshot, nil
}

// everything makes a blocking query of any change of the whole state that one
// watch sees, or a second one: for lists whose items may leave them, which no
// item's index says.
func everything(watch func(*state.Snapshot) <-chan struct{}, also ...func(*state.Snapshot) <-chan struct{}) reading {
	how := reading{version: (*state.Snapshot).Index, watch: watch}
	if len(also) > 0 {
		how.also = also[0]
	}
	return how
}

// page reads the paging parameters.
func page(r *front.Request) (state.Page, error) {
	q := front.Query{R: r}
	p := state.Page{After: q.Text("after"), Limit: q.Limit()}
	return p, q.Err
}

// propose puts a command of the caller into the log, with what it rests on. Every change that a
// person makes through the API is told here, for the log's reader.
func (c *core) propose(r *front.Request, kind structs.CommandKind, body any) (uint64, error) {
	_, index, err := c.replica.SubmitGuarded(r.Context(), r.Guard(), kind, r.Caller.Principal.ID, body)
	if err != nil {
		return 0, err
	}
	c.log.Info("changed by request", logkey.Method, r.Route.Name, logkey.User, r.Caller.Principal.ID,
		logkey.TokenID, r.Caller.Token.ID, "object", r.ID, logkey.Index, index, logkey.Request, r.Writer.Header().Get(api.HeaderRequestID))
	return index, nil
}

// change proposes a command and answers with its index.
func (c *core) change(r *front.Request, kind structs.CommandKind, body any) (*api.Changed, error) {
	index, err := c.propose(r, kind, body)
	if err != nil {
		return nil, err
	}
	return c.changed(r, index)
}

func (c *core) changed(r *front.Request, index uint64) (*api.Changed, error) {
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// newest is the highest modify index of what is iterated.
func newest[T any](items func(func(T) bool), index func(T) uint64) uint64 {
	highest := uint64(0)
	items(func(item T) bool {
		highest = max(highest, index(item))
		return true
	})
	return highest
}

// values copies rows out, so that an empty list is [] and not null.
func values[T any](rows []*T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = *row
	}
	return out
}
