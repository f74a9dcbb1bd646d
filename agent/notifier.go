package agent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // quiet hours are in zones, and a server may have no files of these

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/notify/send"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Bounds of the work on notifications.
const (
	notifyEvery = 500 * time.Millisecond
	notifyBatch = 64 // messages that one look begins to deliver
	notifySlots = 16 // deliveries at once

	notifyWalkEvery = 10 * time.Second // at most, through all that waits and runs
)

// notifier tells people what happened, while this server leads: it puts what is to be
// told into the log, and delivers what the log holds. Its methods may be called from any
// goroutine; look alone from that of run.
type notifier struct {
	store    *state.Store
	leads    func() bool
	protocol func() int // the lowest of the servers
	proposer *atomic.Pointer[server.Server]
	open     func(structs.SecretRef) ([]byte, error)
	allowed  []string
	base     string // address of the pages
	poster   *send.Poster
	mailer   *send.Mailer // nil: there is no mail server
	now      func() time.Time
	log      *slog.Logger

	waits  notify.Waits
	waited <-chan struct{} // closed when other things may be waited for; nil: the state was not walked yet
	walked time.Time

	from    structs.Cursor // events before it are decided
	lineage uint64         // of the state that from is a place in
	slots   chan struct{}

	mu struct {
		sync.Mutex
		sending map[string]bool         // deliveries under way, or whose result is not in the log
		settled []structs.NotifySettled // results that are not in the log yet
	}
}

// openNotifier begins to tell people what happened.
func openNotifier(a *Agent) (*notifier, error) {
	c := a.config.Server.Notify
	n := &notifier{
		store: a.store, leads: a.raft.IsLeader, protocol: a.members.Protocol, proposer: &a.proposer, open: a.vault.channel,
		allowed: c.Allow, base: c.URL, now: time.Now, log: a.log, slots: make(chan struct{}, notifySlots),
	}
	n.mu.sending = make(map[string]bool)
	if n.base == "" {
		n.base = "https://" + a.addr
	}
	gossip := uint16(a.config.Gossip)
	n.poster = send.NewPoster(func(to netip.AddrPort) bool {
		if a.options.reaches != nil && a.options.reaches(to) {
			return false
		}
		return notify.Forbidden(to.Addr()) || ownPort(a.store.Snapshot(), a.servers.addresses(), gossip, to)
	})
	if c.SMTP.Address != "" {
		var err error
		n.mailer, err = send.NewMailer(send.MailConfig{
			Address: c.SMTP.Address, Implicit: c.SMTP.TLS == "tls", CA: c.SMTP.CA,
			User: c.SMTP.User, PasswordFile: c.SMTP.PasswordFile, From: c.SMTP.From,
		})
		if err != nil {
			return nil, err
		}
	}
	a.life.follow(n.run)
	return n, nil
}

// ownPort reports whether an address is one at which an agent of the cluster listens: a
// port that servers use, on whichever machine, since one machine has many addresses; or
// the very port of a node.
func ownPort(snapshot *state.Snapshot, servers []string, gossip uint16, to netip.AddrPort) bool {
	if gossip != 0 && to.Port() == gossip {
		return true
	}
	port := strconv.Itoa(int(to.Port()))
	for _, address := range servers {
		if _, p, err := net.SplitHostPort(address); err == nil && p == port {
			return true
		}
	}
	for node := range snapshot.Nodes() {
		if host, p, err := net.SplitHostPort(node.RPCAddr); err == nil && p == port && host == to.Addr().String() {
			return true
		}
	}
	return false
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
	n.settle(ctx)
	if !n.leads() {
		n.from, n.waited = structs.Cursor{}, nil // whoever leads meanwhile decides
		return
	}
	err := n.decide(ctx)
	if err == nil {
		err = n.decideWaits(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("notifications were not decided", logkey.Error, err)
		}
		return
	}
	now := structs.At(n.now())
	for _, message := range n.store.Snapshot().DueNotifications(now, notifyBatch) {
		for _, delivery := range message.Deliveries {
			if delivery.NextAt == 0 || delivery.NextAt > now || !n.claim(message, delivery.Channel) {
				continue
			}
			select {
			case n.slots <- struct{}{}:
			default: // the next look begins it
				n.release(message, delivery.Channel)
				return
			}
			begin(func() {
				defer func() { <-n.slots }()
				n.deliver(ctx, message, delivery)
			})
		}
	}
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
		n.await(notifyView{snapshot}, events)
		step, more := notify.Decide(notifyView{snapshot}, mark, events, through, structs.At(n.now()))
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
	view := notifyView{snapshot}
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
	if waiting {
		seen := ""
		for job := range view.Queue() {
			if job.ID != seen { // subjobs of a job stand together
				seen = job.ID
				n.waits.Add(notify.WaitFor(view, structs.NotifyWaiting, job.ID))
			}
		}
	}
	for attempt := range view.LiveAttempts() {
		n.waits.Add(notify.WaitFor(view, structs.NotifyExpiring, attempt.JobID))
	}
}

