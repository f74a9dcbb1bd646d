package structs

import (
	"slices"
	"strconv"
	"time"
)

// What people can be told of. Each is a sort of happening; see notify.KindOf for the
// events behind them.
const (
	NotifyStarted   = "started"
	NotifyWaiting   = "waiting"   // longer than the person said
	NotifyFailed    = "failed"    // for good
	NotifyResumed   = "resumed"   // runs again after a fault
	NotifySlow      = "slow"      // slow, hung, or moved for its speed
	NotifyExpiring  = "expiring"  // its time limit comes
	NotifyExpired   = "expired"   // its time limit passed
	NotifySucceeded = "succeeded" //
	NotifyPreempted = "preempted" // makes room for another job
	NotifyHeld      = "held"      // for debugging
	NotifyQuota     = "quota"     // a quota of the project is nearly used
	NotifyNodes     = "nodes"     // operators: a node is lost
	NotifyDevices   = "devices"   // operators: a device is faulty
	NotifyServers   = "servers"   // operators: a server's disk is full, its backup failed, no other may fail, a certificate ends

	NotifyDigest = "digest" // several happenings in one; nobody chooses it
	NotifyTest   = "test"   // made by whoever wants to see a channel work
)

// NotifyKinds lists what a person may choose, in the order in which it is shown.
func NotifyKinds() []string {
	return []string{
		NotifyStarted, NotifyWaiting, NotifyFailed, NotifyResumed, NotifySlow, NotifyExpiring, NotifyExpired,
		NotifySucceeded, NotifyPreempted, NotifyHeld, NotifyQuota, NotifyNodes, NotifyDevices, NotifyServers,
	}
}

// NotifyOperators reports whether a kind is of the cluster, and so for its operators
// alone.
func NotifyOperators(kind string) bool {
	return kind == NotifyNodes || kind == NotifyDevices || kind == NotifyServers
}

// The sorts of channels. The bell is there without being made.
const (
	ChannelBell     = "bell"
	ChannelEmail    = "email" // to the address of the account
	ChannelWebhook  = "webhook"
	ChannelDingTalk = "dingtalk"
	ChannelFeishu   = "feishu"
	ChannelWeCom    = "wecom"
)

// Bounds of notifications.
const (
	NotifyChannelsMax    = 8       // of one person
	NotifyChannelNameMax = 32      // bytes
	NotifyAddressMax     = 2048    // bytes of a webhook's address
	NotifyKeptPerUser    = 100     // messages at the bell of one person, oldest dropped first
	NotifyKeptMax        = 20_000  // of the cluster
	NotifyMadeMax        = 256     // messages of one command
	NotifySettledMax     = 256     // results of deliveries of one command
	NotifyRaisedMax      = 256     // conditions that begin, and that end, in one command
	NotifyHoldsMax       = 4096    // conditions that hold at a time, and were told
	NotifyNamesMax       = 8       // jobs that a digest names
	NotifyLinesMax       = 10      // last lines of an error
	NotifyLinesSizeMax   = 2 << 10 // bytes of them
	NotifyProblemMax     = 300     // bytes of what a channel answered
)

// Least and most of the lengths of time that a person may name.
const (
	NotifySpanMin = Duration(time.Minute)
	NotifySpanMax = Duration(30 * 24 * time.Hour)
)

// NotifySettings is what one person chose to be told, and where. Written by that
// person; an account that has none has DefaultNotify.
type NotifySettings struct {
	User     string          `json:"user"`
	On       []NotifyRule    `json:"on,omitempty"`
	Channels []NotifyChannel `json:"channels,omitempty"`
	// WaitLonger and ExpireIn are how long a job waits, and how long before its time
	// limit it is, when that is told; 0 for what notify.WaitLonger and ExpireIn say.
	WaitLonger Duration     `json:"wait_longer,omitempty"`
	ExpireIn   Duration     `json:"expire_in,omitempty"`
	Quiet      *NotifyQuiet `json:"quiet,omitempty"`

	Seen        uint64 `json:"seen,omitempty"` // messages that the log made up to this index were seen
	ModifyIndex uint64 `json:"modify_index,omitempty"`
}

