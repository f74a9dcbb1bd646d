package notify

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// world is a state for decisions.
type world struct {
	jobs      map[string]*structs.Job
	outcomes  map[uint64]structs.Outcome // by attempt
	settings  map[string]*structs.NotifySettings
	operators []string
	belong    map[string][]string // people by project
	told      map[string]map[string]*structs.Notification
	queued    map[string]structs.UnixNano // by job
	limits    map[string]structs.UnixNano
	lines     []string // of what failed
	cause     string   // of the end of attempts, where it is another
}

func newWorld() *world {
	return &world{
		jobs: map[string]*structs.Job{}, outcomes: map[uint64]structs.Outcome{}, settings: map[string]*structs.NotifySettings{},
		told: map[string]map[string]*structs.Notification{}, queued: map[string]structs.UnixNano{}, limits: map[string]structs.UnixNano{},
	}
}

func (w *world) Job(id string) *structs.Job { return w.jobs[id] }

func (w *world) Attempt(job string, _ int, number uint64) *structs.Attempt {
	attempt := &structs.Attempt{
		JobID: job, Number: number, Outcome: w.outcomes[number], PlacedAt: noon + structs.UnixNano(number),
		Cause: structs.NewReason("reason.preempted", "user", "mo", "job", "big"),
	}
	if w.cause != "" {
		attempt.Cause = structs.NewReason(w.cause)
	}
	return attempt
}

func (w *world) ErrorLines(string, int, uint64) []string { return w.lines }

func (w *world) Settings(user, _ string) *structs.NotifySettings { return w.settings[user] }

func (w *world) QueuedSince(job string) structs.UnixNano { return w.queued[job] }

func (w *world) LimitAt(job string) structs.UnixNano { return w.limits[job] }

func (w *world) Operators() iter.Seq[*structs.NotifySettings] { return w.people(w.operators) }

func (w *world) Belong(project string) iter.Seq[*structs.NotifySettings] {
	return w.people(w.belong[project])
}

func (w *world) people(names []string) iter.Seq[*structs.NotifySettings] {
	return func(yield func(*structs.NotifySettings) bool) {
		for _, name := range names {
			if !yield(w.settings[name]) {
				return
			}
		}
	}
}

func (w *world) Told(user string) (list []*structs.Notification) {
	for _, n := range w.told[user] {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *structs.Notification) int { return int(b.MadeIndex) - int(a.MadeIndex) })
	return list
}

// take does what the log does with a step.
func (w *world) take(step structs.NotifyStep) {
	for _, n := range step.Made {
		if w.told[n.User] == nil {
			w.told[n.User] = map[string]*structs.Notification{}
		}
		n.MadeIndex = step.Index
		w.told[n.User][n.ID] = &n
	}
}

// person wants kinds at the bell and at a channel.
func (w *world) person(name string, kinds ...string) *structs.NotifySettings {
	s := &structs.NotifySettings{User: name, Channels: []structs.NotifyChannel{{Name: "team", Kind: structs.ChannelWebhook}}}
	for _, kind := range kinds {
		s.On = append(s.On, structs.NotifyRule{Kind: kind, Channels: []string{structs.ChannelBell, "team"}})
	}
	w.settings[name] = s
	return s
}

func (w *world) job(id, user string) {
	w.jobs[id] = &structs.Job{ID: id, Name: "n-" + id, User: user, Project: "speech"}
}

const noon = structs.UnixNano(1764244800 * int64(time.Second)) // 2025-11-27 12:00 UTC

func failed(index uint64, job string) *structs.Event {
	return &structs.Event{Index: index, Time: noon, ID: "event.job.failed", JobID: job, Attempt: 1, Params: map[string]string{"job": job, "attempt": "1", "exit_code": "1"}}
}

// Each event that people can be told of is one kind; what else happens is none.
func TestKindsOfEvents(t *testing.T) {
	for _, c := range []struct {
		id     string
		before structs.Outcome
		want   string
	}{
		{"event.job.running", "", structs.NotifyStarted},
		{"event.job.running", structs.OutcomePreempted, structs.NotifyStarted},
		{"event.job.running", structs.OutcomeFailed, structs.NotifyResumed},
		{"event.job.running", structs.OutcomeLost, structs.NotifyResumed},
		{"event.job.failed", "", structs.NotifyFailed},
		{"event.job.failed_unrun", "", structs.NotifyFailed},
		{"event.job.succeeded", "", structs.NotifySucceeded},
		{"event.job.expired", "", structs.NotifyExpired},
		{"event.attempt.preempted", "", structs.NotifyPreempted},
		{"event.alloc.held", "", structs.NotifyHeld},
		{"event.alloc.slow", "", structs.NotifySlow},
		{"event.alloc.slow_stays", "", ""},
		{"event.alloc.evicted", "", structs.NotifySlow},
		{"event.attempt.hangs_idle", "", structs.NotifySlow},
		{"event.node.lost", "", structs.NotifyNodes},
		{"event.node.device_unwell", "", structs.NotifyDevices},
		{"event.cluster.server_full", "", structs.NotifyServers},
		{"event.job.submitted", "", ""},
		{"event.alloc.failed", "", ""},
		{"event.secret.created", "", ""},
	} {
		if got := KindOf(&structs.Event{ID: c.id}, func() structs.Outcome { return c.before }); got != c.want {
			t.Errorf("%s after %q is %q, want %q", c.id, c.before, got, c.want)
		}
	}
}

