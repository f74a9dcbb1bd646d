package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// How many messages are too many: what comes beyond them is told as one.
const (
	StormAfter  = 5 // messages to one person
	StormWindow = structs.Duration(time.Minute)
)

// digestCloses is how long before it is sent nothing is added to a message about several:
// a leader whose clock is ahead may be sending it.
const digestCloses = 5 * time.Second

// View is what decisions read of the state. Each method costs what it returns.
type View interface {
	// Job returns a job, nil when it is not kept.
	Job(id string) *structs.Job
	// Attempt returns an attempt of a job, nil when it is not kept.
	Attempt(jobID string, subjob int, attempt uint64) *structs.Attempt
	// ErrorLines are the last lines of what a failed attempt said, nil where they are not
	// known or its owner may not read them.
	ErrorLines(jobID string, subjob int, attempt uint64) []string
	// Settings is what a person chose to be told, nil for nothing, and for one who may not
	// see a project any more.
	Settings(user, project string) *structs.NotifySettings
	// QueuedSince is since when a job waits of which nothing runs, 0 for one that does not.
	QueuedSince(jobID string) structs.UnixNano
	// LimitAt is when a job that runs reaches its time limit, 0 for never.
	LimitAt(jobID string) structs.UnixNano
	// Belong iterates the settings of those who belong to a project to act there, or of
	// the operators where it lists nobody.
	Belong(project string) iter.Seq[*structs.NotifySettings]
	// Operators iterates the settings of those who operate the cluster.
	Operators() iter.Seq[*structs.NotifySettings]
	// Told lists the newest messages to a person.
	Told(user string) []*structs.Notification
}

// Decide makes the messages of events, which are all those behind the mark, in their
// order, up to the end of log index through. It returns what to put into the log, and
// whether events are left for another call; a step without messages needs no log, since
// whoever decides the same events again comes to the same. Pure.
func Decide(view View, mark structs.NotifyMark, events []*structs.Event, through uint64, now structs.UnixNano) (step structs.NotifyStep, more bool) {
	d := newDecision(view, now)
	step = structs.NotifyStep{Before: mark.Step, Index: through + 1, Time: mark.Time}
	for _, event := range events {
		happenings := d.happenings(event)
		if len(d.made)+len(happenings) > structs.NotifyMadeMax && len(d.made) > 0 {
			step.Index, step.Place = event.Index, event.Seq
			step.Made = d.messages()
			return step, true
		}
		for _, h := range happenings[:min(len(happenings), structs.NotifyMadeMax)] {
			if !d.knows(h) {
				d.tell(h)
			}
		}
	}
	step.Made = d.messages()
	return step, false
}

// happening is something that one person wants to be told.
type happening struct {
	to       *structs.NotifySettings
	channels []string
	message  structs.Notification
}

// decision collects what is told.
type decision struct {
	view  View
	now   structs.UnixNano
	made  map[string]*structs.Notification // by person and id
	order []string                         // keys of made
	told  map[string][]*structs.Notification

	decided map[string]bool // happenings, by person and id
}

func newDecision(view View, now structs.UnixNano) *decision {
	return &decision{view: view, now: now, made: make(map[string]*structs.Notification), told: make(map[string][]*structs.Notification), decided: make(map[string]bool)}
}

// messages lists what was made, in the order in which it was.
func (d *decision) messages() []structs.Notification {
	var list []structs.Notification
	for _, key := range d.order {
		list = append(list, *d.made[key])
	}
	return list
}

