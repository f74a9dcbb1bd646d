package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

// This file runs the lifecycle scripts of jobs. Beside the command they run in
// its task, before and after it in a task of the same kind that holds its place
// without a command: so a script sees what the command sees. What they write is
// kept apart from the command's own output.

const (
	// hookSuffix names the task in which hooks run while there is no command. A
	// new agent that finds one destroys it: it was part of something unfinished.
	hookSuffix = ".hook"
	// hookStartPatience bounds the wait for such a task of an earlier agent to go.
	hookStartPatience = 10 * time.Second
	// hookLogFiles and hookLogBytes bound what hooks may write.
	hookLogFiles = 4
	hookLogBytes = 1 << 20
	hookTailMax  = 200 // bytes of the last line, for messages
)

// Hooks runs the lifecycle scripts of allocations. Any goroutine may use it.
type Hooks struct {
	layout  layout.Layout
	notes   session.Teller
	secrets *secrets.Keeper
	now     func() time.Time
	log     *slog.Logger

	mu struct {
		sync.Mutex
		own map[driver.TaskID]bool // tasks without a command that this agent has made
	}
}

// New makes hooks of which none runs.
func New(layout layout.Layout, notes session.Teller, given *secrets.Keeper, now func() time.Time, log *slog.Logger) *Hooks {
	h := &Hooks{layout: layout, notes: notes, secrets: given, now: now, log: log}
	h.mu.own = make(map[driver.TaskID]bool)
	return h
}

// HookPlan is what the hooks of an allocation need. It is kept in a file, since
// some run under a later agent than the one that prepared the allocation.
type hookPlan struct {
	Hooks []structs.Hook  `json:"hooks"`
	Spec  driver.TaskSpec `json:"spec"`
}

func hookTaskID(id string) driver.TaskID { return driver.TaskID(id + hookSuffix) }

// Record stores what the hooks of an allocation will need; it holds the job's environment.
func (h *Hooks) Record(id string, job *structs.Job, spec driver.TaskSpec) error {
	if len(job.Task.Hooks) == 0 {
		return nil
	}
	data, err := json.Marshal(hookPlan{Hooks: job.Task.Hooks, Spec: spec})
	if err != nil {
		return fmt.Errorf("keep hooks: %w", err)
	}
	return store.WriteFile(h.layout.HookPlan(id), data, 0o600, false)
}

// plan reads the hooks of one moment; without any there is nothing to do.
func (h *Hooks) plan(id, when string) (hookPlan, bool) {
	data, err := os.ReadFile(h.layout.HookPlan(id))
	if errors.Is(err, fs.ErrNotExist) {
		return hookPlan{}, false
	}
	var plan hookPlan
	if err == nil {
		err = json.Unmarshal(data, &plan)
	}
	if err != nil {
		h.log.Warn("hooks cannot be read", logkey.AllocID, id, logkey.Error, err)
		return hookPlan{}, false
	}
	plan.Hooks = slices.DeleteFunc(plan.Hooks, func(hook structs.Hook) bool { return hook.When != when })
	return plan, len(plan.Hooks) > 0
}

// Around runs the hooks of a moment at which no command runs. The first
// that fails is the last. env is added to what the command has.
func (h *Hooks) Around(ctx context.Context, d driver.Driver, id, when string, env []string) *structs.Error {
	plan, ok := h.plan(id, when)
	if !ok {
		return nil
	}
	task, end, err := h.Stand(ctx, d, plan.Spec)
	if err != nil {
		var told *structs.Error
		if errors.As(err, &told) {
			return told
		}
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", when, "cause", err)
	}
	defer end()
	spec := plan.Spec
	spec.ID = task
	return h.run(ctx, d, spec, plan.Hooks, env)
}

