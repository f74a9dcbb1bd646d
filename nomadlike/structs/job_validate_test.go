package structs_test

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	. "nomadlike/nomadlike/structs"
)

// smallJob is the least that is valid, with its defaults.
func smallJob() *Job {
	j := &Job{Name: "digits", Task: Task{Command: "python3 train.py"}}
	j.SetDefaults()
	return j
}

func TestDefaults(t *testing.T) {
	j := &Job{Name: "digits", Nodes: 2, Task: Task{Command: "true"}, Resources: []Resources{{Devices: []DeviceRequest{{Kind: "nvidia/gpu"}}}}}
	var b strings.Builder
	for _, d := range j.SetDefaults() {
		fmt.Fprintf(&b, "%s = %s\n", d.Path, d.Value)
	}
	golden.Assert(t, "testdata/defaults.txt", b.String())
	before := j.Copy()
	if again := j.SetDefaults(); len(again) != 0 {
		t.Errorf("second SetDefaults chose %v", again)
	}
	if diff := cmp.Diff(before, j); diff != "" {
		t.Errorf("second SetDefaults changed the job:\n%s", diff)
	}
	if problems := smallJob().Validate(); len(problems) != 0 {
		t.Errorf("the smallest job is not valid: %v", problems)
	}
}

// A driver that nodes load from their plugin_dir can be named; whether there is
// one, only they know.
func TestExternalDriver(t *testing.T) {
	j := smallJob()
	j.Task.Driver, j.Fencing = "idle", FencingStrict
	if problems := j.Validate(); len(problems) != 0 {
		t.Errorf("a driver of the nodes is refused: %v", problems)
	}
	if problems := j.NotAvailable(); len(problems) != 1 || problems[0].Path != "fencing" {
		t.Errorf("strict fencing with a driver of the nodes: %v", problems)
	}
	for name, want := range map[string]bool{
		"idle": true, "apptainer-2_x": true, "exec": false, "docker": false, "exce": false, "Docker": false, "": false, "a b": false,
		"a234567890123456789012345678901b": true, "a234567890123456789012345678901bc": false,
	} {
		if got := ExternalDriver(name); got != want {
			t.Errorf("ExternalDriver(%q) = %v", name, got)
		}
	}
}

func TestDefaultsByForm(t *testing.T) {
	batch := &Job{Batch: &Batch{Count: 3}}
	batch.SetDefaults()
	if batch.Type != JobTypeBatch || batch.Distributed.Mode != ModeSingle {
		t.Errorf("batch: type %s, mode %s", batch.Type, batch.Distributed.Mode)
	}
	torch := &Job{Nodes: 4, Distributed: Distributed{Mode: ModePyTorch}}
	torch.SetDefaults()
	if torch.Distributed.WorldSize != WorldSizeNodes || torch.Distributed.Rewrite != RewriteLaunch {
		t.Errorf("pytorch: %+v", torch.Distributed)
	}
	if sku := (&Job{Resources: []Resources{{SKU: 2}}}); len(sku.SetDefaults()) == 0 || sku.Resources[0].CPU != 0 {
		t.Errorf("an SKU got cores of its own: %+v", sku.Resources[0])
	}
}

