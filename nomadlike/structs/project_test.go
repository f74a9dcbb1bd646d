package structs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
)

// TestProjectDefaults fills what a job leaves out, and nothing else.
func TestProjectDefaults(t *testing.T) {
	project := &Project{Name: "vision", JobDefaults: JobDefaults{
		Pool: "h800", Priority: PriorityUrgent, TimeLimit: Duration(24 * time.Hour), Image: "torch:2.9", OutputStorage: "nas",
	}, Defaults: TaskDefaults{Env: map[string]string{"HF_HOME": "/nas/hf"}, Arguments: "--wide"}}
	silent := func() *Job {
		return &Job{Name: "j", Project: "vision", Output: "out", Task: Task{Driver: DriverDocker, Command: "true"}}
	}
	text := func(chosen []Default) string {
		var lines []string
		for _, one := range chosen {
			lines = append(lines, fmt.Sprintf("%s=%s %s", one.Path, one.Value, one.From))
		}
		return strings.Join(lines, "\n")
	}
	all := "placement.pool=h800 project\npriority=urgent project\ntime_limit=24h project\ntask.image=torch:2.9 project\noutput_storage=nas project\n" +
		"task.env[\"HF_HOME\"]=/nas/hf project\ntask.arguments=--wide project"
	for _, try := range []struct {
		what string
		edit func(*Job)
		want string
	}{
		{"a silent job", func(*Job) {}, all},
		{"one that says everything", func(j *Job) {
			j.Placement.Pool, j.Priority, j.TimeLimit, j.OutputStorage = "a800", PriorityNormal, Duration(time.Hour), "ssd"
			j.Task.Image, j.Task.Arguments, j.Task.Env = "own:1", "--narrow", map[string]string{"HF_HOME": "/own"}
		}, ""},
		{"one that names nodes, has no output and no container", func(j *Job) {
			j.Placement.Nodes, j.Output, j.Task.Driver = []string{"m1"}, "", DriverExec
		}, "priority=urgent project\ntime_limit=24h project\ntask.env[\"HF_HOME\"]=/nas/hf project\ntask.arguments=--wide project"},
		{"a VIP job", func(j *Job) {
			j.VIP, j.Priority, j.TimeLimit = &VIP{}, PriorityNormal, 1
			j.Task.Arguments, j.Task.Env, j.Task.Image, j.Output = "-", map[string]string{"HF_HOME": "-"}, "own:1", ""
		}, ""},
	} {
		job := silent()
		try.edit(job)
		if got := text(project.SetDefaults(job)); got != try.want {
			t.Errorf("%s:\n%s\nwant\n%s", try.what, got, try.want)
		}
		if again := project.SetDefaults(job); len(again) > 0 {
			t.Errorf("%s: filled twice: %v", try.what, again)
		}
	}
	if got := (*Project)(nil).SetDefaults(silent()); len(got) > 0 {
		t.Errorf("a project without a record chose %v", got)
	}
}

// TestProjectAdmit says what is over a project's ceilings, how much is allowed, and
// who set it.
func TestProjectAdmit(t *testing.T) {
	project := &Project{Name: "vision", BoundsBy: "ada", Ceilings: PoolCeilings{
		TimeLimit: Duration(48 * time.Hour), Nodes: 4, Devices: 16, MaxResumes: 5, Grace: Duration(10 * time.Minute), Hold: Duration(time.Hour),
	}}
	within := func() *Job {
		j := &Job{
			Name: "j", Project: "vision", Nodes: 4, TimeLimit: Duration(48 * time.Hour), Task: Task{Command: "true"},
			Resources:  []Resources{{CPU: 1, Memory: GiB, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 4}}}},
			Checkpoint: &Checkpoint{MaxResumes: 5, Grace: Duration(10 * time.Minute)}, Debug: &Debug{Hold: Duration(time.Hour)},
		}
		j.SetDefaults()
		return j
	}
	for _, try := range []struct {
		what string
		edit func(*Project, *Job)
		want []string
	}{
		{"within all", func(*Project, *Job) {}, nil},
		{"no limit", func(_ *Project, j *Job) { j.TimeLimit = 0 }, []string{"jobs of project vision must have a time limit, as ada set it; set time_limit to at most 48h"}},
		{"long limit", func(_ *Project, j *Job) { j.TimeLimit = Duration(49 * time.Hour) }, []string{"time_limit is 49h: project vision allows at most 48h, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling"}},
		{"nodes and devices", func(_ *Project, j *Job) { j.Nodes = 5 }, []string{
			"nodes is 5: project vision allows at most 4, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling",
			"resources[0].device adds up to 20 devices on all nodes: project vision allows at most 16, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling",
		}},
		{"all devices", func(_ *Project, j *Job) { j.Resources[0].Devices[0].Count = DevicesAll }, []string{"resources[0].device[0].count asks for all devices of a node: project vision allows at most 16, as ada set it; give the number of devices that the job needs"}},
		{"named nodes are no way around", func(_ *Project, j *Job) { j.Placement.Nodes, j.Debug.Hold = []string{"m1"}, Duration(2*time.Hour) }, []string{
			"debug.hold is 2h: project vision allows at most 1h, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling",
		}},
		{"resumes and grace", func(_ *Project, j *Job) { j.Checkpoint = &Checkpoint{MaxResumes: 6, Grace: Duration(11 * time.Minute)} }, []string{
			"checkpoint.max_resumes is 6: project vision allows at most 5, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling",
			"checkpoint.grace is 11m: project vision allows at most 10m, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling",
		}},
		{"no checkpoints", func(p *Project, _ *Job) { p.Ceilings.NoCheckpoint = true }, []string{"project vision does not allow checkpoint resume, as ada set it; ask for no more than that, or ask an administrator to raise the ceiling"}},
		{"archived", func(p *Project, _ *Job) { p.Archived, p.ArchivedBy = true, "ben" }, []string{
			"project vision takes no new jobs: ben archived it; submit to another project, or ask an administrator to bring it back: nomadlike project unarchive vision",
		}},
	} {
		p, j := *project, within()
		try.edit(&p, j)
		var got []string
		for _, problem := range p.Admit(j) {
			got = append(got, messages.Text(messages.English, problem.ID, problem.Params)+"; "+messages.Text(messages.English, problem.HintID, problem.Params))
		}
		if !slices.Equal(got, try.want) {
			t.Errorf("%s:\n%s\nwant\n%s", try.what, strings.Join(got, "\n"), strings.Join(try.want, "\n"))
		}
	}
	if got := (*Project)(nil).Admit(within()); len(got) > 0 {
		t.Errorf("a project without a record is against %v", got)
	}
}