// People are told what they chose, of their own jobs, from when they chose it; operators
// of the cluster.
func TestWhoIsTold(t *testing.T) {
	w := newWorld()
	w.person("li", structs.NotifyFailed)
	w.person("mo", structs.NotifySucceeded)
	w.person("op", structs.NotifyNodes, structs.NotifyFailed).On[0].Since = noon + 10
	w.operators = []string{"op"}
	for id, user := range map[string]string{"j1": "li", "j2": "mo", "j3": "nobody"} {
		w.job(id, user)
	}
	events := []*structs.Event{
		failed(4, "j1"), failed(5, "j2"), failed(6, "j3"), failed(7, "gone"),
		{Index: 8, Time: noon, ID: "event.node.lost", NodeID: "n1"},
		{Index: 9, Time: noon + 10, ID: "event.node.lost", NodeID: "n2"},
	}
	step, more := Decide(w, structs.NotifyMark{Step: 3, Index: 4}, events, 12, noon)
	if more || step.Before != 3 || step.Index != 13 || len(step.Made) != 2 {
		t.Fatalf("%+v", step)
	}
	first, second := step.Made[0], step.Made[1]
	if first.User != "li" || first.Job != "n-j1" || first.Project != "speech" || !first.Bell || len(first.Deliveries) != 1 || first.Deliveries[0].NextAt != noon || first.Cause.ID != "reason.preempted" {
		t.Errorf("%+v", first)
	}
	if second.User != "op" || second.Time != noon+10 {
		t.Errorf("%+v", second)
	}
}

// What several ranks of an attempt say, and what one says again, is one message; of
// another attempt it is another. It says whether the job goes on elsewhere.
func TestOnceOfAnAttempt(t *testing.T) {
	for _, id := range []string{"event.alloc.slow", "event.alloc.held", "event.alloc.evicted"} {
		w := newWorld()
		w.person("li", structs.NotifySlow, structs.NotifyHeld)
		w.job("j1", "li")
		if id == "event.alloc.slow" {
			w.cause = structs.ReasonSlow
		}
		index := uint64(0)
		tell := func(attempt uint64, ranks int) {
			var events []*structs.Event
			for range ranks {
				index++
				events = append(events, &structs.Event{Index: index, Time: noon, ID: id, JobID: "j1", Attempt: attempt, Params: map[string]string{"rank": "r", "node": "n"}})
			}
			step, _ := Decide(w, structs.NotifyMark{}, events, index, noon)
			w.take(step)
		}
		tell(1, 3)
		tell(1, 1)
		if told := w.Told("li"); len(told) != 1 || (told[0].Cause != nil) != (id == "event.alloc.slow") {
			t.Errorf("%s: told %+v", id, told)
		}
		tell(2, 2)
		if told := w.Told("li"); len(told) != 2 {
			t.Errorf("%s: of another attempt %+v", id, told)
		}
	}
}

// A storm comes as five messages and one about the rest, which grows while it waits; and
// whoever reads it gets what it counts.
func TestStormBecomesADigest(t *testing.T) {
	w := newWorld()
	w.person("li", structs.NotifyFailed)
	total := 0
	for round := range 4 {
		var events []*structs.Event
		for i := range 10 {
			id := fmt.Sprintf("j%d-%d", round, i)
			w.job(id, "li")
			events = append(events, failed(uint64(1+10*round+i), id))
			total++
		}
		step, _ := Decide(w, structs.NotifyMark{}, events, uint64(10+10*round), noon.Add(time.Duration(round)*time.Second))
		w.take(step)
	}
	var digests, singles, counted int
	for _, n := range w.told["li"] {
		if n.Kind != structs.NotifyDigest {
			singles++
			continue
		}
		digests++
		counted += n.Counts[structs.NotifyFailed]
		if len(n.Names) != structs.NotifyNamesMax || n.Deliveries[0].NextAt != n.OpenUntil || n.OpenUntil != noon.Add(time.Minute) {
			t.Errorf("%+v", n)
		}
	}
	if digests != 1 || singles != StormAfter || counted+singles != total {
		t.Errorf("%d digests of %d, and %d messages, of %d happenings", digests, counted, singles, total)
	}
	// What comes after it was sent begins another.
	late := noon.Add(2 * time.Minute)
	w.job("late", "li")
	event := failed(99, "late")
	event.Time = late
	if step, _ := Decide(w, structs.NotifyMark{}, []*structs.Event{event}, 99, late); len(step.Made) != 1 || step.Made[0].Kind != structs.NotifyFailed {
		t.Errorf("after the storm: %+v", step.Made)
	}
}

