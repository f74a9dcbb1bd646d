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

// View is what decisions read of the state. Each method costs what it returns.
type View interface {
	// Job returns a job, nil when it is not kept.
	Job(id string) *structs.Job
	// Outcome is how an attempt ended, "" while that is not known.
	Outcome(jobID string, subjob int, attempt uint64) structs.Outcome
	// Cause is why an attempt ended, nil where nothing is known.
	Cause(jobID string, subjob int, attempt uint64) *structs.Reason
	// Settings is what a person chose to be told, nil for nothing, and for one who may not
	// see a project any more.
	Settings(user, project string) *structs.NotifySettings
	// QueuedSince is since when a job waits of which nothing runs, 0 for one that does not.
	QueuedSince(jobID string) structs.UnixNano
	// LimitAt is when a job that runs reaches its time limit, 0 for never.
	LimitAt(jobID string) structs.UnixNano
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
			d.tell(h)
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
}

func newDecision(view View, now structs.UnixNano) *decision {
	return &decision{view: view, now: now, made: make(map[string]*structs.Notification), told: make(map[string][]*structs.Notification)}
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
	kind := KindOf(event, func() structs.Outcome {
		if event.Attempt <= 1 {
			return ""
		}
		return d.view.Outcome(event.JobID, event.Subjob, event.Attempt-1)
	})
	if kind == "" {
		return nil
	}
	message := structs.Notification{Kind: kind, Time: event.Time, Event: event.ID, Params: event.Params, Cause: event.Cause}
	var all []happening
	add := func(to *structs.NotifySettings) {
		if rule := to.Rule(kind); rule != nil && len(rule.Channels) > 0 && event.Time >= rule.Since {
			one := message
			one.User, one.ID = to.User, idOf(to.User, kind, event.Index, event.Seq, event.Time)
			all = append(all, happening{to, rule.Channels, one})
		}
	}
	if structs.NotifyOperators(kind) {
		for to := range d.view.Operators() {
			add(to)
		}
		return all
	}
	job := d.view.Job(event.JobID)
	if job == nil {
		return nil
	}
	message.Project, message.JobID, message.Job = job.Project, job.ID, job.Name
	if kind == structs.NotifyFailed && message.Cause == nil {
		message.Cause = d.view.Cause(event.JobID, event.Subjob, event.Attempt)
	}
	if to := d.view.Settings(job.User, job.Project); to != nil {
		add(to)
	}
	return all
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
		if known.Kind == structs.NotifyDigest && known.OpenUntil > d.now && known.Bell == bell && sameChannels(known.Deliveries, channels) {
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

// QuietUntil is the end of the quiet hours that now is in, 0 outside of them. A zone
// that this machine does not know has none.
func QuietUntil(quiet *structs.NotifyQuiet, now structs.UnixNano) structs.UnixNano {
	if quiet == nil {
		return 0
	}
	zone, err := time.LoadLocation(quiet.Zone)
	if err != nil || strings.EqualFold(quiet.Zone, "local") {
		return 0
	}
	here := now.Time().In(zone)
	minute := 60*here.Hour() + here.Minute()
	days := 0
	switch {
	case quiet.From < quiet.To && (minute < quiet.From || minute >= quiet.To):
		return 0
	case quiet.From > quiet.To && minute >= quiet.From:
		days = 1
	case quiet.From > quiet.To && minute >= quiet.To:
		return 0
	}
	return structs.At(time.Date(here.Year(), here.Month(), here.Day()+days, quiet.To/60, quiet.To%60, 0, 0, zone))
}