// NotifyRule sends one kind of happening to channels, by their names.
type NotifyRule struct {
	Kind     string   `json:"kind"`
	Channels []string `json:"channels"`
	Since    UnixNano `json:"since,omitempty"` // what happened before is not told; set by Apply
}

// NotifyChannel is a way to reach one person. Its address and its secret are in a
// secret of that person's own, and in no other record.
type NotifyChannel struct {
	Name string `json:"name"`
	Kind string `json:"kind"`           // email | webhook | dingtalk | feishu | wecom
	Host string `json:"host,omitempty"` // of its address, to be recognised by
}

// SecretName is the name of the own secret that holds the address of a channel.
func (c *NotifyChannel) SecretName() string { return "notify_" + c.Name }

// NotifyQuiet is when a person is not to be disturbed: what happens then comes as one
// message at its end. The bell shows it at once.
type NotifyQuiet struct {
	From int    `json:"from"` // minutes after midnight
	To   int    `json:"to"`   // the same; earlier than From: of the next day
	Zone string `json:"zone"` // of the IANA database, such as Asia/Shanghai
}

// JobNotify sends what happens to one job to a channel of its owner, beside what they
// chose for all of theirs.
type JobNotify struct {
	On []string `json:"on"` // kinds of happenings, of jobs
	To string   `json:"to"` // name of the channel, or the bell
}

// Copy returns one that shares nothing with n; nil copies to nil.
func (n *JobNotify) Copy() *JobNotify {
	if n == nil {
		return nil
	}
	return &JobNotify{On: slices.Clone(n.On), To: n.To}
}

// JobNotifyKinds lists what a job may have told, in the order in which it is shown.
func JobNotifyKinds() []string {
	return slices.DeleteFunc(NotifyKinds(), func(kind string) bool { return kind == NotifyQuota || NotifyOperators(kind) })
}

// jobNotify checks what a job, or the defaults of a project, has told.
func (v *validator) jobNotify(path string, n *JobNotify) {
	if n == nil {
		return
	}
	kinds := JobNotifyKinds()
	if len(n.On) == 0 {
		v.add(path+".on", "job.missing", "")
	}
	if len(n.On) > len(kinds) {
		v.add(path+".on", "job.too_many", "", "what", "on", "count", len(n.On), "max", len(kinds))
		return
	}
	for i, kind := range n.On {
		at := IndexedPath(path+".on", i)
		v.choice(at, kind, false, kinds...)
		if slices.Contains(n.On[:i], kind) {
			v.add(at, "job.duplicate", "", "value", kind)
		}
	}
	if n.To == ChannelBell {
		return
	}
	if id := NotifyChannelProblem(n.To); id != "" {
		v.add(path+".to", id, "", "name", n.To, "max", NotifyChannelNameMax)
	}
}

// Channel returns a channel by its name; nil when there is none. Callers change it
// only in a record of their own.
func (s *NotifySettings) Channel(name string) *NotifyChannel {
	for i := range s.Channels {
		if s.Channels[i].Name == name {
			return &s.Channels[i]
		}
	}
	return nil
}

// DefaultNotify is what the bell tells the holder of an account who chose nothing.
func DefaultNotify(user string, since UnixNano) *NotifySettings {
	settings := &NotifySettings{User: user}
	for _, kind := range NotifyKinds() {
		switch kind {
		case NotifyStarted, NotifyWaiting, NotifySucceeded: // what goes as it should
		case NotifyQuota: // one job may fill a quota that is meant to be full
		default:
			settings.On = append(settings.On, NotifyRule{Kind: kind, Channels: []string{ChannelBell}, Since: since})
		}
	}
	return settings
}