// In quiet hours the bell shows everything at once, and other channels get one message at
// their end, in the person's zone.
func TestQuietHours(t *testing.T) {
	w := newWorld()
	w.person("li", structs.NotifyFailed).Quiet = &structs.NotifyQuiet{From: 19 * 60, To: 7 * 60, Zone: "Asia/Shanghai"} // 12:00 UTC is 20:00
	w.job("a", "li")
	w.job("b", "li")
	for i, job := range []string{"a", "b"} {
		step, _ := Decide(w, structs.NotifyMark{}, []*structs.Event{failed(uint64(i+1), job)}, uint64(i+1), noon)
		w.take(step)
	}
	end := noon.Add(11 * time.Hour)
	bells, later := 0, 0
	for _, n := range w.told["li"] {
		switch {
		case n.Kind == structs.NotifyFailed && n.Bell && len(n.Deliveries) == 0:
			bells++
		case n.Kind == structs.NotifyDigest && !n.Bell && n.Counts[structs.NotifyFailed] == 2 && n.Deliveries[0].NextAt == end:
			later++
		default:
			t.Errorf("%+v", n)
		}
	}
	if bells != 2 || later != 1 {
		t.Errorf("%d at the bell, %d later", bells, later)
	}
}

// Whoever leads, and wherever one broke off and another went on, each happening is told
// once to each person: in a message of its own or counted in one about several.
func TestEachHappeningOnceAcrossLeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		people := rapid.IntRange(1, 4).Draw(t, "people")
		for p := range people {
			w.person(fmt.Sprint("p", p), structs.NotifyFailed)
		}
		var events []*structs.Event
		for i := range rapid.IntRange(0, 60).Draw(t, "events") {
			id := fmt.Sprint("j", i)
			w.job(id, fmt.Sprint("p", rapid.IntRange(0, people-1).Draw(t, "owner")))
			event := failed(uint64(1+i/3), id) // three of an index
			event.Seq = i % 3
			events = append(events, event)
		}
		mark, now := structs.NotifyMark{}, noon
		for range 200 {
			from := slices.IndexFunc(events, func(e *structs.Event) bool { return e.Cursor().Compare(mark.Cursor()) > 0 })
			if from < 0 {
				break
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "pause")) * time.Second)
			upto := rapid.IntRange(from+1, len(events)).Draw(t, "seen")
			for upto < len(events) && events[upto].Index == events[upto-1].Index {
				upto++ // an index is seen whole
			}
			step, _ := Decide(w, mark, events[from:upto], events[upto-1].Index, now)
			if rapid.Bool().Draw(t, "lost") { // the leader is deposed before the log has it
				continue
			}
			if step.Before != mark.Step {
				t.Fatal("a step of another mark")
			}
			w.take(step)
			mark = structs.NotifyMark{Step: mark.Step + 1, Index: step.Index, Place: step.Place}
		}
		if len(events) > 0 && events[len(events)-1].Cursor().Compare(mark.Cursor()) > 0 {
			return // no leader lived long enough
		}
		told := 0
		for _, messages := range w.told {
			for _, n := range messages {
				if n.Kind == structs.NotifyDigest {
					told += n.Counts[structs.NotifyFailed]
				} else {
					told++
				}
			}
		}
		if told != len(events) {
			t.Fatalf("%d happenings, %d told", len(events), told)
		}
	})
}