// mistakes are jobs with something wrong, by what is wrong with them.
func mistakes() map[string]func(*Job) {
	env := func(name, value string) func(*Job) {
		return func(j *Job) { j.Task.Env = map[string]string{name: value} }
	}
	command := func(c string) func(*Job) { return func(j *Job) { j.Task.Command = c } }
	return map[string]func(*Job){
		"access": func(j *Job) { j.Access = "readonly" },
		"batch and checkpoint": func(j *Job) {
			j.Type, j.Batch, j.Checkpoint = JobTypeBatch, &Batch{Count: 1}, &Checkpoint{Signal: "SIGINT"}
		},
		"batch both":           func(j *Job) { j.Type, j.Batch = JobTypeBatch, &Batch{Count: 2, Subtasks: []BatchSubtask{{Name: "a"}}} },
		"batch count overflow": func(j *Job) { j.Type, j.Batch = JobTypeBatch, &Batch{Count: math.MaxInt} },
		"batch missing":        func(j *Job) { j.Type = JobTypeBatch },
		"batch of too many ranks": func(j *Job) {
			j.Type, j.Batch, j.Nodes, j.Distributed.Mode = JobTypeBatch, &Batch{Count: 10000}, 11, ModeNone
		},
		"batch on training":      func(j *Job) { j.Batch = &Batch{Count: 2} },
		"checkpoint and restart": func(j *Job) { j.Restart, j.Checkpoint = &Restart{}, &Checkpoint{Signal: "SIGUSR1"} },
		"elastic": func(j *Job) {
			j.Elastic, j.Checkpoint = &Elastic{MinNodes: 2, By: ElasticByRestart}, &Checkpoint{Signal: "SIGUSR1"}
		},
		"elastic alone":   func(j *Job) { j.Nodes, j.Elastic = 4, &Elastic{MinNodes: 2, By: ElasticByRestart} },
		"elastic by whom": func(j *Job) { j.Nodes, j.Elastic = 4, &Elastic{MinNodes: 2, By: "hand"} },
		"elastic by torchrun": func(j *Job) {
			j.Nodes, j.Fencing, j.Elastic = 4, FencingStrict, &Elastic{MinNodes: 2, By: ElasticByTorchrun, AllowResize: true}
		},
		"elastic of before": func(j *Job) {
			j.Nodes, j.Checkpoint = 4, &Checkpoint{Signal: "SIGUSR1", Elastic: &Elastic{MinNodes: 2}}
			j.Distributed.MinNodes = 3
		},
		"checkpoint performance": func(j *Job) {
			j.Checkpoint = &Checkpoint{Signal: "SIGUSR1", Performance: &Performance{Threshold: math.NaN(), Action: "alter", Compare: "gt", Times: 1}}
		},
		"watch patterns": func(j *Job) {
			j.Checkpoint = &Checkpoint{Signal: "SIGUSR1", Performance: &Performance{Threshold: 1, Action: "alert", Compare: "gt", Times: 1, Pattern: "(a)(b)(c)"}}
			j.Hang = &Hang{Action: "restart", Factor: 0.5, Least: Duration(time.Hour), Most: Duration(time.Minute), Pattern: "step ("}
		},
		"checkpoint signal":        func(j *Job) { j.Checkpoint = &Checkpoint{Signal: "USR1"} },
		"command assignment":       command("KEY=VALUE python3 train.py"),
		"command backslash":        command(`echo \`),
		"command background":       command("python3 train.py &"),
		"command builtin":          command("cd /data"),
		"command empty":            command(" \n "),
		"command expansion":        command("echo ${HOME:-/root}"),
		"command lines":            command("echo a\necho b"),
		"command option":           command("--epochs 3"),
		"command pipe":             command(`python3 train.py | tee "my log"`),
		"command quote":            command(`echo "a`),
		"command redirect":         command("python3 train.py > log"),
		"command statements":       command("python3 train.py && python3 evaluate.py"),
		"command statements, both": command("KEY=VALUE python3 train.py && python3 evaluate.py"),
		"command substitution":     command("echo $(hostname)"),
		"command too long":         command(strings.Repeat("a", CommandMax+1)),
		"command python -c":        func(j *Job) { j.Nodes, j.Distributed.Mode, j.Task.Command = 2, ModePyTorch, `python3 -u -c "print(1)"` },
		"cpu infinite":             func(j *Job) { j.Resources[0].CPU = math.Inf(1) },
		"cpu not a number":         func(j *Job) { j.Resources[0].CPU = math.NaN() },
		"cpu overflow":             func(j *Job) { j.Resources[0].CPU = 1e308 },
		"cpu negative":             func(j *Job) { j.Resources[0].CPU = -1 },
		"data names":               func(j *Job) { j.Datasets = []DataRef{{Name: "a"}, {Name: "a"}, {Name: "..", Version: -1}} },
		"data prepare":             func(j *Job) { j.Models = []DataRef{{Name: "a", Prepare: true}} },
		"data source": func(j *Job) {
			j.Datasets = []DataRef{{Name: "a", Source: "../b"}, {Name: "c", Source: "/etc/"}, {Name: "d", Source: "ok/", SHA256: strings.Repeat("0", 64)}, {Name: "e", SHA256: "12"}}
		},
		"debug hold":   func(j *Job) { j.Debug = &Debug{} },
		"device count": func(j *Job) { j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: -8}} },
		"device ids": func(j *Job) {
			j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: 3, IDs: []string{"0", "0"}}}
		},
		"device kind":                func(j *Job) { j.Resources[0].Devices = []DeviceRequest{{Kind: "gpu", Count: 1}} },
		"dir":                        func(j *Job) { j.Task.Dir = "work/../etc" },
		"driver version":             func(j *Job) { j.Placement.DriverVersion = ">= new" },
		"driver version, no devices": func(j *Job) { j.Placement.DriverVersion = ">= 535" },
		"env name":                   env("MY-VAR", "1"),
		"env NUL":                    env("A", "a\x00b"),
		"env reserved": func(j *Job) {
			j.Distributed.Mode, j.Task.Env = ModePyTorch, map[string]string{"RANK": "0", "PET_NPROC_PER_NODE": "2", "PET_TEE": "3"}
		},
		"env reserved always": env("NOMADLIKE_JOB_ID", "1"),
		"fencing":             func(j *Job) { j.Fencing = "never" },
		"driver mistyped":     func(j *Job) { j.Task.Driver = "dokcer" },
		"driver, no name":     func(j *Job) { j.Task.Driver = "../idle" },
		"hook":                func(j *Job) { j.Task.Hooks = []Hook{{When: "before", Command: ""}} },
		"image missing":       func(j *Job) { j.Task.Driver, j.Task.Pull = DriverDocker, PullNever },
		"image an option":     func(j *Job) { j.Task.Driver, j.Task.Image = DriverDocker, "--privileged" },
		"image with exec":     func(j *Job) { j.Task.Image, j.Task.Pull = "debian", PullAlways },
		"labels missing":      func(j *Job) { j.Resources = append(j.Resources, j.Resources[0]) },
		"labels repeated": func(j *Job) {
			j.Resources = []Resources{{Label: "a", CPU: 1, Memory: GiB}, {Label: "a", CPU: 1, Memory: GiB}}
		},
		"unknown limit":  func(j *Job) { j.Task.Ulimits = map[string]string{"evil": "1"} },
		"limit reversed": func(j *Job) { j.Task.Ulimits = map[string]string{"nofile": "2:1"} },
		"throttle":       func(j *Job) { j.Throttle = &Throttle{Idle: 1, Busy: Duration(2 * time.Minute)} },
		"no throttle": func(j *Job) {
			j.Supports, j.Throttle = &Supports{Throttle: new(bool)}, &Throttle{Idle: Duration(time.Second), Busy: Duration(time.Second)}
		},
		"log policy":      func(j *Job) { j.Task.Logs = &LogPolicy{FileSizeMax: 1, Files: 1000} },
		"memory negative": func(j *Job) { j.Resources[0].Memory = math.MinInt64 },
		"memory overflow": func(j *Job) { j.Resources[0].Memory = math.MaxInt64 },
		"memory shared":   func(j *Job) { j.Resources[0].SharedMemory = GiB },
		"meta":            func(j *Job) { j.Meta = map[string]string{"": "a", "b\n": "c", "d": "\xff"} },
		"mode":            func(j *Job) { j.Distributed.Mode = "pytroch" },
		"mode option": func(j *Job) {
			j.Distributed.ParameterServers, j.Distributed.RankTable, j.Distributed.Chief = 2, "v1.0", true
		},
		"mode option value": func(j *Job) {
			j.Distributed = Distributed{Mode: ModePyTorch, WorldSize: "proc", Rewrite: "yes", ProcsPerNode: 5000, MasterPort: 70000}
		},
		"mount": func(j *Job) {
			j.Mounts = []Mount{{Target: "/proc/self", Source: "nas"}, {Target: "/a", Source: "/b"}, {Target: "/a/", Source: "/c"}}
		},
		"name":                    func(j *Job) { j.Name = "../My Job" },
		"name from right to left": func(j *Job) { j.Name = "a\u202eb" },
		"nodes named and pool": func(j *Job) {
			j.Placement = Placement{Nodes: []string{"a", "b"}, Pool: "p", DriverVersion: "535", SpreadOrPack: Pack}
		},
		"nodes named too few or twice": func(j *Job) { j.Nodes, j.Distributed.Mode, j.Placement.Nodes = 3, ModeNone, []string{"a", "a"} },
		"nodes overflow":               func(j *Job) { j.Nodes, j.Distributed.Mode = math.MaxInt, ModeNone },
		"nodes zero":                   func(j *Job) { j.Nodes = -1 },
		"data of several kinds": func(j *Job) {
			j.Algorithms = []DataRef{{Name: "a"}, {Name: "b", From: "private", Annotations: true}}
			j.Datasets = []DataRef{{Name: "a", From: "favorite"}, {Name: "b", From: "pretrained"}, {Name: "c", Prepare: true, Storage: "N as"}}
			j.Models = []DataRef{{Name: "a", From: "mine", Annotations: true}}
			j.Mounts = []Mount{{Target: "/a", Storage: "nas", Source: "../b"}}
		},
		"output": func(j *Job) { j.Output = "../secret" },
		"output kept of too many subjobs": func(j *Job) {
			j.Type, j.Batch, j.Output, j.OutputKeep = JobTypeBatch, &Batch{Count: 501}, "a", &OutputKeep{As: StorageModel}
		},
		"ports": func(j *Job) {
			j.Resources[0].Ports = []PortRequest{{Name: "master"}, {Name: "a", Static: 80}, {Name: "a", Static: 80}, {Name: "b", Static: 70000}}
		},
		"priority":            func(j *Job) { j.Priority = "high" },
		"project":             func(j *Job) { j.Project = "-rf" },
		"restart":             func(j *Job) { j.Restart = &Restart{MaxRestarts: 1 << 40, Delay: -1} },
		"single on two nodes": func(j *Job) { j.Nodes = 2 },
		"stop grace":          func(j *Job) { j.StopGrace = Duration(365 * 24 * time.Hour) },
		"subtasks": func(j *Job) {
			j.Type, j.Task.Command, j.Batch = JobTypeBatch, "", &Batch{Subtasks: []BatchSubtask{{Name: "a", Command: "a;b"}, {Name: "a", Command: "b"}}}
		},
		"tensorboard": func(j *Job) { j.Tensorboard = &Tensorboard{LogDir: "tb"} },
		"time limit":  func(j *Job) { j.TimeLimit, j.ExpectedRuntime = -1, math.MaxInt64 },
		"type":        func(j *Job) { j.Type = "service" },
		"user":        func(j *Job) { j.Task.User = "a b" },
	}
}

