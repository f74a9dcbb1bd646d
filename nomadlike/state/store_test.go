package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
)

// filled returns a store with jobs j0 to j(n-1), submitted in that order.
func filled(n int) *Store {
	store := New()
	for i := range n {
		job := testJob(fmt.Sprintf("j%d", i), 1)
		if i%2 == 1 {
			job.Priority = structs.PriorityUrgent
		}
		store.Apply(uint64(i+1), encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job}))
	}
	return store
}

func TestListsAreWholeWhateverThePage(t *testing.T) {
	snapshot := filled(25).Snapshot()
	walk := func(limit int, list func(Page) ([]string, string, *structs.Error)) (all []string) {
		page := Page{Limit: limit}
		for {
			names, next, err := list(page)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, names...)
			if page.After = next; next == "" {
				return all
			}
			if len(names) != limit {
				t.Fatalf("a page of %d has %d items and a successor", limit, len(names))
			}
		}
	}
	jobs := func(p Page) (names []string, next string, err *structs.Error) {
		views, next, err := snapshot.ListJobs(p, func(view JobView) bool { return view.Job.Name != "j3" })
		for _, view := range views {
			names = append(names, view.Job.Name)
		}
		return names, next, err
	}
	queue := func(p Page) (names []string, next string, err *structs.Error) {
		subjobs, next, err := snapshot.ListQueue(p, nil)
		for _, subjob := range subjobs {
			names = append(names, subjob.JobID)
		}
		return names, next, err
	}
	for limit := 1; limit < 30; limit++ {
		got := walk(limit, jobs)
		if len(got) != 24 || got[0] != "j24" || got[23] != "j0" || slices.Contains(got, "j3") {
			t.Fatalf("pages of %d give jobs %v", limit, got)
		}
		got = walk(limit, queue)
		if len(got) != 25 || got[0] != "job-j1" || got[11] != "job-j23" || got[12] != "job-j0" || got[24] != "job-j24" {
			t.Fatalf("pages of %d give the queue %v", limit, got)
		}
	}
	if _, _, err := snapshot.ListJobs(Page{After: "§"}, nil); err == nil || err.Code != structs.CodeInvalid {
		t.Errorf("a cursor of nonsense gives %v", err)
	}
	if view, ok := snapshot.JobNamed("default", "j7"); !ok || view.Job.ID != "job-j7" {
		t.Errorf("job j7 is %v", view.Job)
	}
	if views := snapshot.JobsWithPrefix("job-j1", 5); len(views) != 5 {
		t.Errorf("%d jobs begin with job-j1", len(views))
	}
}

func TestWatchWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := filled(2)
		before := store.Snapshot()
		quiet := before.WatchJob("job-j1")
		done := make(chan uint64)
		go func() {
			snapshot, err := store.Block(t.Context(), func(s *Snapshot) (bool, <-chan struct{}) {
				view, _ := s.Job("job-j0")
				return view.Status.State == structs.JobStopped, s.WatchJob("job-j0")
			})
			if err != nil {
				t.Error(err)
			}
			done <- snapshot.Index()
		}()
		synctest.Wait()
		store.Apply(3, encode(structs.CommandJobStop, 1, &structs.JobStop{JobID: "job-j0"}))
		if index := <-done; index != 3 {
			t.Errorf("woken at %d", index)
		}
		select {
		case <-quiet:
			t.Log("another job's watch fired; that is allowed, not wanted")
		default:
		}
		select {
		case <-before.WatchJob("job-j0"): // of an old snapshot: the change has happened
		default:
			t.Error("a watch that begins late misses the change")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := store.WaitIndex(ctx, 99); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for what never comes gives %v", err)
		}
	})
}