// A message about several goes on under the next leader, whose clock is another: what is
// sent holds all that was counted, nothing is added to what may be on its way, and each
// happening is told once.
func TestDigestsAcrossLeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.person("li", structs.NotifyFailed)
		if rapid.Bool().Draw(t, "quiet") {
			w.settings["li"].Quiet = &structs.NotifyQuiet{From: 12 * 60, To: 12*60 + 1, Zone: "UTC"}
		}
		mark, skew, told := structs.NotifyMark{}, time.Duration(0), 0
		sent := map[string]int{} // how many each message counted when it was sent
		for round := range rapid.IntRange(60, 140).Draw(t, "rounds") {
			clock := noon.Add(time.Duration(round) * time.Second)
			if rapid.IntRange(0, 2).Draw(t, "change") == 0 {
				skew = rapid.SampledFrom([]time.Duration{-2 * time.Second, 0, 2 * time.Second}).Draw(t, "skew")
			}
			id := fmt.Sprint("j", round)
			w.job(id, "li")
			now := clock.Add(skew)
			step, _ := Decide(w, mark, []*structs.Event{failed(uint64(round+1), id)}, uint64(round+1), now)
			if rapid.IntRange(0, 9).Draw(t, "deposed") == 0 { // before the log has it: the next one decides the same
				step, _ = Decide(w, mark, []*structs.Event{failed(uint64(round+1), id)}, uint64(round+1), clock)
			}
			w.take(step)
			mark = structs.NotifyMark{Step: mark.Step + 1, Index: step.Index}
			told++
			for _, n := range w.told["li"] {
				if due := n.Due(); due == 0 || due > now || sent[n.ID] > 0 {
					continue
				}
				sent[n.ID] = max(1, n.Counts[structs.NotifyFailed])
				if rapid.Bool().Draw(t, "noted") { // else this leader fails before the log has it
					n.Deliveries[0].NextAt, n.Deliveries[0].Tries = 0, 1
				}
			}
		}
		counted := map[bool]int{} // at the bell, and elsewhere
		for _, n := range w.told["li"] {
			count := max(1, n.Counts[structs.NotifyFailed])
			if at, was := sent[n.ID]; was && at != count {
				t.Fatalf("%s was sent with %d, and counts %d", n.ID, at, count)
			}
			if n.Bell {
				counted[true] += count
			}
			if len(n.Deliveries) > 0 {
				counted[false] += count
			}
		}
		if counted[true] != told || counted[false] != told {
			t.Fatalf("%d happenings; %d at the bell, %d elsewhere", told, counted[true], counted[false])
		}
	})
}

// A step that would be too large ends within an index, and the next goes on there.
func TestLargeStepsAreParted(t *testing.T) {
	w := newWorld()
	var events []*structs.Event
	for i := range 3 * structs.NotifyMadeMax {
		user, id := fmt.Sprint("u", i), fmt.Sprint("j", i)
		w.person(user, structs.NotifyFailed)
		w.job(id, user)
		event := failed(7, id)
		event.Seq = i
		events = append(events, event)
	}
	mark, steps := structs.NotifyMark{}, 0
	for more := true; more; steps++ {
		rest := events[slices.IndexFunc(events, func(e *structs.Event) bool { return e.Cursor().Compare(mark.Cursor()) > 0 }):]
		var step structs.NotifyStep
		step, more = Decide(w, mark, rest, 7, noon)
		if len(step.Made) == 0 || len(step.Made) > structs.NotifyMadeMax {
			t.Fatalf("%d messages", len(step.Made))
		}
		w.take(step)
		mark.Index, mark.Place = step.Index, step.Place
	}
	if len(w.told) != len(events) || steps != 3 {
		t.Errorf("%d people were told in %d steps", len(w.told), steps)
	}
}

// A delivery that fails is tried again, later each time, and is given up in the end; one
// that cannot get better at once.
func TestTriesOfADelivery(t *testing.T) {
	n := &structs.Notification{ID: "msg_1"}
	delivery, now := structs.NotifyDelivery{Channel: "team", NextAt: noon}, noon
	before := time.Duration(0)
	for tries := 1; delivery.NextAt != 0; tries++ {
		delivery = After(n, delivery, Result{Problem: "HTTP 500"}, now)
		if delivery.Tries != tries || delivery.SentAt != 0 || delivery.Problem != "HTTP 500" {
			t.Fatalf("%+v", delivery)
		}
		if wait := delivery.NextAt.Sub(now); delivery.NextAt != 0 {
			if wait <= before {
				t.Errorf("try %d waits %s after %s", tries, wait, before)
			}
			before, now = wait, delivery.NextAt
		}
	}
	if age := now.Sub(noon); delivery.Tries != len(waits)+1 || age < 12*time.Hour || age > 48*time.Hour {
		t.Errorf("given up after %d tries and %s", delivery.Tries, age)
	}
	if over := After(n, structs.NotifyDelivery{NextAt: noon}, Result{Final: true, Problem: "HTTP 410"}, noon); over.NextAt != 0 || over.SentAt != 0 {
		t.Errorf("%+v", over)
	}
	if sent := After(n, structs.NotifyDelivery{NextAt: noon}, Result{Sent: true}, noon); sent.SentAt != noon || sent.NextAt != 0 || sent.Problem != "" {
		t.Errorf("%+v", sent)
	}
	if asked := After(n, structs.NotifyDelivery{NextAt: noon}, Result{Wait: time.Hour, Problem: "HTTP 429"}, noon); asked.NextAt != noon.Add(time.Hour) {
		t.Errorf("%+v", asked)
	}
}