// Stand starts a task that holds the place of one without its command, so that what
// runs in it sees what the command sees. end destroys it.
func (h *Hooks) Stand(ctx context.Context, d driver.Driver, spec driver.TaskSpec) (task driver.TaskID, end func(), err error) {
	spec.Env = h.secrets.Added(ctx, spec.AllocID, spec.Secrets, spec.Env)
	spec.ID, spec.Command, spec.Hold, spec.LogDir = hookTaskID(spec.AllocID), nil, true, h.layout.HookTaskLogs(spec.AllocID)
	h.SetOwn(spec.ID, true)
	if err := startHookTask(ctx, d, spec); err != nil {
		h.SetOwn(spec.ID, false)
		return "", nil, err
	}
	return spec.ID, func() {
		if err := d.Destroy(context.WithoutCancel(ctx), spec.ID); err != nil {
			h.log.Warn("destroy task without a command", logkey.TaskID, spec.ID, logkey.Error, err)
		}
		h.SetOwn(spec.ID, false)
	}, nil
}

// Kill ends what hooks of an allocation run now.
func (h *Hooks) Kill(ctx context.Context, d driver.Driver, id string) {
	if !h.Own(hookTaskID(id)) {
		return
	}
	if err := d.Destroy(ctx, hookTaskID(id)); err != nil {
		h.log.Warn("destroy task of hooks", logkey.AllocID, id, logkey.Error, err)
	}
}

// startHookTask starts the task for hooks; one of an earlier agent is being
// destroyed, which may take a moment.
func startHookTask(ctx context.Context, d driver.Driver, spec driver.TaskSpec) error {
	ctx, cancel := context.WithTimeout(ctx, hookStartPatience)
	defer cancel()
	for {
		_, err := d.Start(context.WithoutCancel(ctx), spec)
		if !errors.Is(err, driver.ErrTaskExists) || !retry.Sleep(ctx, retry.First) {
			return err
		}
	}
}

// Beside runs the hooks of a moment in the running task. What fails is
// told and changes nothing.
func (h *Hooks) Beside(ctx context.Context, d driver.Driver, id, when string) {
	if plan, ok := h.plan(id, when); ok {
		_ = h.run(ctx, d, plan.Spec, plan.Hooks, nil) // told already
	}
}