// TestWatchTwinsSeeTheirChange makes a change for each twin, through Apply and
// through Restore.
func TestWatchTwinsSeeTheirChange(t *testing.T) {
	watches := map[string]func(*Snapshot) <-chan struct{}{
		"index": (*Snapshot).WatchIndex, "schedule": (*Snapshot).WatchSchedule, "jobs": (*Snapshot).WatchJobs,
		"job":     func(s *Snapshot) <-chan struct{} { return s.WatchJob("job-a") },
		"subjobs": func(s *Snapshot) <-chan struct{} { return s.WatchSubjobs("job-a") },
		"queue":   (*Snapshot).WatchQueue,
		"attempts": func(s *Snapshot) <-chan struct{} {
			return s.WatchAttempts("job-a")
		},
		"allocs of job": func(s *Snapshot) <-chan struct{} { return s.WatchAllocsOfJob("job-a") },
		"alloc":         func(s *Snapshot) <-chan struct{} { return s.WatchAlloc(structs.AllocID("job-a", 0, 1, 0)) },
		"holders":       func(s *Snapshot) <-chan struct{} { return s.WatchOccupants("node-0") },
		"nodes":         (*Snapshot).WatchNodes,
		"node":          func(s *Snapshot) <-chan struct{} { return s.WatchNode("node-0") },
		"cluster":       (*Snapshot).WatchCluster,
		"token":         func(s *Snapshot) <-chan struct{} { return s.WatchToken("t") },
		"events":        (*Snapshot).WatchEvents,
		"pools":         (*Snapshot).WatchPools,
		"pool":          func(s *Snapshot) <-chan struct{} { return s.WatchPool("p") },
		"projects":      (*Snapshot).WatchProjects,
		"project":       func(s *Snapshot) <-chan struct{} { return s.WatchProject("default") },
		"usages":        (*Snapshot).WatchProjectUsages,
		"usage":         func(s *Snapshot) <-chan struct{} { return s.WatchProjectUsage("default") },
		"past runs":     (*Snapshot).WatchPastRuns,
		"forecasts":     func(s *Snapshot) <-chan struct{} { return s.WatchForecasts("job-a") },
		"ended":         (*Snapshot).WatchEndedForecasts,
	}
	log := []Entry{
		{1, encode(structs.CommandClusterInit, 1, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})},
		{2, encode(structs.CommandTokenPut, 1, &structs.TokenPut{Token: structs.Token{ID: "t", Hash: make([]byte, 32)}})},
		{3, encode(structs.CommandNodeRegister, 1, &structs.NodeRegister{Node: testNode(0)})},
		{4, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: testJob("a", 1)})},
		{5, encode(structs.CommandForecasts, 1, &structs.Forecasts{Forecasts: []structs.Forecast{{JobID: "job-a", Attempt: 1, Point: 1, P50: 1, P90: 1}}})},
		{6, encode(structs.CommandPlan, 1, &structs.Plan{Gangs: []structs.GangPlan{{
			JobID: "job-a", Attempt: 1,
			Placements: []structs.RankPlacement{{NodeID: "node-0"}},
		}}})},
		{7, encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: testJob("b", 1)})},
		{8, encode(structs.CommandPoolPut, 1, &structs.PoolPut{Pool: structs.Pool{Name: "p"}})},
		{9, encode(structs.CommandProjectPut, 1, &structs.ProjectPut{Project: structs.Project{Name: "default"}})},
	}
	source := New()
	source.ApplyBatch(log)
	var stored bytes.Buffer
	if err := source.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	for name, watch := range watches {
		for how, change := range map[string]func(*Store){
			"apply":   func(s *Store) { s.ApplyBatch(log) },
			"restore": func(s *Store) { _ = s.Restore(bytes.NewReader(stored.Bytes())) },
		} {
			store := New()
			channel := watch(store.Snapshot())
			select {
			case <-channel:
				t.Fatalf("%s: fired before anything changed", name)
			default:
			}
			change(store)
			select {
			case <-channel:
			default:
				t.Errorf("%s: %s is not seen", name, how)
			}
		}
	}
}

func TestRingDropsWholeIndexes(t *testing.T) {
	store := New()
	const jobs = EventsMax/1_000 + 2
	index := uint64(0)
	apply := func(kind structs.CommandKind, body any) {
		index++
		if result := store.Apply(index, encode(kind, 1, body)); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	follower := store.Follow(structs.Cursor{})
	for i := range jobs {
		job := testJob(fmt.Sprintf("b%d", i), 1)
		job.Batch = &structs.Batch{Count: 1_000}
		apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job})
		apply(structs.CommandJobStop, &structs.JobStop{JobID: job.ID}) // an event for each subjob
	}
	snapshot := store.Snapshot()
	meta := mustFirst[*metaRow](snapshot.db, tableMeta, indexID, metaKey())
	if len(meta.ring) > EventsMax || meta.EventsDropped == 0 || meta.ring[0].Index != meta.EventsDropped+1 || meta.ring[0].Seq != 0 {
		t.Errorf("the ring has %d events from %d.%d, dropped up to %d", len(meta.ring), meta.ring[0].Index, meta.ring[0].Seq, meta.EventsDropped)
	}
	if _, _, err := follower.Next(t.Context()); !errors.Is(err, ErrEventsDropped) {
		t.Errorf("a follower that was too slow gets %v", err)
	}
	if events, dropped := snapshot.JobEvents("job-b0"); len(events) != JobEventsMax+1 || dropped != 1 || events[0].ID != eventSubmitted {
		t.Errorf("the first job keeps %d events and lost %d", len(events), dropped)
	}
	events, _, err := snapshot.EventsAfter(structs.CursorAfter(index - 1))
	if err != nil || len(events) != 1_001 {
		t.Errorf("the newest index has %d events (%v): a batch may not cut it", len(events), err)
	}
}

