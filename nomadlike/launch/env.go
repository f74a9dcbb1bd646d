package launch

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// rankNamesMax bounds NOMADLIKE_RANK_NAMES: the kernel refuses to start a
// program with a variable of more than 128 KiB. The hosts file has them all.
const rankNamesMax = 64 << 10 // bytes

// environment is what a task will see, with a memory of who set what.
type environment struct {
	values   map[string]string
	users    map[string]string // what the user set; nil while that is nothing
	replaced []string          // of those, what launch had to set otherwise
	unknown  map[string]string // of those, which name a variable that nobody knows, and it
}

func newEnvironment() *environment {
	const usual = 56 // variables of a rank, as many as 64 slots hold: more grow the map, one step at a time
	return &environment{values: make(map[string]string, usual)}
}

// user takes variables of the job file; later ones replace earlier ones.
func (e *environment) user(vars map[string]string) {
	if e.users == nil && len(vars) > 0 {
		e.users = make(map[string]string, len(vars))
	}
	for name, value := range vars {
		e.values[name], e.users[name] = value, value
	}
}

// illegal names a variable that no process can receive, "" when there is none.
func (e *environment) illegal() string {
	var names []string
	for name, value := range e.users {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// set sets a variable that the mode depends on: it wins over the user's.
func (e *environment) set(name, value string) {
	if mine, ok := e.users[name]; ok && mine != value && !slices.Contains(e.replaced, name) {
		e.replaced = append(e.replaced, name)
	}
	e.values[name] = value
}

// unset takes back what set gave.
func (e *environment) unset(name string) {
	delete(e.values, name)
	if mine, ok := e.users[name]; ok {
		e.values[name] = mine
		e.replaced = slices.DeleteFunc(e.replaced, func(replaced string) bool { return replaced == name })
	}
}

// suggest sets a variable that the user may set otherwise.
func (e *environment) suggest(name, value string) {
	if _, ok := e.users[name]; !ok && value != "" {
		e.values[name] = value
	}
}

// BaseNames are the variables of a person's shell that every task has.
var BaseNames = []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"}

// Directories of a task, below its own.
const (
	LocalDir   = "local"   // for what it need not keep
	SecretsDir = "secrets" // that nobody but the task may read
	CodeDir    = "code"    // the code that came with its job
)

// CodeView is where tasks with a view of their own see CodeDir, on every node.
const CodeView = "/workspace/" + CodeDir

const envCodeDir = "NOMADLIKE_CODE_DIR"

// settle resolves the user's values that name variables, by what the mode has set
// so far, and puts the base below everything.
func (b *build) settle() {
	e, node := b.env, &b.node
	if node.Image {
		b.out.Base = node.Base
	} else {
		for name, value := range node.Base {
			if _, ok := e.values[name]; !ok {
				e.values[name] = value
			}
		}
	}
	raw := make(map[string]string)
	for name, value := range e.users {
		if structs.NamesVariables(value) && !slices.Contains(e.replaced, name) {
			raw[name] = value
		}
	}
	if len(raw) == 0 {
		return
	}
	values, unknown := structs.ExpandEnv(raw, func(name string) (string, bool) {
		if _, mine := raw[name]; mine || e.values[name] == "" {
			value, ok := node.Base[name]
			return value, ok && !node.Image
		}
		return e.values[name], true
	})
	b.out.Named, e.unknown = nil, nil
	for name, value := range values {
		switch {
		case node.Image: // its driver reads the whole, by the same rule
			b.out.Named = append(b.out.Named, name)
			e.values[name] = raw[name]
		default:
			e.values[name] = value
		}
	}
	slices.Sort(b.out.Named)
	if !node.Image {
		e.unknown = unknown
	}
}

// notes says which of the user's variables were replaced, by name.
func (e *environment) notes() []structs.Reason {
	slices.Sort(e.replaced)
	var notes []structs.Reason
	for _, name := range e.replaced {
		notes = append(notes, *structs.NewReason("launch.env_reserved", "name", name, "value", e.users[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(e.unknown)) {
		notes = append(notes, *structs.NewReason("launch.env_unknown", "name", name, "unknown", e.unknown[name]))
	}
	return notes
}

// common sets what every mode has.
func (b *build) common() {
	e, a := b.env, b.alloc
	// Whatever trains by NCCL meets its peers where the ranks do, in any mode.
	e.suggest("NCCL_SOCKET_IFNAME", b.node.Interface)
	for name, value := range b.node.Defaults {
		e.suggest(name, value)
	}
	e.set("NOMADLIKE_JOB_ID", b.job.ID)
	if b.job.Number > 0 { // of protocol 52 and later
		e.set("NOMADLIKE_JOB_NUMBER", strconv.FormatUint(b.job.Number, 10))
	}
	e.set("NOMADLIKE_JOB_NAME", b.job.Name)
	e.set("NOMADLIKE_PROJECT", b.job.Project)
	e.set("NOMADLIKE_ATTEMPT", strconv.FormatUint(a.Attempt, 10))
	e.set("NOMADLIKE_RESTARTS", strconv.FormatUint(max(a.Attempt, 1)-1, 10))
	e.set("NOMADLIKE_SUBJOB_INDEX", strconv.Itoa(a.Subjob))
	e.set("NOMADLIKE_SUBJOB_COUNT", strconv.Itoa(b.job.SubjobCount()))
	e.set("NOMADLIKE_ALLOC_ID", a.ID)
	e.set("NOMADLIKE_RANK", strconv.Itoa(b.rank))
	e.set("NOMADLIKE_RANK_NAME", b.members[b.rank].Name)
	e.set("NOMADLIKE_NODES", strconv.Itoa(b.workers))
	e.set("NOMADLIKE_PROCS", strconv.Itoa(b.workers*b.slots))
	e.set("NOMADLIKE_NODE_NAME", b.members[b.rank].NodeName)
	e.set("NOMADLIKE_TASK_DIR", b.node.TaskDir)
	if saved := a.Resume; saved != nil {
		e.set("NOMADLIKE_CHECKPOINT", saved.Path)
		e.set("NOMADLIKE_CHECKPOINT_STEP", strconv.FormatInt(saved.Step, 10))
	}
	if len(a.Devices) > 0 {
		e.set("NOMADLIKE_DEVICES", strings.Join(a.Devices, ","))
	}
	if b.node.LocalDir != "" {
		e.set("NOMADLIKE_LOCAL_DIR", b.node.LocalDir)
	}
	if b.node.SecretsDir != "" {
		e.set("NOMADLIKE_SECRETS_DIR", b.node.SecretsDir)
	}
	if b.node.CodeDir != "" {
		e.set(envCodeDir, b.node.CodeDir)
	}
	if params, ok := b.job.Task.Env[structs.EnvParams]; ok {
		b.out.Files = append(b.out.Files, File{Path: ParamsFile, Mode: 0o644, Content: params + "\n"})
		e.set("NOMADLIKE_PARAMS_FILE", path.Join(b.node.TaskDir, ParamsFile))
	}
	if b.job.Batch != nil && a.Subjob >= 0 && a.Subjob < len(b.job.Batch.Subtasks) {
		e.set("NOMADLIKE_SUBJOB_NAME", b.job.Batch.Subtasks[a.Subjob].Name)
	}
	b.rankNames()
	for name, port := range a.Ports {
		// Names hold '-', which a shell does not take in a variable.
		e.set("NOMADLIKE_PORT_"+strings.ReplaceAll(name, "-", "_"), strconv.Itoa(port))
	}
	for name, value := range b.node.Env {
		e.set(name, value)
	}
}

func (b *build) rankNames() {
	if b.gang.names == "" {
		b.note("launch.rank_names_too_long", "nodes", len(b.members))
		return
	}
	b.env.set("NOMADLIKE_RANK_NAMES", b.gang.names)
}