// Rule returns the rule of a kind; nil when there is none.
func (s *NotifySettings) Rule(kind string) *NotifyRule {
	if s == nil {
		return nil
	}
	for i := range s.On {
		if s.On[i].Kind == kind {
			return &s.On[i]
		}
	}
	return nil
}

// Validate lists everything that is wrong with the settings, in the order of their
// fields. Pure.
func (s *NotifySettings) Validate() []Problem {
	v := &validator{}
	for i := range s.Channels {
		c, path := &s.Channels[i], IndexedPath("channels", i)
		if id := NotifyChannelProblem(c.Name); id != "" {
			v.add(path+".name", id, "", "name", c.Name, "max", NotifyChannelNameMax)
		}
		v.choice(path+".kind", c.Kind, false, ChannelEmail, ChannelWebhook, ChannelDingTalk, ChannelFeishu, ChannelWeCom)
		v.plain(path+".host", c.Host, UserTextMax)
		if s.Channel(c.Name) != c {
			v.add(path+".name", "job.duplicate", "", "value", c.Name)
		}
	}
	if len(s.Channels) > NotifyChannelsMax {
		v.add("channels", "job.too_many", "", "what", "channels", "count", len(s.Channels), "max", NotifyChannelsMax)
	}
	v.notifyRules(s)
	v.notifySpan("wait_longer", s.WaitLonger)
	v.notifySpan("expire_in", s.ExpireIn)
	if s.Quiet != nil {
		v.notifyQuiet(s.Quiet)
	}
	return v.problems
}

func (v *validator) notifyRules(s *NotifySettings) {
	kinds := NotifyKinds()
	if len(s.On) > len(kinds) {
		v.add("on", "job.too_many", "", "what", "on", "count", len(s.On), "max", len(kinds))
		return
	}
	seen := make(map[string]bool, len(s.On))
	for i, rule := range s.On {
		path := IndexedPath("on", i)
		v.choice(path+".kind", rule.Kind, false, kinds...)
		if seen[rule.Kind] {
			v.add(path+".kind", "job.duplicate", "", "value", rule.Kind)
		}
		seen[rule.Kind] = true
		for n, name := range rule.Channels {
			switch at := IndexedPath(path+".channels", n); {
			case name != ChannelBell && s.Channel(name) == nil:
				v.add(at, "notify.channel_unknown", "", "channel", name)
			case slices.Contains(rule.Channels[:n], name):
				v.add(at, "job.duplicate", "", "value", name)
			}
		}
	}
}

func (v *validator) notifySpan(path string, span Duration) {
	if span != 0 && (span < NotifySpanMin || span > NotifySpanMax) {
		v.add(path, "notify.span", "", "min", NotifySpanMin, "max", NotifySpanMax)
	}
}

func (v *validator) notifyQuiet(q *NotifyQuiet) {
	const day = 24 * 60
	if q.From < 0 || q.From >= day || q.To < 0 || q.To >= day || q.From == q.To {
		v.add("quiet", "notify.quiet", "")
	}
	if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "" || q.Zone == "Local" {
		v.add("quiet.zone", "notify.zone", "", "zone", q.Zone)
	}
}

// NotifyChannelProblem reports why name may not name a channel, as the message id of
// the reason, or "" when it may: as secrets are named, and not as the bell is.
func NotifyChannelProblem(name string) string {
	switch {
	case name == "":
		return "name.empty"
	case name == ChannelBell:
		return "notify.channel_bell"
	case len(name) > NotifyChannelNameMax:
		return "secret.name_too_long"
	case nameEnd(name) != len(name):
		return "secret.name_characters"
	}
	return ""
}