func TestValidate(t *testing.T) {
	cases := mistakes()
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		var b strings.Builder
		for _, name := range sortedKeys(cases) {
			j := smallJob()
			cases[name](j)
			problems := j.Validate()
			if len(problems) == 0 {
				t.Errorf("%s: no problem was found", name)
			}
			fmt.Fprintf(&b, "%s\n", name)
			for _, p := range problems {
				writeProblem(&b, language, p)
			}
		}
		golden.Assert(t, "testdata/validate."+string(language)+".txt", b.String())
	}
}

func TestProblemsHaveTextsAndPaths(t *testing.T) {
	hole := regexp.MustCompile(`\{[a-z_]+(?::words?)?\}`)
	for name, spoil := range mistakes() {
		j := smallJob()
		spoil(j)
		for _, p := range append(j.Validate(), j.NotAvailable()...) {
			if p.Path == "" || p.Params["path"] != p.Path {
				t.Errorf("%s: problem %+v does not name its path", name, p)
			}
			for _, id := range []string{p.ID, p.HintID} {
				if id == "" {
					continue
				}
				if !messages.Has(messages.English, id) {
					t.Errorf("%s: message %s does not exist", name, id)
				}
				if text := messages.Text(messages.English, id, p.Params); hole.MatchString(text) {
					t.Errorf("%s: message %s has a hole: %s", name, id, text)
				}
			}
		}
	}
}