func deliveryKey(n *structs.Notification, channel string) string {
	return n.User + "\x00" + n.ID + "\x00" + channel
}

// claim notes that a delivery begins, false when it is under way.
func (n *notifier) claim(message *structs.Notification, channel string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := deliveryKey(message, channel)
	if n.mu.sending[key] {
		return false
	}
	n.mu.sending[key] = true
	return true
}

func (n *notifier) release(message *structs.Notification, channel string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.sending, deliveryKey(message, channel))
}

// deliver tries one delivery, and keeps what became of it for the next look.
func (n *notifier) deliver(ctx context.Context, message *structs.Notification, delivery structs.NotifyDelivery) {
	result := notify.Result{Final: true, Problem: "notify.problem.gone"}
	if settings := n.store.Snapshot().NotifySettings(message.User); settings != nil {
		if channel := settings.Channel(delivery.Channel); channel != nil {
			result = n.Try(ctx, *channel, message)
		}
	}
	if ctx.Err() != nil && !result.Sent {
		return // another server tries it
	}
	if !result.Sent {
		n.log.Info("a notification was not delivered", logkey.User, message.User, "channel", delivery.Channel, "problem", result.Problem)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.settled = append(n.mu.settled, structs.NotifySettled{
		User: message.User, ID: message.ID, Delivery: notify.After(message, delivery, result, structs.At(n.now())),
	})
}

// settle puts results into the log.
func (n *notifier) settle(ctx context.Context) {
	n.mu.Lock()
	settled := n.mu.settled
	n.mu.Unlock()
	if settled = settled[:min(len(settled), structs.NotifySettledMax)]; len(settled) == 0 {
		return
	}
	if _, _, err := n.proposer.Load().Submit(ctx, structs.CommandNotifyStep, "", &structs.NotifyStep{Settled: settled}); err != nil {
		if ctx.Err() == nil {
			n.log.Warn("results of notifications are not in the log yet", logkey.Error, err)
		}
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.settled = n.mu.settled[len(settled):]
	for i := range settled {
		delete(n.mu.sending, settled[i].User+"\x00"+settled[i].ID+"\x00"+settled[i].Delivery.Channel)
	}
}

// Hosts implements httpapi.Tell.
func (n *notifier) Hosts() (allowed []string, mail bool) { return n.allowed, n.mailer != nil }

// Try implements httpapi.Tell: one try, in the language of the person.
func (n *notifier) Try(ctx context.Context, channel structs.NotifyChannel, message *structs.Notification) notify.Result {
	snapshot := n.store.Snapshot()
	account := snapshot.User(message.User)
	language := messages.English
	if account != nil && account.Language == string(messages.Chinese) {
		language = messages.Chinese
	}
	text := notify.TextOf(language, message, n.base)
	if channel.Kind == structs.ChannelEmail {
		switch {
		case n.mailer == nil:
			return notify.Result{Problem: "notify.problem.no_mail"}
		case account == nil || account.Email == "":
			return notify.Result{Final: true, Problem: "notify.problem.no_address"}
		}
		return n.mailer.Mail(ctx, account.Email, message, text)
	}
	value, err := n.open(structs.SecretRef{User: message.User, Name: channel.SecretName()})
	if err != nil {
		n.log.Warn("the address of a channel cannot be opened", logkey.User, message.User, logkey.Error, err)
		return notify.Result{Problem: "notify.problem.sealed"}
	}
	defer clear(value)
	var target notify.Target
	if err := json.Unmarshal(value, &target); err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.url"}
	}
	if _, err := notify.CheckAddress(target.URL, n.allowed); err != nil { // the administrator may have changed their mind
		return notify.Result{Problem: "notify.problem.host"}
	}
	request, err := notify.RequestFor(channel.Kind, target, message, text, structs.At(n.now()))
	if err != nil {
		return notify.Result{Final: true, Problem: "notify.problem.secret"}
	}
	return n.poster.Post(ctx, channel.Kind, request)
}

// notifyView is a state as decisions read it.
type notifyView struct{ *state.Snapshot }

// Job implements notify.View.
func (v notifyView) Job(id string) *structs.Job {
	view, _ := v.Snapshot.Job(id)
	return view.Job
}

// Outcome implements notify.View.
func (v notifyView) Outcome(jobID string, subjob int, attempt uint64) structs.Outcome {
	if known := v.Attempt(jobID, subjob, attempt); known != nil {
		return known.Outcome
	}
	return ""
}

// Cause implements notify.View.
func (v notifyView) Cause(jobID string, subjob int, attempt uint64) *structs.Reason {
	if known := v.Attempt(jobID, subjob, attempt); known != nil {
		return known.Cause
	}
	return nil
}

// Settings implements notify.View. Whoever lost the project is not told of jobs in it.
func (v notifyView) Settings(user, project string) *structs.NotifySettings {
	account := v.User(user)
	if account != nil && account.Role == "" && v.Project(project).RoleOf(user) == "" {
		return nil
	}
	return v.NotifySettings(user)
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
