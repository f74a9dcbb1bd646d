package agent

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // quiet hours are in zones, and a server may have no files of these

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Times of the work on notifications.
const (
	notifyEvery     = 500 * time.Millisecond
	notifyWalkEvery = 10 * time.Second // at most, through all that waits and runs
)

// notifier tells people what happened, while this server leads: it puts what is to be
// told into the log, and has what the log holds delivered. Its methods are called from
// the goroutine of run alone.
type notifier struct {
	store    *state.Store
	leads    func() bool
	protocol func() int // the lowest of the servers
	proposer *atomic.Pointer[server.Server]
	words    *errorLines
	now      func() time.Time
	log      *slog.Logger

	deliveries *deliverer

	waits  notify.Waits
	waited <-chan struct{} // closed when other things may be waited for; nil: the state was not walked yet
	walked time.Time

	margin     margin // of the quorum
	holding    func() (voters, living int, certificates []notify.Certificate)
	heldLooked time.Time
	from       structs.Cursor // events before it are decided
	lineage    uint64         // of the state that from is a place in
}

// openNotifier begins to tell people what happened.
func openNotifier(a *Agent) (*notifier, error) {
	deliveries, err := openDeliverer(a)
	if err != nil {
		return nil, err
	}
	n := &notifier{
		store: a.store, leads: a.raft.IsLeader, protocol: a.members.Protocol, proposer: &a.proposer,
		words: &errorLines{pool: a.pool, log: a.log}, now: time.Now, log: a.log, deliveries: deliveries,
		holding: func() (voters, living int, certificates []notify.Certificate) {
			voters, living = voting(a.members.views())
			return voters, living, ending(a.members.Members(), a.CA())
		},
	}
	a.life.follow(n.run)
	return n, nil
}

// run looks for what is to be told and delivered, until ctx ends.
func (n *notifier) run(ctx context.Context) {
	tick := time.NewTicker(notifyEvery)
	defer tick.Stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n.protocol() >= wire.ProtocolNotify {
			n.look(ctx, sending.Go)
		}
	}
}

// look decides what is new, notes what became of deliveries, and begins those that are
// due, by begin. A server that does not lead only notes results.
func (n *notifier) look(ctx context.Context, begin func(func())) {
	n.deliveries.settle(ctx)
	if !n.leads() {
		n.from, n.waited, n.margin = structs.Cursor{}, nil, margin{} // whoever leads meanwhile decides
		return
	}
	err := n.decide(ctx)
	if err == nil {
		err = n.decideWaits(ctx)
	}
	if err == nil && n.protocol() >= wire.ProtocolHolds {
		err = n.decideHolding(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("notifications were not decided", logkey.Error, err)
		}
		return
	}
	n.deliveries.beginDue(ctx, begin)
}

// decide puts into the log what is to be told of events since the last look.
func (n *notifier) decide(ctx context.Context) error {
	for {
		snapshot := n.store.Snapshot()
		mark := snapshot.NotifyMark()
		if lineage := snapshot.Lineage(); lineage != n.lineage {
			n.lineage, n.from, n.waited = lineage, structs.Cursor{}, nil
		}
		if n.from.Compare(mark.Cursor()) < 0 {
			n.from = mark.Cursor()
		}
		if n.from.Index > snapshot.Index() && n.from.Place == 0 {
			return nil
		}
		events, through, err := snapshot.EventsAfter(n.from)
		if errors.Is(err, state.ErrEventsDropped) {
			if !n.from.IsZero() {
				n.log.Warn("events were dropped before it was decided whom to tell of them", "from", n.from.String())
			}
			n.from = snapshot.EventsFrom()
			continue
		}
		if err != nil {
			return err
		}
		view := notifyView{Snapshot: snapshot}
		n.await(view, events)
		view.lines = n.words.of(ctx, view, events)
		step, more := notify.Decide(view, mark, events, through, structs.At(n.now()))
		if len(step.Made) > 0 {
			_, _, err := n.proposer.Load().Submit(ctx, structs.CommandNotifyStep, "", &step)
			if structs.CodeOf(err) == structs.CodeConflict {
				n.from = structs.Cursor{} // somebody else decided: go on behind that
				return nil
			}
			if err != nil {
				return err
			}
		}
		n.from = structs.Cursor{Index: step.Index, Place: step.Place}
		if !more && through >= snapshot.Index() {
			return nil
		}
	}
}

// await notes what events make people wait for.
func (n *notifier) await(view notifyView, events []*structs.Event) {
	if n.waited == nil {
		return // the state will be walked
	}
	for _, event := range events {
		switch event.ID {
		case "event.job.submitted", "event.job.requeued":
			n.waits.Add(notify.WaitFor(view, structs.NotifyWaiting, event.JobID))
		case "event.job.running", "event.job.continued", "event.job.time_limit", "event.job.time_limit_set":
			n.waits.Add(notify.WaitFor(view, structs.NotifyExpiring, event.JobID))
		}
	}
}