// Run runs hooks in the task of spec one after the other, each within its
// own time.
func (h *Hooks) run(ctx context.Context, d driver.Driver, spec driver.TaskSpec, hooks []structs.Hook, env []string) *structs.Error {
	out, err := h.openLog(spec.AllocID, h.secrets.Masks(ctx, spec.AllocID, spec.Secrets))
	if err != nil {
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", hooks[0].When, "cause", err)
	}
	defer out.close()
	for _, hook := range hooks {
		begun := h.now()
		failure := runHook(ctx, d, spec.ID, &hook, env, out)
		took := h.now().Sub(begun).Round(time.Millisecond)
		told := structs.Told{Event: structs.EventHookDone, Params: map[string]string{
			"when": hook.When, "command": words.Short(hook.Command), "took": took.String(),
		}}
		if failure != nil {
			told.Event, told.Severity = structs.EventHookFailed, "warn"
			told.Params["code"] = cmp.Or(failure.Params["code"], "-")
			told.Params["output"] = cmp.Or(failure.Params["output"], failure.Params["cause"], "> "+failure.Params["timeout"])
		}
		if ctx.Err() == nil {
			h.notes.Tell(spec.AllocID, spec.Attempt, told)
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// runHook runs one hook and reports why it failed.
func runHook(ctx context.Context, d driver.Driver, task driver.TaskID, hook *structs.Hook, env []string, out *hookLog) *structs.Error {
	timeout := hook.Timeout
	if timeout <= 0 {
		timeout = structs.HookTimeoutDefault
	}
	command, err := structs.SplitCommand(hook.Command)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "client.hook_not_run", "when", hook.When, "cause", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout.Std())
	defer cancel()
	out.say("[nomadlike: hook " + hook.When + ": " + words.Short(hook.Command) + "]\n")
	result, err := d.Exec(limited, task, driver.ExecSpec{Command: command, Env: env}, driver.Streams{Stdout: out, Stderr: out})
	var start *driver.StartError
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		out.say("[nomadlike: killed after " + structs.FormatDuration(timeout) + "]\n")
		return structs.NewError(structs.CodeTimeout, "client.hook_timeout", "when", hook.When, "command", words.Short(hook.Command), "timeout", structs.FormatDuration(timeout))
	case errors.As(err, &start):
		return structs.NewError(structs.CodeInvalid, "client.hook_failed", "when", hook.When, "command", words.Short(hook.Command),
			"code", start.ExitCode, "output", start.Err)
	case err != nil:
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", hook.When, "cause", err)
	case !result.Successful():
		return structs.NewError(structs.CodeInvalid, "client.hook_failed", "when", hook.When, "command", words.Short(hook.Command),
			"code", result.Code, "output", out.lastLine())
	}
	return nil
}

// After runs the hooks that follow a command with its result.
func (h *Hooks) After(ctx context.Context, d driver.Driver, id string, result driver.ExitResult) {
	env := []string{"NOMADLIKE_EXIT_CODE=" + strconv.Itoa(result.Code), "NOMADLIKE_EXIT_SIGNAL=" + result.Signal}
	if failure := h.Around(ctx, d, id, structs.HookPoststop, env); failure != nil {
		h.log.Warn("hook after the end", logkey.AllocID, id, logkey.Error, failure)
	}
}

// Follow reports whether an allocation has hooks that follow its command.
func (h *Hooks) Follow(id string) bool {
	_, ok := h.plan(id, structs.HookPoststop)
	return ok
}

// SetOwn remembers which tasks without a command are this agent's own, so that they
// are not taken for strays.
func (h *Hooks) SetOwn(id driver.TaskID, runs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if runs {
		h.mu.own[id] = true
	} else {
		delete(h.mu.own, id)
	}
}

// Own reports whether a task without a command is this agent's own.
func (h *Hooks) Own(id driver.TaskID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.own[id]
}

// hookLog is where the output of an allocation's hooks goes. The driver writes
// from several goroutines.
type hookLog struct {
	mu struct {
		sync.Mutex
		writer *tasklog.Writer
		masker *tasklog.Masker // nil: there is nothing to mask
		tail   []byte          // the end of what the present hook wrote
	}
	dir *os.File
}

func (h *Hooks) openLog(id string, masks []structs.Mask) (*hookLog, error) {
	dir, fresh, err := tasklog.PrepareDir(h.layout.HookLogs(id))
	if err != nil {
		return nil, err
	}
	writer, err := tasklog.NewWriter(dir, fresh, tasklog.Stdout, hookLogFiles, hookLogBytes)
	if err != nil {
		dir.Close()
		return nil, err
	}
	log := &hookLog{dir: dir}
	log.mu.writer = writer
	var texts []tasklog.Masked
	for _, mask := range masks {
		texts = append(texts, tasklog.Masked{Name: mask.Name, Text: mask.Text})
	}
	log.mu.masker = tasklog.NewMasker(writerFunc(log.writeLocked), texts)
	return log, nil
}

// writerFunc is a function that writes.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

// Write takes output of a hook.
func (l *hookLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.masker != nil {
		return l.mu.masker.Write(data)
	}
	return l.writeLocked(data)
}

func (l *hookLog) writeLocked(data []byte) (int, error) {
	l.mu.tail = append(l.mu.tail, data...)
	if over := len(l.mu.tail) - 2*hookTailMax; over > 0 {
		l.mu.tail = slices.Delete(l.mu.tail, 0, over)
	}
	return l.mu.writer.Write(data)
}

// say writes a line of the agent's own, and forgets what an earlier hook wrote.
func (l *hookLog) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
	l.mu.tail = nil
	_, _ = l.mu.writer.Write([]byte(line)) // it never fails
}

// flushLocked writes what masking has held back.
func (l *hookLog) flushLocked() {
	if l.mu.masker != nil {
		_ = l.mu.masker.Close() // it never fails
	}
}

// lastLine is the last line of the present hook's output.
func (l *hookLog) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
	lines := strings.Split(strings.TrimSpace(string(l.mu.tail)), "\n")
	return strings.ToValidUTF8(words.Short(lines[len(lines)-1]), "")
}

func (l *hookLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
	_ = l.mu.writer.Close() // what could not be written was counted
	l.dir.Close()
}
