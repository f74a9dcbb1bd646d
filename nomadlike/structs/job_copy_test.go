package structs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fullJob sets every field of a job that a user may set.
func fullJob() *Job {
	yes := true
	reference := DataRef{
		Name: "cifar10", Version: 3, ReadOnly: true, Prepare: true, From: "favorite", Storage: "nas", Annotations: true,
		Source: "vision/cifar10.tar", SHA256: strings.Repeat("0a", 32), Project: "speech", Tag: "stable",
		Object: &DataPick{Project: "speech", Owner: "mei", Digest: "sha256:1", Source: "old/cifar10", Asked: DataTagLatest},
	}
	return &Job{
		Name: "resnet50", Project: "vision", Type: JobTypeTraining, Category: "training", Description: "baseline",
		Priority: PriorityUrgent, Preemptible: true, Access: AccessReadOnly, TimeLimit: Duration(48 * time.Hour),
		ExpectedRuntime: Duration(6 * time.Hour), Nodes: 4,
		Sweep: &Sweep{
			Method: SweepGrid, MaxTrials: 3, Parallel: 2, Metric: "loss", Goal: GoalMinimize, Seed: 7, Args: ArgsFlags,
			Params: []SweepParam{{Name: "lr", Values: []string{"1"}, Int: []string{"1", "2"}, Double: []string{"1", "2"}, Log: []string{"1", "2"}, Count: 2}},
		},
		Batch: &Batch{Count: 2, Array: "0-1", Parallel: 1, Subtasks: []BatchSubtask{{Name: "a", Algorithm: "b", Command: "c", Env: map[string]string{"D": "e"}}}},
		Distributed: Distributed{
			Mode: ModePyTorch, WorldSize: "nodes", Rewrite: "launch", Launcher: "no_ssh", ProcsPerNode: 8,
			MasterPort: 2222, ParameterServers: 1, Chief: true, MinNodes: 1, RankTable: "v1.0", Emulate: "dlws",
		},
		Resources: []Resources{{
			Label: "a800", CPU: 32, Memory: 256 * GiB, SharedMemory: 64 * GiB, Disk: 100 * GiB, SKU: 8,
			Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A800", Models: []string{"H800"}, Memory: GiB, IDs: []string{"GPU-1"}}}, LastDevices: 1,
			Ports: []PortRequest{{Name: "http", Static: 8080}}, RDMA: true, RDMAByNodes: true,
		}},
		VIP: &VIP{
			Machines: []VIPMachine{{Node: "gpu-01", Busy: BusyAsk}}, Ask: &VIPAsk{For: Duration(time.Hour), Silence: BusyKill, Message: "for the demo"},
		},
		Placement: Placement{Pool: "a800", Nodes: []string{"gpu-01"}, DriverVersion: ">= 535", SpreadOrPack: Pack},
		Task: Task{
			Driver: DriverDocker, Image: "nv-pytorch:21.05-py3", Pull: PullMissing, Command: "python train.py", Arguments: "--epochs 3", Dir: "/workspace",
			Env: map[string]string{"LR": "0.1"}, User: "li", Hooks: []Hook{{When: "prestart", Command: "true", Timeout: Duration(time.Minute)}},
			Logs: &LogPolicy{FileSizeMax: MiB, Files: 3}, Ulimits: map[string]string{"memlock": "unlimited"}, Options: map[string]string{"ipc": "host"},
			Secrets: []SecretUse{{Name: "wandb", Var: "WANDB_API_KEY", Image: true, User: "li"}},
		},
		Algorithms: []DataRef{reference}, Datasets: []DataRef{reference}, Models: []DataRef{reference}, Volumes: []DataRef{reference},
		Mounts: []Mount{{Target: "/mnt/a", Source: "/nas/a", ReadOnly: true, Storage: "nas"}}, Output: "models/run7", OutputStorage: "nas", OutputKeep: &OutputKeep{As: "model", Name: "resnet", When: "success", Path: "best", Storage: "nas", Apart: true},
		Restart: &Restart{MaxRestarts: 3, Delay: Duration(time.Second)},
		Elastic: &Elastic{MinNodes: 2, By: ElasticByRestart, AllowResize: true},
		Checkpoint: &Checkpoint{
			MaxResumes: 5, Signal: "SIGUSR1", Grace: Duration(time.Minute), Precheck: true, Dir: "/ck", Pattern: "*.pt",
			Elastic: &Elastic{MinNodes: 2, By: ElasticByRestart, AllowResize: true}, Performance: &Performance{Threshold: 0.7, Action: "alert", Compare: "gt", Pattern: `t=(\d+)`, Times: 2},
		},
		Hang:      &Hang{Action: "alert", Factor: 10, Least: Duration(time.Minute), Most: Duration(time.Hour), Pattern: `step (\d+)`},
		StopGrace: Duration(30 * time.Second), Fencing: FencingStrict, Supports: &Supports{Pause: &yes, Throttle: &yes, FinishNow: &yes, Resume: &yes}, Throttle: &Throttle{Idle: Duration(time.Second), Busy: Duration(time.Second)}, Debug: &Debug{Hold: Duration(time.Hour)},
		SSH: true, Jupyter: true, Tensorboard: &Tensorboard{LogDir: "/tb"}, Metrics: &Metrics{Patterns: []string{"loss (?P<loss>[0-9.]+)"}, Events: "/tb"}, Meta: map[string]string{"team": "a"}, Tags: []string{"paper-3"}, Note: "baseline", Notify: &JobNotify{On: []string{NotifyFailed}, To: "team"}, Workdir: &Workdir{Source: ".", Tree: "sha256:1", Files: 1, Bytes: 1, Git: &WorkdirGit{Commit: "1", Branch: "main", Dirty: true}, Repo: &WorkdirRepo{Ref: "main", Subdir: "train"}},
		ID: "id", User: "li", SubmittedAt: 1, IdempotencyKey: "key", Source: "job {}",
		PatientStarts: true,
		OutsideYields: true,
		SavesAtEnds:   true,
		KillsLast:     true,
		After:         []After{{Job: "prep", When: UntilEnded, Project: "speech", ID: "id"}},
		Begin:         "22:00", BeginAt: 1, Deadline: "23:00", DeadlineAt: 1, MaxQueueTime: Duration(time.Hour), Number: 1,
		LimitWarning: &LimitWarning{Before: Duration(time.Minute), Signal: "SIGUSR2"},
		Resume:       &SavedCheckpoint{Path: "/ck/1", Step: 1, JobID: "old", Attempt: 2, Rank: 3, SavedAt: 4},
	}
}

