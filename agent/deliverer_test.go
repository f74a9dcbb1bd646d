package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/notify/send"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// robotWorld is a deliverer whose clock the test turns, and a robot that several people
// write to.
type robotWorld struct {
	t       *testing.T
	d       *deliverer
	now     time.Time
	texts   []string // that the robot got
	records []audit.Record
	step    uint64
}

func newRobotWorld(t *testing.T, people int, kind string) *robotWorld {
	w := &robotWorld{t: t, now: time.Unix(1_800_000_000, 0)}
	robot := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var body struct{ Text struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.texts = append(w.texts, body.Text.Content)
		fmt.Fprint(rw, `{"errcode":0,"errmsg":"ok"}`)
	}))
	t.Cleanup(robot.Close)
	w.d = &deliverer{
		id: "server-0", store: state.New(), base: "https://ai.example", allowed: []string{strings.TrimPrefix(robot.URL, "http://")},
		open: func(ref structs.SecretRef) ([]byte, error) {
			if ref.Name != "notify_team" {
				return nil, errors.New("another secret")
			}
			return json.Marshal(notify.Target{URL: robot.URL + "/robot/send?access_token=very-secret"})
		},
		audit:  func(r audit.Record) error { w.records = append(w.records, r); return nil },
		poster: send.NewPoster(func(netip.AddrPort) bool { return false }),
		now:    func() time.Time { return w.now }, log: slog.New(slog.DiscardHandler), slots: make(chan struct{}, notifySlots),
	}
	w.d.mu.sending, w.d.mu.held = make(map[string]bool), make(map[string]structs.UnixNano)
	for i := range people {
		w.apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: fmt.Sprint("p", i)}})
		w.apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &structs.NotifySettings{
			User: fmt.Sprint("p", i), Channels: []structs.NotifyChannel{{Name: "team", Kind: kind, Host: "h"}},
		}})
	}
	return w
}

func (w *robotWorld) apply(kind structs.CommandKind, body any) {
	w.t.Helper()
	command, err := wire.EncodeCommand(kind, structs.At(w.now), "tester", body)
	if err != nil {
		w.t.Fatal(err)
	}
	if result := w.d.store.Apply(w.d.store.Snapshot().Index()+1, command); result.Err != nil {
		w.t.Fatal(result.Err)
	}
}

// tell has a person told something by the channel.
func (w *robotWorld) tell(user, job string) {
	w.apply(structs.CommandNotifyStep, &structs.NotifyStep{Before: w.step, Index: 1, Made: []structs.Notification{{
		ID: user + job, User: user, Kind: structs.NotifyFailed, Time: structs.At(w.now), Job: job, JobID: job,
		Deliveries: []structs.NotifyDelivery{{Channel: "team", NextAt: structs.At(w.now)}},
	}}})
	w.step++
}

// look delivers what is due, and puts what came of it into the log.
func (w *robotWorld) look() {
	w.t.Helper()
	w.d.beginDue(w.t.Context(), func(run func()) { run() })
	if settled := w.d.mu.settled; len(settled) > 0 {
		w.apply(structs.CommandNotifyStep, &structs.NotifyStep{Settled: settled})
		for _, one := range settled {
			delete(w.d.mu.sending, channelKey(one.User, one.Delivery.Channel)+"\x00"+one.ID)
		}
		w.d.mu.settled = nil
	}
}

// A robot that several people share gets no more than its maker allows. What is too much
// waits, and then comes as one message of each person: nothing is lost, and nothing comes
// twice.
func TestARobotGetsNoMoreThanItTakes(t *testing.T) {
	const people, each = 10, 5
	w := newRobotWorld(t, people, structs.ChannelDingTalk)
	for i := range people {
		for j := range each {
			w.tell(fmt.Sprint("p", i), fmt.Sprintf("job-%d-%d", i, j))
		}
	}
	minute := len(w.texts)
	for second := range 130 {
		if second%60 == 0 {
			minute = len(w.texts)
		}
		w.look()
		if got := len(w.texts) - minute; got > 20 {
			t.Fatalf("%d messages within a minute", got)
		}
		w.now = w.now.Add(time.Second)
	}
	text := strings.Join(w.texts, "\n")
	for i := range people {
		sent := 0
		for _, n := range w.d.store.Snapshot().Notifications(fmt.Sprint("p", i)) {
			if n.Deliveries[0].SentAt != 0 && n.Deliveries[0].Tries == 1 {
				sent++
			}
		}
		if sent != each {
			t.Errorf("of p%d %d messages of %d are noted as sent", i, sent, each)
		}
		for j := range each {
			if name := fmt.Sprintf("job-%d-%d", i, j); strings.Count(text, name+" ")+strings.Count(text, name+",")+strings.Count(text, name+"\n") == 0 {
				t.Errorf("nobody was told of %s:\n%s", name, text)
			}
		}
	}
	if len(w.texts) >= people*each || len(w.texts) < 20 {
		t.Errorf("%d messages for %d happenings", len(w.texts), people*each)
	}
}

// Each use of a channel's address is in the audit record: by which server, whose, for
// which message, and what came of it; the address itself is not.
func TestUsesOfAddressesAreRecorded(t *testing.T) {
	w := newRobotWorld(t, 1, structs.ChannelDingTalk)
	w.tell("p0", "bert")
	w.look()
	w.d.allowed = nil // the administrator changes their mind
	w.tell("p0", "other")
	w.look()
	w.d.open = func(structs.SecretRef) ([]byte, error) { return nil, errors.New("no key") }
	w.tell("p0", "third")
	w.look()
	want := []string{"p0bert allowed ", "p0other failed notify.problem.host", "p0third failed notify.problem.sealed"}
	if len(w.records) != len(want) {
		t.Fatalf("recorded %+v", w.records)
	}
	for i, r := range w.records {
		if got := r.Object.Part + " " + string(r.Outcome) + " " + r.Reason; got != want[i] || r.Action != audit.ActionChannelUse ||
			r.Actor != (audit.Actor{Kind: "server", User: "server-0"}) || r.Object.ID != "notify_team" || r.Object.Owner != "p0" {
			t.Errorf("recorded %+v, want %s", r, want[i])
		}
	}
	if text := string(mustJSON(t, w.records)); strings.Contains(text, "very-secret") {
		t.Errorf("recorded %s", text)
	}
}