// happenings lists whom an event is told to.
func (d *decision) happenings(event *structs.Event) []happening {
	before := (*structs.Attempt)(nil)
	kind := KindOf(event, func() structs.Outcome {
		if event.Attempt > 1 {
			before = d.view.Attempt(event.JobID, event.Subjob, event.Attempt-1)
		}
		if before == nil {
			return ""
		}
		return before.Outcome
	})
	if kind == "" {
		return nil
	}
	message := structs.Notification{Kind: kind, Time: event.Time, Event: event.ID, Params: event.Params, Cause: event.Cause}
	id := func(user string) string { return idOf(user, kind, event.Index, event.Seq, event.Time) }
	var all []happening
	job := (*structs.Job)(nil)
	add := func(to *structs.NotifySettings) {
		if channels := channelsOf(to, job, kind, event.Time); len(channels) > 0 {
			one := message
			one.User, one.ID = to.User, id(to.User)
			all = append(all, happening{to, channels, one})
		}
	}
	if structs.NotifyOperators(kind) {
		for to := range d.view.Operators() {
			add(to)
		}
		return all
	}
	if job = d.view.Job(event.JobID); job == nil {
		return nil
	}
	message.Project, message.JobID, message.Job = job.Project, job.ID, job.Name
	attempt := d.view.Attempt(event.JobID, event.Subjob, event.Attempt)
	switch {
	case kind == structs.NotifyResumed:
		message.Cause = before.Cause
	case kind == structs.NotifyFailed:
		message.Lines = d.view.ErrorLines(event.JobID, event.Subjob, event.Attempt)
		if message.Cause == nil && attempt != nil {
			message.Cause = attempt.Cause
		}
	case kind == structs.NotifySlow && moves(event, attempt):
		message.Cause = structs.NewReason("notify.what.moved")
	}
	if once(event) && attempt != nil { // other ranks of the gang may say the same
		id = func(user string) string {
			return idOf(user, event.ID+"\x00"+job.ID, event.Attempt, event.Subjob, attempt.PlacedAt)
		}
	}
	if to := d.view.Settings(job.User, job.Project); to != nil {
		add(to)
	}
	return all
}

// channelsOf are those to which a kind of happening goes: which a person chose before it
// happened, and which the job says. A channel of the job's that its owner does not have,
// or has no more, is the bell. Pure.
func channelsOf(settings *structs.NotifySettings, job *structs.Job, kind string, at structs.UnixNano) (channels []string) {
	if rule := settings.Rule(kind); rule != nil && at >= rule.Since {
		channels = rule.Channels
	}
	if job == nil || job.Notify == nil || !slices.Contains(job.Notify.On, kind) {
		return channels
	}
	to := job.Notify.To
	if settings.Channel(to) == nil {
		to = structs.ChannelBell
	}
	if slices.Contains(channels, to) {
		return channels
	}
	return append(slices.Clone(channels), to)
}

// once reports whether an event is told of an attempt once, whichever of its ranks it is
// of, and however often.
func once(event *structs.Event) bool {
	return event.ID == "event.alloc.held" || event.ID == "event.alloc.slow" || event.ID == "event.alloc.evicted"
}

// moves reports whether the attempt that an event is of ends for what the event says, to
// go on elsewhere.
func moves(event *structs.Event, attempt *structs.Attempt) bool {
	if attempt == nil || attempt.Cause == nil {
		return false
	}
	hangs := strings.HasPrefix(event.ID, "event.attempt.hangs") && strings.HasPrefix(attempt.Cause.ID, "reason.hung")
	return hangs || event.ID == "event.alloc.slow" && attempt.Cause.ID == structs.ReasonSlow
}

// TellsFailure reports whether somebody is told by an event that a job failed. Pure.
func TellsFailure(view View, event *structs.Event) bool {
	if KindOf(event, func() structs.Outcome { return "" }) != structs.NotifyFailed {
		return false
	}
	return len(newDecision(view, event.Time).happenings(event)) > 0
}