func TestFullJobSetsEveryField(t *testing.T) {
	walk(reflect.ValueOf(fullJob()), "Job", func(path string, value reflect.Value) {
		if value.IsZero() {
			t.Errorf("%s is zero in fullJob: the other tests would not look at it", path)
		}
	})
}

func TestCopySharesNothing(t *testing.T) {
	original := fullJob()
	copied := original.Copy()
	if diff := cmp.Diff(original, copied); diff != "" {
		t.Fatalf("copy differs (-original +copy):\n%s", diff)
	}
	pointers := make(map[uintptr]string)
	references := func(visit func(path string, pointer uintptr)) func(string, reflect.Value) {
		return func(path string, value reflect.Value) {
			switch value.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map:
				visit(path, value.Pointer())
			}
		}
	}
	walk(reflect.ValueOf(original), "Job", references(func(path string, pointer uintptr) { pointers[pointer] = path }))
	walk(reflect.ValueOf(copied), "Job", references(func(path string, pointer uintptr) {
		if shared, ok := pointers[pointer]; ok {
			t.Errorf("%s of the copy is %s of the original", path, shared)
		}
	}))
	if (*Job)(nil).Copy() != nil {
		t.Error("copy of no job is a job")
	}
}

// walk visits value and everything that it refers to.
func walk(value reflect.Value, path string, visit func(path string, value reflect.Value)) {
	visit(path, value)
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			walk(value.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			walk(value.Field(i), path+"."+value.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			walk(value.Index(i), path+"[]", visit)
		}
	}
}

// TestOptionsOfTheEngine: only containers have an engine, and the entrypoint is the
// image's or none.
func TestOptionsOfTheEngine(t *testing.T) {
	for _, c := range []struct {
		driver  string
		options map[string]string
		want    string
	}{
		{DriverDocker, map[string]string{"cap_add": "SYS_PTRACE", OptionEntrypoint: OptionEntrypointImage}, ""},
		{DriverExec, map[string]string{"ipc": "host"}, "job.options_driver"},
		{DriverDocker, map[string]string{OptionEntrypoint: "mine"}, "job.choice"},
	} {
		v := &validator{}
		v.options(&Task{Driver: c.driver, Options: c.options})
		got := ""
		if len(v.problems) > 0 {
			got = v.problems[0].ID
		}
		if got != c.want {
			t.Errorf("%s with %v: %q, want %q", c.driver, c.options, got, c.want)
		}
	}
}