// decideWaits puts into the log what is to be told because time passed. It walks the state
// when it begins to lead and when somebody chose something else, and else looks only at
// what is due.
func (n *notifier) decideWaits(ctx context.Context) error {
	snapshot := n.store.Snapshot()
	view := notifyView{Snapshot: snapshot}
	stale := n.waited == nil
	if !stale && time.Since(n.walked) > notifyWalkEvery {
		select {
		case <-n.waited:
			stale = true
		default:
		}
	}
	if stale {
		n.waits, n.waited, n.walked = notify.Waits{}, snapshot.WatchNotifyChosen(), time.Now()
		n.walk(view)
	}
	due := n.waits.Due(structs.At(n.now()))
	if len(due) == 0 {
		return nil
	}
	step, again := notify.Overdue(view, snapshot.NotifyMark(), due, structs.At(n.now()))
	if len(step.Made) > 0 {
		if _, _, err := n.proposer.Load().Submit(ctx, structs.CommandNotifyStep, "", &step); err != nil {
			n.waited = nil // they are found again
			if structs.CodeOf(err) == structs.CodeConflict {
				return nil
			}
			return err
		}
	}
	for i := range again {
		n.waits.Add(&again[i])
	}
	return nil
}

// walk notes everything that people wait for, when anybody does.
func (n *notifier) walk(view notifyView) {
	waiting := false
	for settings := range view.NotifyChosen() {
		waiting = waiting || settings.Rule(structs.NotifyWaiting) != nil
	}
	seen := ""
	for job := range view.Queue() {
		if job.ID != seen && (waiting || job.Notify != nil) { // subjobs of a job stand together
			seen = job.ID
			n.waits.Add(notify.WaitFor(view, structs.NotifyWaiting, job.ID))
		}
	}
	for attempt := range view.LiveAttempts() {
		n.waits.Add(notify.WaitFor(view, structs.NotifyExpiring, attempt.JobID))
	}
}

// notifyView is a state as decisions read it.
type notifyView struct {
	*state.Snapshot
	lines map[attemptKey][]string // that failed attempts said last
}

// Job implements notify.View.
func (v notifyView) Job(id string) *structs.Job {
	view, _ := v.Snapshot.Job(id)
	return view.Job
}

// ErrorLines implements notify.View.
func (v notifyView) ErrorLines(jobID string, subjob int, attempt uint64) []string {
	return v.lines[attemptKey{jobID, subjob, attempt}]
}

// Settings implements notify.View. Whoever lost the project is not told of jobs in it. A
// name without an account that chose nothing may still have jobs that say what is told.
func (v notifyView) Settings(user, project string) *structs.NotifySettings {
	account := v.User(user)
	if account != nil && account.Role == "" && v.Project(project).RoleOf(user) == "" {
		return nil
	}
	settings := v.NotifySettings(user)
	if settings == nil && account == nil && user != "" {
		return &structs.NotifySettings{User: user}
	}
	return settings
}

// Belong implements notify.View.
func (v notifyView) Belong(name string) iter.Seq[*structs.NotifySettings] {
	project := v.Project(name)
	if !project.Closed() {
		return v.Operators()
	}
	return func(yield func(*structs.NotifySettings) bool) {
		seen := make(map[string]bool)
		each := func(user string) bool {
			role := project.RoleOf(user)
			if seen[user] || role != structs.RoleUser && role != structs.RoleProjectAdmin {
				return true
			}
			seen[user] = true
			settings := v.NotifySettings(user)
			return settings == nil || yield(settings)
		}
		for _, user := range slices.Concat(project.Members, project.Admins) {
			if !each(user) {
				return
			}
		}
		for _, granted := range project.Granted {
			if !each(granted.User) {
				return
			}
		}
	}
}

// Operators implements notify.View: accounts, and tokens, with a role in the cluster.
func (v notifyView) Operators() iter.Seq[*structs.NotifySettings] {
	return func(yield func(*structs.NotifySettings) bool) {
		seen := make(map[string]bool)
		each := func(user, role string) bool {
			if role != structs.RoleOperator && role != structs.RoleAdmin || user == "" || seen[user] {
				return true
			}
			seen[user] = true
			settings := v.NotifySettings(user)
			return settings == nil || yield(settings)
		}
		for account := range v.Users() {
			if !each(account.Name, account.Role) {
				return
			}
		}
		for token := range v.Tokens() {
			if v.User(token.User) == nil && !each(token.User, token.Role) {
				return
			}
		}
	}
}

// QueuedSince implements notify.View.
func (v notifyView) QueuedSince(jobID string) structs.UnixNano {
	view, there := v.Snapshot.Job(jobID)
	if !there || view.Status.State != structs.JobQueued {
		return 0
	}
	if first := v.Subjob(jobID, 0); first != nil && first.State == structs.JobQueued {
		return first.QueuedAt
	}
	for subjob := range v.Subjobs(jobID) {
		if subjob.State == structs.JobQueued {
			return subjob.QueuedAt
		}
	}
	return 0
}

// Told implements notify.View.
func (v notifyView) Told(user string) []*structs.Notification { return v.Notifications(user) }