// Notification is one message to one person about one happening, or about several
// where there were too many. Made once, by the leader's decision; delivered at least
// once to each channel, always with the same ID.
type Notification struct {
	ID   string   `json:"id"`
	User string   `json:"user"`
	Kind string   `json:"kind"`
	Time UnixNano `json:"time"` // of the happening; of a digest, of its first

	Project string            `json:"project,omitempty"`
	JobID   string            `json:"job_id,omitempty"`
	Job     string            `json:"job,omitempty"`   // name
	Event   string            `json:"event,omitempty"` // message id of what happened
	Params  map[string]string `json:"params,omitempty"`
	Cause   *Reason           `json:"cause,omitempty"`
	Lines   []string          `json:"lines,omitempty"` // the last ones of the error

	// Counts and Names are of a digest: how many of each kind, and the first jobs. It
	// grows until OpenUntil.
	Counts    map[string]int `json:"counts,omitempty"`
	Names     []string       `json:"names,omitempty"`
	OpenUntil UnixNano       `json:"open_until,omitempty"`

	Bell       bool             `json:"bell,omitempty"`       // it is shown at the bell
	Deliveries []NotifyDelivery `json:"deliveries,omitempty"` // to each channel but the bell
	MadeIndex  uint64           `json:"made_index,omitempty"` // of the log, when it last changed
}

// NotifyDelivery is how far a message is on its way to one channel.
type NotifyDelivery struct {
	Channel string   `json:"channel"`
	NextAt  UnixNano `json:"next_at,omitempty"` // when it is tried next; 0: it is over
	Tries   int      `json:"tries,omitempty"`
	SentAt  UnixNano `json:"sent_at,omitempty"` // 0 and no NextAt: it was given up
	Problem string   `json:"problem,omitempty"` // of the last try, as the channel told it
}

// Due is when the next delivery of the message is tried; 0 for none.
func (n *Notification) Due() UnixNano {
	var due UnixNano
	for i := range n.Deliveries {
		if next := n.Deliveries[i].NextAt; next > 0 && (due == 0 || next < due) {
			due = next
		}
	}
	return due
}

// NotifyMark is the one record of how far decisions are: whoever leads goes on from it,
// and what is before it is never decided again.
type NotifyMark struct {
	Step  uint64   `json:"step"`            // counts decisions
	Index uint64   `json:"index"`           // with Place: the place behind the last event that is decided
	Place int      `json:"place,omitempty"` //
	Time  UnixNano `json:"time"`            // and what only time brought about is decided up to then
	// Holds are the conditions that hold and were told, by their keys, since when.
	Holds map[string]UnixNano `json:"holds,omitempty" since:"36"`
}

// Cursor is the place behind the last event that is decided.
func (m NotifyMark) Cursor() Cursor { return Cursor{Index: m.Index, Place: m.Place} }

// NotifySet stores one person's settings. It is refused unless the stored ones have the
// index Before. With Seen alone only what was seen changes.
type NotifySet struct {
	Settings *NotifySettings `json:"settings,omitempty"`
	Before   uint64          `json:"before,omitempty"`
	User     string          `json:"user,omitempty"` // of Seen
	Seen     uint64          `json:"seen,omitempty"`
}

// NotifyStep is what a leader decided, and what became of deliveries. What is decided
// counts only while Before is the step of the mark, so that two leaders never decide
// about one happening; results count always.
type NotifyStep struct {
	Before  uint64          `json:"before"`
	Index   uint64          `json:"index,omitempty"` // the mark after it; 0: results alone
	Place   int             `json:"place,omitempty"`
	Time    UnixNano        `json:"time,omitempty"`
	Made    []Notification  `json:"made,omitempty"` // one with a known ID takes that one's place
	Settled []NotifySettled `json:"settled,omitempty"`
	Raised  []string        `json:"raised,omitempty" since:"36"`  // conditions that hold from now on
	Cleared []string        `json:"cleared,omitempty" since:"36"` // and that are over
}

// NotifySettled is how one try of a delivery went.
type NotifySettled struct {
	User     string         `json:"user"`
	ID       string         `json:"id"`
	Delivery NotifyDelivery `json:"delivery"`
}

// NotifyTime spells minutes after midnight as 22:30.
func NotifyTime(minutes int) string {
	two := func(n int) string {
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
		return strconv.Itoa(n)
	}
	return two(minutes/60) + ":" + two(minutes%60)
}
