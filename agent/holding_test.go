package agent

import (
	"crypto/rand"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// A server that starts anew is no news: a quorum without margin is told after 10 s, and is
// over after a minute with one. A new leader looks from the start.
func TestTheMarginOfTheQuorumOverTime(t *testing.T) {
	var m margin
	now := time.Unix(1764244800, 0)
	at := func(living int) string {
		switch c := m.condition(3, living, now); {
		case c == nil:
			return "over"
		case c.Key != notify.QuorumKey:
			t.Fatalf("key %q", c.Key)
			return ""
		case c.Lingers:
			return "lingers"
		default:
			return "holds"
		}
	}
	for i, step := range []struct {
		wait   time.Duration
		living int
		want   string
	}{
		{0, 3, "lingers"}, // what was told before is not over by a new leader's first look
		{59 * time.Second, 3, "lingers"},
		{time.Second, 3, "over"},
		{0, 2, "lingers"},
		{9 * time.Second, 2, "lingers"},
		{0, 3, "lingers"}, // it was back in time
		{time.Second, 2, "lingers"},
		{9 * time.Second, 2, "lingers"},
		{time.Second, 2, "holds"},
		{time.Hour, 2, "holds"},
		{0, 3, "lingers"},
		{30 * time.Second, 2, "lingers"},
		{10 * time.Second, 2, "holds"},
		{0, 3, "lingers"},
		{time.Minute, 3, "over"},
	} {
		now = now.Add(step.wait)
		if got := at(step.living); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	m = margin{}
	if got := at(2); got != "lingers" {
		t.Errorf("a new leader: %s", got)
	}
}

// Only servers of the log that vote count, and those of them that answer.
func TestWhoVotes(t *testing.T) {
	voters, living := voting([]serverView{
		{id: "a", addr: "a:1", voter: true, alive: true},
		{id: "b", addr: "b:1", voter: true},
		{id: "c", addr: "c:1", alive: true},
		{id: "d", voter: true, alive: true},
	})
	if voters != 2 || living != 1 {
		t.Errorf("%d of %d", living, voters)
	}
}

// Ends are those that agents tell, and that of the newest CA.
func TestEndsOfCertificates(t *testing.T) {
	members := []api.Member{
		{ID: "1", Name: "node-1", Status: string(gossip.StateAlive), CertificateEndsAt: 5},
		{ID: "2", Status: "failed", CertificateEndsAt: 6},
		{ID: "3", Name: "old", Status: string(gossip.StateAlive)},
	}
	want := []notify.Certificate{{Name: "node-1", ID: "1", Ends: 5}, {Name: "2", ID: "2", Ends: 6, Away: true}}
	got := ending(members, nil)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
	// While a CA is replaced two are trusted: it is the newer that must not end.
	var trusted []byte
	now := time.Now()
	for _, made := range []time.Time{now.AddDate(-9, 0, 0), now, now.AddDate(-5, 0, 0)} {
		ca, err := auth.NewCA("0b54e3a2-5f4e-4f0c-9d2e-0a6d6e3a7c11", rand.Reader, made)
		if err != nil {
			t.Fatal(err)
		}
		trusted = append(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Raw})...)
	}
	list := ending(nil, trusted)
	if len(list) != 1 || list[0].Name != "" || list[0].ID == "" || list[0].Ends.Time().Sub(now.Add(auth.CATTL)).Abs() > time.Minute {
		t.Errorf("%+v", list)
	}
}

// A quota that a running job fills is told of to those of its project who chose it, once
// until it is free again, and again when it is filled again.
func TestAFullQuotaIsTold(t *testing.T) {
	yes, dir := true, openDir(t)
	options := testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir}, options)
	admin := savedClient(t, options)
	letRoot(t, admin)
	ctx, most := t.Context(), 1
	if _, err := admin.PutProject(ctx, &structs.Project{Name: "speech", Members: []string{"mo"}, Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &most}}}); err != nil {
		t.Fatal(err)
	}
	li, mo := personIn(t, admin, "li", "speech"), personIn(t, admin, "mo", "speech")
	choice := api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyQuota, Channels: []string{structs.ChannelBell}}}}
	if _, err := li.SetNotify(ctx, choice); err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(strings.Replace(watchedJob, "0.1", "0.9", 1), "NAME", "full", 1) + "  task { command = \"sleep 600\" }\n}\n"
	for round := 1; round <= 2; round++ {
		job := runJob(t, mo, file, structs.JobRunning)
		eventually.Within(t, 20*time.Second, "li is told", func() bool { return len(agent.store.Snapshot().Notifications("li")) == round })
		if n := agent.store.Snapshot().Notifications("li")[0]; n.Kind != structs.NotifyQuota || n.Params["used"] != "0.9" || n.Params["max"] != "1" || !n.Bell {
			t.Errorf("told %+v", n)
		}
		if _, err := mo.StopJob(ctx, job.Job.ID, api.JobStopRequest{}); err != nil {
			t.Fatal(err)
		}
		eventually.Within(t, 20*time.Second, "that is over", func() bool { return len(agent.store.Snapshot().NotifyMark().Holds) == 0 })
	}
	if list := agent.store.Snapshot().Notifications("mo"); len(list) != 0 {
		t.Errorf("mo did not choose it: %+v", list[0])
	}
}

// A job file says what its owner is told of that job; nobody else's bell has it.
func TestAJobHasItsOwnerTold(t *testing.T) {
	yes, dir := true, openDir(t)
	options := testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir}, options)
	admin := savedClient(t, options)
	letRoot(t, admin)
	li := personIn(t, admin, "li", "speech")
	file := strings.Replace(watchedJob, "NAME", "said", 1) + "  notify {\n    on = [\"succeeded\"]\n    to = \"TO\"\n  }\n  task { command = \"true\" }\n}\n"
	if _, err := li.SubmitJob(t.Context(), api.JobRequest{HCL: strings.Replace(file, "TO", "team", 1)}, ""); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a channel that li does not have: %v", err)
	}
	job := runJob(t, li, strings.Replace(file, "TO", structs.ChannelBell, 1), structs.JobSucceeded)
	eventually.Within(t, 20*time.Second, "li is told", func() bool {
		list := agent.store.Snapshot().Notifications("li")
		return len(list) == 1 && list[0].Kind == structs.NotifySucceeded && list[0].JobID == job.Job.ID && list[0].Bell
	})
}
