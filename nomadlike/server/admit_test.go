package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// put proposes a change by an administrator.
func (c *cluster) put(kind structs.CommandKind, body any) {
	c.t.Helper()
	if _, _, err := c.servers[0].Submit(c.t.Context(), kind, "ada", body); err != nil {
		c.t.Fatal(err)
	}
}

// refusals lists the ids of everything that is wrong with a job, with their
// fields.
func refusals(err *structs.Error) (ids []string) {
	if err == nil {
		return nil
	}
	for _, problem := range err.Details {
		ids = append(ids, problem.Params["path"]+" "+problem.ID)
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, problem.ID) {
				ids = append(ids, "no text for "+problem.ID)
			}
		}
	}
	return ids
}

func TestPoolsRuleAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		for _, name := range []string{"m1", "m2"} {
			c.newNode(name).connect(0)
		}
		c.eventually(0, time.Second, "nodes", func(s *state.Snapshot) bool { return s.NodeCount() == 2 })
		c.put(structs.CommandPoolPut, &structs.PoolPut{Pool: structs.Pool{
			Name: "a800", Nodes: []string{"m1"}, RDMA: true,
			SKU:      &structs.SKU{CPU: 4, Memory: 8 << 30, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A800"}}},
			Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(time.Hour), Priority: structs.PriorityUrgent},
			Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(2 * time.Hour), Nodes: 2},
			Exec:     &structs.PoolExec{Accounts: structs.Accounts{Projects: map[string]string{structs.DefaultProject: "vision"}}},
		}})
		c.put(structs.CommandPoolPut, &structs.PoolPut{Pool: structs.Pool{Name: "dry", NoRDMA: true}})
		in := func(pool string, edit func(*structs.Job)) *structs.Job {
			job := testJob("one", 1)
			job.Placement.Pool = pool
			if edit != nil {
				edit(job)
			}
			return job
		}
		snapshot := c.servers[0].Store().Snapshot()
		for _, try := range []struct {
			what string
			job  *structs.Job
			want string
		}{
			{"as it is", in("a800", nil), ""},
			{"a pool that nobody knows", in("a80", nil), "placement.pool server.pool_unknown"},
			{"the default pool", in("", nil), ""},
			{"RDMA where it is", in("a800", func(j *structs.Job) { j.Resources[0].RDMA = true }), ""},
			{"RDMA where a record denies it", in("dry", func(j *structs.Job) { j.Resources[0].RDMA = true }), "resources[0].rdma pool.no_rdma"},
			{"RDMA where no record speaks of it", in("default", func(j *structs.Job) { j.Resources[0].RDMA = true }), ""},
			{"an account", in("a800", func(j *structs.Job) { j.Task.User = "vision" }), ""},
			{"an account of others", in("a800", func(j *structs.Job) { j.Task.User = "li" }), "task.user pool.user_unbound"},
			{"an account where the record names none", in("", func(j *structs.Job) { j.Task.User = "li" }), ""},
			{"root", in("a800", func(j *structs.Job) { j.Task.User = "root" }), "task.user pool.user_root"},
			{"root by number", in("", func(j *structs.Job) { j.Task.User = "00" }), "task.user pool.user_root"},
			{"too long", in("a800", func(j *structs.Job) { j.TimeLimit = structs.Duration(3 * time.Hour) }), "time_limit pool.ceiling"},
			{"too many nodes", in("a800", func(j *structs.Job) { j.Nodes, j.Distributed.Mode = 3, structs.ModePyTorch }), "nodes pool.ceiling"},
			{"SKU without one", in("", func(j *structs.Job) { j.Resources = []structs.Resources{{SKU: 2}} }), "resources[0].sku pool.no_sku"},
			{"VIP", in("", func(j *structs.Job) { j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "m1"}}} }), ""},
			{"VIP by id", in("", func(j *structs.Job) { j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "id-m1"}}} }), ""},
			{
				"VIP on nothing", in("", func(j *structs.Job) { j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "m9"}}} }),
				"vip.machine[0].node server.machine_unknown",
			},
			{"VIP twice", in("", func(j *structs.Job) {
				j.Nodes, j.Distributed.Mode = 2, structs.ModePyTorch
				j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "m1"}, {Node: "id-m1"}}}
			}), "vip.machine[1].node server.machine_twice"},
			{"VIP on fewer", in("", func(j *structs.Job) {
				j.Nodes, j.Distributed.Mode = 2, structs.ModePyTorch
				j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "m1"}}}
			}), "vip.machine job.vip_machines"},
			{"VIP that yields", in("", func(j *structs.Job) {
				j.Preemptible, j.VIP = true, &structs.VIP{Machines: []structs.VIPMachine{{Node: "m1"}}}
			}), "vip job.excludes"},
		} {
			_, refusal := Admit(snapshot, try.job)
			if got := strings.Join(refusals(refusal), ", "); got != try.want {
				t.Errorf("%s: %q, want %q", try.what, got, try.want)
			}
		}
		job := in("a800", func(j *structs.Job) {
			j.Priority, j.Resources = "", []structs.Resources{{SKU: 2}}
		})
		id := c.submit(0, job)
		view, _ := c.servers[0].Store().Snapshot().Job(id)
		got := view.Job
		spec := got.Resources[0]
		if got.TimeLimit.Std() != time.Hour || got.Priority != structs.PriorityUrgent || spec.CPU != 8 || spec.Memory != 16<<30 ||
			len(spec.Devices) != 1 || spec.Devices[0].Count != 2 || spec.Devices[0].Model != "A800" {
			t.Errorf("the pool's defaults and units give %+v", got)
		}
		if job.TimeLimit != 0 {
			t.Error("the caller's job was changed")
		}
	})
}