func TestNotAvailableAndWarnings(t *testing.T) {
	j := smallJob()
	if problems := append(j.NotAvailable(), j.Warnings()...); len(problems) != 0 {
		t.Errorf("a small job: %v", problems)
	}
	for _, mode := range Modes() {
		j.Distributed.Mode = mode
		if problems := j.NotAvailable(); len(problems) != 0 {
			t.Errorf("mode %s: %v", mode, problems)
		}
	}
	full := &Job{
		Name: "all", Type: JobTypeDev, Preemptible: true, Nodes: 2, Distributed: Distributed{Mode: ModeTensorFlow, ParameterServers: 1}, Fencing: FencingStrict,
		Batch:      &Batch{Subtasks: []BatchSubtask{{Name: "a"}}},
		Resources:  []Resources{{}, {SKU: 1, SharedMemory: 1, RDMA: true, Devices: []DeviceRequest{{}}}},
		Placement:  Placement{Pool: "p", DriverVersion: "1"},
		Task:       Task{Driver: DriverDocker, Hooks: []Hook{{}}, Command: "python　train.py *.txt; sleep  infinity", Env: map[string]string{"NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "0"}},
		Algorithms: []DataRef{{}}, Datasets: []DataRef{{}}, Models: []DataRef{{}}, Volumes: []DataRef{{}}, Mounts: []Mount{{}}, Output: "o",
		Checkpoint: &Checkpoint{}, Debug: &Debug{}, SSH: true, Jupyter: true, Tensorboard: &Tensorboard{},
		TimeLimit: 1, ExpectedRuntime: 2,
	}
	lonely := smallJob()
	lonely.Nodes, lonely.Distributed.Mode, lonely.Task.Command = 2, ModeNone, "torchrun train.py"
	process := smallJob()
	process.Mounts, process.Resources[0].SharedMemory = []Mount{{}}, 1
	var b strings.Builder
	for _, p := range slices.Concat(full.NotAvailable(), process.NotAvailable(), full.Warnings(), lonely.Warnings()) {
		writeProblem(&b, messages.English, p)
	}
	golden.Assert(t, "testdata/not_available.txt", b.String())
}

// Variables that slow a training down, or that nodes know better, are warned of
// when they do so.
func TestWarningsOfEnvironment(t *testing.T) {
	for line, want := range map[string]string{
		"NCCL_DEBUG=INFO": "job.warn.env_debug", "NCCL_DEBUG=WARN": "",
		"NCCL_P2P_DISABLE=1": "job.warn.env_debug", "NCCL_P2P_DISABLE=0": "",
		"CUDA_LAUNCH_BLOCKING=1": "job.warn.env_debug", "CUDA_LAUNCH_BLOCKING=0": "",
		"PYTORCH_NO_CUDA_MEMORY_CACHING=1": "job.warn.env_debug", "PYTORCH_NO_CUDA_MEMORY_CACHING=": "",
		"NCCL_IB_DISABLE=1": "job.warn.env_platform", "NCCL_IB_DISABLE=0": "",
		"NCCL_SOCKET_IFNAME=eth9": "job.warn.env_platform", "NCCL_ALGO=Ring": "",
	} {
		name, value, _ := strings.Cut(line, "=")
		j := smallJob()
		j.Task.Env = map[string]string{name: value}
		got := ""
		for _, p := range j.Warnings() {
			got += p.ID
		}
		if got != want {
			t.Errorf("%s: warned of %q, want %q", line, got, want)
		}
	}
}

// A block that starts nothing again is warned of, whichever it is.
func TestWarningsOfNoRestarts(t *testing.T) {
	for restarts, want := range map[int]int{0: 1, 1: 0} {
		j, k := smallJob(), smallJob()
		j.Restart, k.Checkpoint = &Restart{MaxRestarts: restarts}, &Checkpoint{MaxResumes: restarts}
		for _, job := range []*Job{j, k} {
			job.SetDefaults()
			if problems := job.Warnings(); len(problems) != want {
				t.Errorf("%d restarts: %v", restarts, problems)
			}
		}
	}
}

// A mount takes no place at which the task finds what else the job names.
func TestMountsBesideWorkspace(t *testing.T) {
	j := smallJob()
	j.Algorithms = []DataRef{{Name: "a"}}
	j.Datasets = []DataRef{{Name: "d", ReadOnly: true, Annotations: true}, {Name: "f", From: FromFavorite, Version: 3, ReadOnly: true}}
	j.Models = []DataRef{{Name: "m", From: FromPretrained, ReadOnly: true}}
	j.Volumes, j.Output = []DataRef{{Name: "v"}}, "o"
	for target, taken := range map[string]bool{
		"/workspace/algorithm": true, "/workspace/dataset/private/d": true, "/workspace/anno_dataset/d/annotation": true,
		"/workspace/dataset/favorite/f/3": true, "/workspace/model/pretrained/m": true, "/workspace/volume/v/": true, "/workspace/outputs": true,
		"/workspace/dataset/private/e": false, "/workspace/dataset/favorite/f/2": false, "/workspace/outputs/inside": false, "/mnt": false,
	} {
		j.Mounts = []Mount{{Target: target, Source: "/nas"}}
		if problems := j.Validate(); (len(problems) != 0) != taken {
			t.Errorf("a mount at %s: %v", target, problems)
		}
	}
}

// An interpreter by its path is never put under a launcher, so it may run code
// of the command line on several nodes.
func TestInlineScriptByPath(t *testing.T) {
	j := smallJob()
	j.Nodes, j.Distributed.Mode, j.Task.Command = 2, ModePyTorch, `/usr/bin/python3 -c "print(1)"`
	j.SetDefaults()
	if problems := j.Validate(); len(problems) != 0 {
		t.Errorf("it is refused: %v", problems)
	}
}

func TestInvalidJob(t *testing.T) {
	if InvalidJob(CodeInvalid, nil) != nil {
		t.Error("no problems made an error")
	}
	j := smallJob()
	j.Nodes, j.Priority = 0, "normla"
	e := InvalidJob(CodeInvalid, j.Validate())
	if e.ID != "job.invalid" || e.Params["count"] != "2" || len(e.Details) != 2 || e.Details[0].Params["hint_id"] != "job.nearest.hint" {
		t.Errorf("error: %+v", e)
	}
}

// TestEveryTextIsChecked puts bytes that no text may hold into each string of
// a job, one at a time: stored state must always be readable again.
func TestEveryTextIsChecked(t *testing.T) {
	for _, bad := range []string{"\xff", "a\x00b"} {
		for path := range textsOf(full(t)) {
			j := full(t)
			*textsOf(j)[path] = bad
			if len(j.Validate()) == 0 {
				t.Errorf("%s = %q was not refused", path, bad)
			}
		}
	}
}

func full(t *testing.T) *Job {
	t.Helper()
	j := smallJob()
	j.Category, j.Description = "debug", "d"
	j.Resources[0] = Resources{
		Label: "a", CPU: 1, Memory: GiB, Ports: []PortRequest{{Name: "http"}},
		Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A800", IDs: []string{"0"}}},
	}
	j.Placement.Nodes = []string{"a"}
	j.Task = Task{
		Driver: DriverDocker, Image: "debian", Pull: PullAlways, Command: "true", Dir: "/a", User: "li",
		Hooks: []Hook{{When: "prestop", Command: "true"}},
	}
	j.Algorithms, j.Datasets, j.Models, j.Volumes = []DataRef{{Name: "a"}}, []DataRef{{Name: "a"}}, []DataRef{{Name: "a"}}, []DataRef{{Name: "a"}}
	j.Mounts, j.Output = []Mount{{Target: "/a", Source: "/b"}}, "o"
	j.Checkpoint = &Checkpoint{Signal: "SIGUSR1", Performance: &Performance{Threshold: 1, Action: "alert", Compare: "gt", Times: 1, Pattern: `a=(\d+)`}}
	j.Hang = &Hang{Action: "alert", Factor: 2, Least: HangLeastDefault, Most: HangMostDefault, Pattern: `s=(\d+)`}
	j.Tensorboard = &Tensorboard{LogDir: "/tb"}
	if problems := j.Validate(); len(problems) != 0 {
		t.Fatalf("the full job is not valid: %v", problems)
	}
	return j
}

// textsOf finds every string field of a job by its Go path, those that
// admission writes aside.
func textsOf(j *Job) map[string]*string {
	found := make(map[string]*string)
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			p := v.Addr().Convert(reflect.TypeFor[*string]()).Interface().(*string)
			found[path] = p
		case reflect.Pointer:
			if !v.IsNil() {
				visit(path, v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		}
	}
	visit("Job", reflect.ValueOf(j))
	delete(found, "Job.ID")
	delete(found, "Job.User")
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func writeProblem(b *strings.Builder, language messages.Language, p Problem) {
	fmt.Fprintf(b, "  %s\n    %s\n", p.Path, messages.Text(language, p.ID, p.Params))
	if p.HintID != "" {
		fmt.Fprintf(b, "    -> %s\n", messages.Text(language, p.HintID, p.Params))
	}
}