func TestKeysAreBounded(t *testing.T) {
	store := New()
	var log []Entry
	for i := range IdempotencyKeysMax + 10 {
		job := testJob(fmt.Sprintf("j%d", i), 1)
		job.IdempotencyKey = job.Name
		log = append(log, Entry{uint64(i + 1), encode(structs.CommandJobSubmit, 1, &structs.JobSubmit{Job: job})})
	}
	for batch := range slices.Chunk(log, 1000) {
		store.ApplyBatch(batch)
	}
	snapshot := store.Snapshot()
	if _, ok := snapshot.JobOfKey("ann", "j9"); ok {
		t.Error("the tenth key is still known")
	}
	if _, ok := snapshot.JobOfKey("ann", "j10"); !ok {
		t.Error("the eleventh key is forgotten")
	}
}

func TestRestoreRefusesDamage(t *testing.T) {
	var stored bytes.Buffer
	if err := filled(3).Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	whole := stored.Bytes()
	store := filled(1)
	before := store.Snapshot().Hash()
	for cut := range whole {
		if err := store.Restore(bytes.NewReader(whole[:cut])); !errors.Is(err, ErrBadState) {
			t.Fatalf("%d of %d bytes are taken: %v", cut, len(whole), err)
		}
	}
	for name, data := range map[string][]byte{
		"tail":    append(slices.Clone(whole), 0),
		"version": bytes.Replace(whole, []byte("gversion\x02"), []byte("gversion\x03"), 1),
		"format":  bytes.Replace(whole, []byte(formatName), []byte(strings.ToUpper(formatName)), 1),
		"length":  append([]byte{0xff, 0xff, 0xff, 0xff}, whole...),
	} {
		if bytes.Equal(data, whole) {
			t.Fatalf("%s: nothing was damaged", name)
		}
		if err := CheckState(bytes.NewReader(data)); !errors.Is(err, ErrBadState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if store.Snapshot().Hash() != before {
		t.Error("a refused state changed the store")
	}
	if err := store.Restore(bytes.NewReader(whole)); err != nil || store.Snapshot().JobCount() != 3 {
		t.Errorf("the whole state is refused: %v", err)
	}
}

func TestUnknownKindStops(t *testing.T) {
	store := filled(1)
	unknown := encode(200, 1, &structs.JobDelete{})
	if err := Check(unknown); err == nil || err.Code != structs.CodeInvalid {
		t.Errorf("an unknown kind may be proposed: %v", err)
	}
	func() {
		defer func() {
			var err *UnknownCommandError
			if problem, ok := recover().(error); !ok || !errors.As(problem, &err) || err.Kind != 200 || err.Index != 2 {
				t.Errorf("an unknown kind gives %v", problem)
			}
		}()
		store.Apply(2, unknown)
	}()
	if index := store.Snapshot().Index(); index != 1 {
		t.Errorf("the state went on to %d", index)
	}
	store.Apply(2, encode(structs.CommandJobStop, 1, &structs.JobStop{JobID: "job-j0"})) // the writer is free again
}

func TestTokens(t *testing.T) {
	store, index := New(), uint64(0)
	hash := func(b byte) []byte { return append(make([]byte, 31), b) }
	apply := func(kind structs.CommandKind, body any) structs.ErrorCode {
		index++
		if result := store.Apply(index, encode(kind, 100, body)); result.Err != nil {
			return result.Err.Code
		}
		return ""
	}
	init := &structs.ClusterInit{
		Cluster:    structs.Cluster{ID: "c", SetupHash: hash(9)},
		JoinTokens: []structs.JoinToken{{ID: "j", Hash: hash(1), Role: "client", UsesLeft: 1, ExpiresAt: 200}},
	}
	boot := func(secret byte) *structs.TokenBootstrap {
		return &structs.TokenBootstrap{SetupHash: hash(secret), Token: structs.Token{ID: fmt.Sprint("m", secret), Hash: hash(2), Role: "admin"}}
	}
	report := func(id string, full bool, backup string) *structs.ServerReport {
		return &structs.ServerReport{ServerCondition: structs.ServerCondition{ID: id, Full: full, Backup: backup}}
	}
	use := func(secret byte, role string) *structs.JoinTokenConsume {
		return &structs.JoinTokenConsume{ID: "j", Hash: hash(secret), Role: role, AgentID: "a"}
	}
	rotate := func(stage structs.KeyStage, from, to string) *structs.KeyRotate {
		return &structs.KeyRotate{Kind: structs.KeyGossip, Stage: stage, From: from, To: to}
	}
	rotateCA := func(stage structs.KeyStage, from, to string, crosses ...string) *structs.CARotate {
		body := &structs.CARotate{Stage: stage, From: structs.CACertificate{Fingerprint: from, PEM: "pem " + from}, To: structs.CACertificate{Fingerprint: to, PEM: "pem " + to}}
		for _, cross := range crosses {
			body.Past = append(body.Past, structs.PastCA{Cross: cross, Until: 1000})
		}
		return body
	}
	for i, step := range []struct {
		kind structs.CommandKind
		body any
		want structs.ErrorCode
	}{
		{structs.CommandTokenBootstrap, boot(9), structs.CodeUnavailable},
		{structs.CommandClusterInit, init, ""},
		{structs.CommandClusterInit, init, structs.CodeConflict},
		{structs.CommandTokenBootstrap, boot(8), structs.CodeUnauthorized},
		{structs.CommandTokenBootstrap, boot(9), ""},
		{structs.CommandTokenBootstrap, boot(9), ""}, // the same command again
		{structs.CommandTokenBootstrap, boot(7), structs.CodeConflict},
		{structs.CommandJoinTokenConsume, use(2, "client"), structs.CodeUnauthorized},
		{structs.CommandJoinTokenConsume, use(1, "server"), structs.CodeForbidden},
		{structs.CommandJoinTokenConsume, use(1, "client"), ""},
		{structs.CommandJoinTokenConsume, use(1, "client"), structs.CodeUnauthorized},
		{structs.CommandTokenPut, &structs.TokenPut{Token: structs.Token{ID: "x", Hash: hash(2)}}, structs.CodeConflict},
		{structs.CommandTokenPut, &structs.TokenPut{Token: structs.Token{ID: "x", Hash: []byte("short")}}, structs.CodeInvalid},
		{structs.CommandTokenPut, &structs.TokenPut{Token: structs.Token{ID: "x", Hash: hash(3)}}, ""},
		{structs.CommandTokenDelete, &structs.TokenDelete{ID: "x"}, ""},
		{structs.CommandTokenDelete, &structs.TokenDelete{ID: "x"}, structs.CodeNotFound},
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: ""}, structs.CodeInvalid},
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: "s1"}, ""},
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: "s1"}, ""}, // the same command again
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: "s2"}, ""},
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: "s1", Back: true}, ""},
		{structs.CommandServerRemoval, &structs.ServerRemoval{ID: "s1", Back: true}, ""},
		{structs.CommandServerReport, &structs.ServerReport{}, structs.CodeInvalid},
		{structs.CommandServerReport, report("s1", true, "no"), ""},
		{structs.CommandServerReport, report("s1", true, "no"), ""}, // the same command again
		{structs.CommandServerReport, report("s1", false, "no"), ""},
		{structs.CommandServerReport, report("s2", true, ""), ""},
		{structs.CommandServerReport, &structs.ServerReport{ServerCondition: structs.ServerCondition{ID: "s2"}, Gone: true}, ""},
		{structs.CommandServerReport, report("s3", false, strings.Repeat("x", structs.ServerConditionText+1)), structs.CodeInvalid},
		{structs.CommandKeyRotate, rotate(structs.KeyUse, "k1", "k2"), structs.CodeConflict}, // nothing began
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k1"), structs.CodeInvalid},
		{structs.CommandKeyRotate, rotate("backwards", "k1", "k2"), structs.CodeInvalid},
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k3"), structs.CodeConflict}, // one at a time
		{structs.CommandKeyRotate, rotate(structs.KeyDone, "k1", "k2"), structs.CodeConflict},    // not in use yet
		{structs.CommandKeyRotate, rotate(structs.KeyUse, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k2"), ""}, // late: changes nothing
		{structs.CommandKeyRotate, rotate(structs.KeyDone, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyDone, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyUse, "k1", "k2"), ""},
		{structs.CommandKeyRotate, rotate(structs.KeyInstall, "k1", "k3"), structs.CodeConflict}, // k1 is worth nothing any more
		{structs.CommandCARotate, rotateCA(structs.KeyUse, "c1", "c2"), structs.CodeConflict},    // nothing began
		{structs.CommandCARotate, &structs.CARotate{Stage: structs.KeyInstall, From: structs.CACertificate{Fingerprint: "c1"}, To: structs.CACertificate{Fingerprint: "c2"}}, structs.CodeInvalid},
		{structs.CommandCARotate, rotateCA(structs.KeyInstall, "c1", "c2", "x12"), ""},
		{structs.CommandCARotate, rotateCA(structs.KeyInstall, "c1", "c3", "x13"), structs.CodeConflict},
		{structs.CommandCARotate, rotateCA(structs.KeyDone, "c1", "c2"), structs.CodeConflict},
		{structs.CommandCARotate, rotateCA(structs.KeyUse, "c1", "c2"), ""},
		{structs.CommandCARotate, rotateCA(structs.KeyUse, "c1", "c2"), ""},
		{structs.CommandCARotate, rotateCA(structs.KeyDone, "c1", "c2"), ""},
		{structs.CommandCARotate, rotateCA(structs.KeyDone, "c1", "c2"), ""},
		{structs.CommandCARotate, rotateCA(structs.KeyInstall, "c1", "c2", "x12"), structs.CodeConflict},           // late
		{structs.CommandCARotate, rotateCA(structs.KeyInstall, "c2", "c3", "x1", "x2", "x3"), structs.CodeInvalid}, // more than are followed
		{structs.CommandCARotate, rotateCA(structs.KeyInstall, "c2", "c3", "x12", "x23"), ""},
	} {
		if got := apply(step.kind, step.body); got != step.want {
			t.Errorf("step %d gives %q, want %q", i, got, step.want)
		}
	}
	snapshot := store.Snapshot()
	if cluster := snapshot.Cluster(); cluster.IsRemoved("s1") || !cluster.IsRemoved("s2") || len(cluster.Removed) != 1 {
		t.Errorf("removed servers: %+v", cluster.Removed)
	}
	if cluster := snapshot.Cluster(); len(cluster.Unwell) != 1 || cluster.Condition("s1").Full || cluster.Condition("s1").Backup != "no" {
		t.Errorf("servers that are not well: %+v", cluster.Unwell)
	}
	var told []string
	events, _, err := snapshot.EventsAfter(structs.Cursor{})
	for _, event := range events {
		if strings.HasPrefix(event.ID, "event.cluster.server_") || strings.HasPrefix(event.ID, "event.cluster.backup_") {
			told = append(told, strings.TrimPrefix(event.ID, "event.cluster.")+" "+event.Params["server"])
		}
	}
	if want := "server_removed s1,server_removed s2,server_back s1,server_full s1,backup_failed s1,server_room s1,server_full s2"; err != nil || strings.Join(told, ",") != want {
		t.Errorf("told %q, want %q, %v", told, want, err)
	}
	if keys := snapshot.Cluster().Keys(structs.KeyGossip); keys == nil || keys.Current != "k2" || keys.Rotation != nil {
		t.Errorf("keys are %+v", keys)
	}
	ca := snapshot.Cluster().CA
	if ca == nil || len(ca.Past) != 2 || ca.Past[0].Cross != "x12" || ca.Past[1].Until != 1000 || snapshot.Cluster().CAFingerprint != "c2" {
		t.Errorf("CA is %+v", ca)
	}
	if trusted := ca.Trusted(); len(trusted) != 2 || trusted[0].PEM != "pem c2" || trusted[1].PEM != "pem c3" {
		t.Errorf("trusted are %+v", trusted)
	}
	// A key that is in other hands leads nowhere.
	apply(structs.CommandCARotate, rotateCA(structs.KeyUse, "c2", "c3"))
	apply(structs.CommandCARotate, rotateCA(structs.KeyDone, "c2", "c3"))
	apply(structs.CommandCARotate, rotateCA(structs.KeyInstall, "c3", "c4"))
	if ca := store.Snapshot().Cluster().CA; len(ca.Past) != 0 || len(ca.Certificates) != 2 {
		t.Errorf("CA after a revocation is %+v", ca)
	}
	if token := snapshot.TokenByHash(hash(2)); token == nil || token.ID != "m9" || snapshot.TokenByHash(hash(3)) != nil {
		t.Errorf("the management token is %v", token)
	}
	if cluster := snapshot.Cluster(); !cluster.Bootstrapped || cluster.SetupHash != nil {
		t.Errorf("the cluster is %+v", cluster)
	}
}