// Urgent jobs of a project are counted when they are admitted, and when one is
// made urgent.
func TestUrgentJobsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		one := 1
		c.put(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "default", UrgentLimit: &one}})
		var got []string
		for i := range 3 {
			job := testJob(fmt.Sprintf("j%d", i), 1)
			job.Priority = structs.PriorityUrgent
			_, err := admitAndSubmit(t.Context(), c.servers[0], "", job)
			got = append(got, string(structs.CodeOf(err)))
		}
		if want := []string{"", "conflict", "conflict"}; !slices.Equal(got, want) {
			t.Errorf("three urgent jobs give %q", got)
		}
	})
}

// An admission goes by one snapshot: where its pool's record changed before the log
// had it, the log refuses it, and admitting anew goes by the new record. What
// callers do with the job that they looked at is not submitted.
func TestAdmissionGoesByOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		limit := func(d time.Duration) {
			c.put(structs.CommandPoolPut, &structs.PoolPut{Pool: structs.Pool{
				Name: structs.PoolDefault, Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(d)},
			}})
		}
		job := testJob("one", 1)
		job.TimeLimit = 0
		limit(time.Hour)
		old, refusal := Admit(c.servers[0].Store().Snapshot(), job)
		if refusal != nil {
			t.Fatal(refusal)
		}
		limit(time.Minute)
		var changed *structs.Error
		if _, _, err := c.servers[0].SubmitJob(t.Context(), structs.Guard{}, "ann", "", old); !errors.As(err, &changed) || changed.ID != structs.RestChanged {
			t.Fatalf("an admission by the old record gives %v", err)
		}
		admitted, refusal := Admit(c.servers[0].Store().Snapshot(), job)
		if refusal != nil {
			t.Fatal(refusal)
		}
		seen := admitted.Job()
		seen.TimeLimit, seen.Task.Command, seen.Resources[0].CPU = 0, "", 1e6
		id, _, err := c.servers[0].SubmitJob(t.Context(), structs.Guard{}, "ann", "", admitted)
		if err != nil {
			t.Fatal(err)
		}
		view, _ := c.servers[0].Store().Snapshot().Job(id)
		if got := view.Job; got.TimeLimit.Std() != time.Minute || got.Task.Command != job.Task.Command || got.Resources[0].CPU != job.Resources[0].CPU {
			t.Errorf("admitted was %+v", got)
		}
		if job.TimeLimit != 0 || admitted.Job().ID != "" {
			t.Error("the job that came, or the admission, was changed")
		}
	})
}

// A job's code is what its project has: no digest reaches that of another, and how much
// it is the cluster says.
func TestCodeIsThatOfTheProject(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	digest := "sha256:" + strings.Repeat("a", 64)
	s.apply(structs.CommandCodePut, &structs.CodePut{Tree: structs.CodeTree{Project: "vision", Digest: digest, Files: 3, Bytes: 400}})
	job := &structs.Job{Project: "vision", Workdir: &structs.Workdir{Source: ".", Tree: digest, Files: 1, Bytes: 1}}
	if problems := fixCode(s.store.Snapshot(), job); len(problems) != 0 || job.Workdir.Files != 3 || job.Workdir.Bytes != 400 {
		t.Errorf("%+v, %v", job.Workdir, problems)
	}
	job.Project = "speech"
	if problems := fixCode(s.store.Snapshot(), job); len(problems) != 1 || problems[0].ID != "server.code_unknown" || problems[0].Path != "workdir" {
		t.Errorf("another project's: %v", problems)
	}
	for _, workdir := range []*structs.Workdir{nil, {Source: "."}} { // not sent yet: a plan shows such a job
		if problems := fixCode(s.store.Snapshot(), &structs.Job{Project: "speech", Workdir: workdir}); len(problems) != 0 {
			t.Errorf("%+v: %v", workdir, problems)
		}
	}
}

// A job names a channel that its owner has; what a project has all told is the bell for
// who has no such channel.
func TestAJobNamesAChannelOfItsOwner(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	s.apply(structs.CommandUserPut, &structs.UserPut{User: structs.User{Name: "li"}})
	s.apply(structs.CommandNotifySet, &structs.NotifySet{Settings: &structs.NotifySettings{
		User: "li", Channels: []structs.NotifyChannel{{Name: "team", Kind: structs.ChannelEmail}},
	}})
	s.apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{
		Name: "speech", JobDefaults: structs.JobDefaults{Notify: &structs.JobNotify{On: []string{structs.NotifyFailed}, To: "ours"}},
	}})
	for _, c := range []struct {
		user, project, to string
		want              []string
	}{
		{"li", "default", "team", nil},
		{"li", "default", structs.ChannelBell, nil},
		{"li", "default", "other", []string{"notify.to server.channel_unknown"}},
		{"mo", "default", "team", []string{"notify.to server.channel_unknown"}},
		{"mo", "default", structs.ChannelBell, nil},
		{"mo", "speech", "", nil},
	} {
		job := testJob("one", 1)
		job.User, job.Project = c.user, c.project
		if c.to != "" {
			job.Notify = &structs.JobNotify{On: []string{structs.NotifyFailed}, To: c.to}
		}
		admitted, err := Admit(s.store.Snapshot(), job)
		if got := refusals(err); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
		if err == nil && c.project == "speech" && (admitted.Job().Notify == nil || admitted.Job().Notify.To != "ours") {
			t.Errorf("the project's default is not the job's: %+v", admitted.Job().Notify)
		}
	}
}
