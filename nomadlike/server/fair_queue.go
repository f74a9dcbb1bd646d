package server

import (
	"context"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
)

// Bounds of previews that are computed or wait.
const (
	PreviewsUserMax    = 16  // of one user
	PreviewsProjectMax = 64  // of one project
	PreviewsMax        = 256 // of all
)

// Asker is on whose account something is computed.
type Asker struct {
	User    string
	Project string // "": none's
}

// fairQueue lets one compute at a time: whoever looks for all goes first, then those
// who preview for themselves, user by user. However much one user asks for,
// another waits for one preview of each user who waits, and no more.
//
//	look ─────────────────────────► ┐
//	ann   ▢▢▢▢▢▢▢▢ (16 at most) ──► │ one at a time: a look, then
//	bob   ▢ ──────────────────────► │ ann, bob, cem, ann, ann …
//	cem   ▢ ──────────────────────► ┘
type fairQueue struct {
	mu struct {
		sync.Mutex
		taken    bool
		looks    []chan struct{}            // who waits to look; closed when it is their turn
		rows     map[string][]chan struct{} // by user: who waits to preview
		order    []string                   // users with a row, whose turn is next first
		user     map[string]int             // previews that have a place, by user
		project  map[string]int             // the same by project
		reserved int                        // the same of all
	}
}

func newFairQueue() *fairQueue {
	t := &fairQueue{}
	t.mu.rows, t.mu.user, t.mu.project = make(map[string][]chan struct{}), make(map[string]int), make(map[string]int)
	return t
}

// reserve takes a place for a preview until release. It fails with
// CodeUnavailable when so many have one: a user who has none is let in
// when all are taken, since there are only so many users.
func (t *fairQueue) reserve(who Asker) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.mu.user[who.User]
	switch {
	case own >= PreviewsUserMax:
		return structs.NewError(structs.CodeUnavailable, "server.previews_user", "max", PreviewsUserMax)
	case own > 0 && who.Project != "" && t.mu.project[who.Project] >= PreviewsProjectMax:
		return structs.NewError(structs.CodeUnavailable, "server.previews_project", "project", who.Project, "max", PreviewsProjectMax)
	case own > 0 && t.mu.reserved >= PreviewsMax:
		return structs.NewError(structs.CodeUnavailable, "server.previews_all", "max", PreviewsMax)
	}
	t.mu.user[who.User]++
	t.mu.project[who.Project]++
	t.mu.reserved++
	return nil
}

// release frees a place.
func (t *fairQueue) release(who Asker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	less := func(of map[string]int, key string) {
		if of[key]--; of[key] == 0 {
			delete(of, key)
		}
	}
	less(t.mu.user, who.User)
	less(t.mu.project, who.Project)
	t.mu.reserved--
}

// enterFirst waits until it is the turn of a look.
func (t *fairQueue) enterFirst() {
	t.mu.Lock()
	if !t.mu.taken {
		t.mu.taken = true
		t.mu.Unlock()
		return
	}
	mine := make(chan struct{})
	t.mu.looks = append(t.mu.looks, mine)
	t.mu.Unlock()
	<-mine
}

// enter waits for the turn of a user who previews; leave ends it. It fails with
// CodeTimeout when ctx ends before.
func (t *fairQueue) enter(ctx context.Context, who Asker) (leave func(), err error) {
	t.mu.Lock()
	if !t.mu.taken {
		t.mu.taken = true
		t.mu.Unlock()
		return t.leave, nil
	}
	mine := make(chan struct{})
	if len(t.mu.rows[who.User]) == 0 {
		t.mu.order = append(t.mu.order, who.User)
	}
	t.mu.rows[who.User] = append(t.mu.rows[who.User], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.leave, nil
	case <-ctx.Done():
	}
	if !t.withdraw(who.User, mine) {
		t.leave() // it came at the same moment
	}
	return nil, structs.NewError(structs.CodeTimeout, "server.foresight_busy").Because(ctx.Err())
}

// withdraw takes a waiting user back; false: it is their turn already.
func (t *fairQueue) withdraw(user string, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.mu.rows[user]
	at := slices.Index(row, mine)
	if at < 0 {
		return false
	}
	t.mu.rows[user] = slices.Delete(row, at, at+1)
	if len(row) == 1 {
		delete(t.mu.rows, user)
		t.mu.order = slices.DeleteFunc(t.mu.order, func(other string) bool { return other == user })
	}
	return true
}

// leave passes the turn to the next in line.
func (t *fairQueue) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.looks) > 0 {
		close(t.mu.looks[0])
		t.mu.looks = t.mu.looks[1:]
		return
	}
	if len(t.mu.order) == 0 {
		t.mu.taken = false
		return
	}
	user := t.mu.order[0]
	row := t.mu.rows[user]
	close(row[0])
	t.mu.order = t.mu.order[1:]
	if len(row) == 1 {
		delete(t.mu.rows, user)
		return
	}
	t.mu.rows[user] = row[1:]
	t.mu.order = append(t.mu.order, user)
}