// idOf names a message by its happening: whoever decides it again names it the same,
// and another history of the log, after a restore, names others.
func idOf(user, kind string, index uint64, seq int, at structs.UnixNano) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d.%d\x00%d", user, kind, index, seq, at))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// digestID names a message about several by the first of them, and by where it goes: that
// one may have a message of its own elsewhere.
func digestID(first string, bell bool, channels []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%t\x00%q", first, bell, channels))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// tell makes a message of a happening, or adds it to one about several: in quiet hours,
// where it waits for their end, and when a person got many messages of late.
func (d *decision) tell(h happening) {
	bell, others := split(h.to, h.channels)
	if end := QuietUntil(h.to.Quiet, d.now); end != 0 && len(others) > 0 {
		d.digest(h, end, false, others)
		others = nil
	}
	switch {
	case !bell && len(others) == 0:
	case d.storm(h.to.User):
		d.digest(h, d.now.Add(StormWindow.Std()), bell, others)
	default:
		h.message.Bell, h.message.Deliveries = bell, deliveries(others, d.now)
		d.put(&h.message)
	}
}

// split parts the bell from the other channels, and drops those that are gone.
func split(settings *structs.NotifySettings, channels []string) (bell bool, others []string) {
	for _, name := range channels {
		switch {
		case name == structs.ChannelBell:
			bell = true
		case settings.Channel(name) != nil:
			others = append(others, name)
		}
	}
	return bell, others
}

func deliveries(channels []string, at structs.UnixNano) []structs.NotifyDelivery {
	var list []structs.NotifyDelivery
	for _, name := range channels {
		list = append(list, structs.NotifyDelivery{Channel: name, NextAt: at})
	}
	return list
}

func (d *decision) put(n *structs.Notification) {
	key := n.User + "\x00" + n.ID
	if _, known := d.made[key]; !known {
		d.order = append(d.order, key)
	}
	d.made[key] = n
	list := d.of(n.User)
	for i, one := range list {
		if one.ID == n.ID {
			list[i] = n
			return
		}
	}
	d.told[n.User] = append([]*structs.Notification{n}, list...)
}

// of lists what a person was told of late, with what this decision adds.
func (d *decision) of(user string) []*structs.Notification {
	list, known := d.told[user]
	if !known {
		list = slices.Clone(d.view.Told(user))
		d.told[user] = list
	}
	return list
}

// knows reports whether a person was told of a happening already.
func (d *decision) knows(h happening) bool {
	key := h.message.User + "\x00" + h.message.ID
	if d.decided[key] {
		return true
	}
	d.decided[key] = true
	return slices.ContainsFunc(d.of(h.to.User), func(n *structs.Notification) bool { return n.ID == h.message.ID })
}

// storm reports whether a person got so many messages of late that more would be noise.
func (d *decision) storm(user string) bool {
	count := 0
	for _, n := range d.of(user) {
		if n.Kind != structs.NotifyDigest && n.Kind != structs.NotifyTest && n.Time > d.now.Add(-StormWindow.Std()) {
			count++
		}
	}
	return count >= StormAfter
}

// digest adds a happening to the one about several that is still open for the same
// channels, or opens one until a time.
func (d *decision) digest(h happening, until structs.UnixNano, bell bool, channels []string) {
	digest := &structs.Notification{
		ID: digestID(h.message.ID, bell, channels), User: h.message.User, Kind: structs.NotifyDigest, Time: h.message.Time, OpenUntil: until,
		Bell: bell, Deliveries: deliveries(channels, until),
	}
	for _, known := range d.of(h.to.User) {
		if known.Kind == structs.NotifyDigest && known.OpenUntil > d.now.Add(digestCloses) && known.Bell == bell && sameChannels(known.Deliveries, channels) {
			copied := *known
			digest = &copied
			break
		}
	}
	digest.Counts = maps.Clone(digest.Counts)
	if digest.Counts == nil {
		digest.Counts = make(map[string]int)
	}
	digest.Counts[h.message.Kind]++
	if name := h.message.Job; name != "" && len(digest.Names) < structs.NotifyNamesMax && !slices.Contains(digest.Names, name) {
		digest.Names = append(slices.Clone(digest.Names), name)
	}
	d.put(digest)
}

// sameChannels reports whether deliveries that nobody tried yet go to channels.
func sameChannels(deliveries []structs.NotifyDelivery, channels []string) bool {
	return slices.EqualFunc(deliveries, channels, func(delivery structs.NotifyDelivery, name string) bool {
		return delivery.Channel == name && delivery.Tries == 0
	})
}
