package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/store"
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
	stepHooks    = "hooks"
)

// hookPlan is what the hooks of an allocation need. It is kept in a file, since
// some run under a later agent than the one that prepared the allocation.
type hookPlan struct {
	Hooks []structs.Hook  `json:"hooks"`
	Spec  driver.TaskSpec `json:"spec"`
	Debug bool            `json:"debug,omitempty"` // it may be held when it has failed
}

func hookTaskID(id string) driver.TaskID { return driver.TaskID(id + hookSuffix) }

// keepHooks stores what hooks, and debug holds, will need; it holds the job's environment.
func (c *Client) keepHooks(id string, job *structs.Job, spec driver.TaskSpec) error {
	if len(job.Task.Hooks) == 0 && job.Debug == nil {
		return nil
	}
	data, err := json.Marshal(hookPlan{Hooks: job.Task.Hooks, Spec: spec, Debug: job.Debug != nil})
	if err != nil {
		return fmt.Errorf("keep hooks: %w", err)
	}
	return store.WriteFile(c.files.hookPlan(id), data, 0o600, false)
}

// hooksOf reads the hooks of one moment; without any there is nothing to do.
func (c *Client) hooksOf(id, when string) (hookPlan, bool) {
	data, err := os.ReadFile(c.files.hookPlan(id))
	if errors.Is(err, fs.ErrNotExist) {
		return hookPlan{}, false
	}
	var plan hookPlan
	if err == nil {
		err = json.Unmarshal(data, &plan)
	}
	if err != nil {
		c.log.Warn("hooks cannot be read", logkey.AllocID, id, logkey.Error, err)
		return hookPlan{}, false
	}
	plan.Hooks = slices.DeleteFunc(plan.Hooks, func(h structs.Hook) bool { return h.When != when })
	return plan, len(plan.Hooks) > 0
}

// hooksAround runs the hooks of a moment at which no command runs. The first
// that fails is the last. env is added to what the command has.
func (c *Client) hooksAround(ctx context.Context, d driver.Driver, id, when string, env []string) *structs.Error {
	plan, ok := c.hooksOf(id, when)
	if !ok {
		return nil
	}
	spec := plan.Spec
	spec.ID, spec.Command, spec.Hold, spec.LogDir = hookTaskID(id), nil, true, c.files.hookTaskLogs(id)
	c.setHookTask(spec.ID, true)
	defer c.setHookTask(spec.ID, false)
	if err := startHookTask(ctx, d, spec); err != nil {
		var told *structs.Error
		if errors.As(err, &told) {
			return told
		}
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", when, "cause", err)
	}
	defer func() {
		if err := d.Destroy(context.WithoutCancel(ctx), spec.ID); err != nil {
			c.log.Warn("destroy task of hooks", logkey.TaskID, spec.ID, logkey.Error, err)
		}
	}()
	return c.runHooks(ctx, d, spec, plan.Hooks, env)
}

// startHookTask starts the task for hooks; one of an earlier agent is being
// destroyed, which may take a moment.
func startHookTask(ctx context.Context, d driver.Driver, spec driver.TaskSpec) error {
	ctx, cancel := context.WithTimeout(ctx, hookStartPatience)
	defer cancel()
	for {
		_, err := d.Start(context.WithoutCancel(ctx), spec)
		if !errors.Is(err, driver.ErrTaskExists) || !sleep(ctx, driverRetryFirst) {
			return err
		}
	}
}

// hooksBeside runs the hooks of a moment in the running task. What fails is
// told and changes nothing.
func (c *Client) hooksBeside(ctx context.Context, d driver.Driver, id, when string) {
	if plan, ok := c.hooksOf(id, when); ok {
		_ = c.runHooks(ctx, d, plan.Spec, plan.Hooks, nil) // told already
	}
}

// runHooks runs hooks in the task of spec one after the other, each within its
// own time.
func (c *Client) runHooks(ctx context.Context, d driver.Driver, spec driver.TaskSpec, hooks []structs.Hook, env []string) *structs.Error {
	out, err := c.openHookLog(spec.AllocID)
	if err != nil {
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", hooks[0].When, "cause", err)
	}
	defer out.close()
	for _, hook := range hooks {
		begun := c.config.Now()
		failure := runHook(ctx, d, spec.ID, &hook, env, out)
		took := c.config.Now().Sub(begun).Round(time.Millisecond)
		told := structs.Told{Event: structs.EventHookDone, Params: map[string]string{
			"when": hook.When, "command": short(hook.Command), "took": took.String(),
		}}
		if failure != nil {
			told.Event, told.Severity = structs.EventHookFailed, "warn"
			told.Params["code"] = cmp.Or(failure.Params["code"], "-")
			told.Params["output"] = cmp.Or(failure.Params["output"], failure.Params["cause"], "> "+failure.Params["timeout"])
		}
		if ctx.Err() == nil {
			c.tell(spec.AllocID, spec.Attempt, told)
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// runHook runs one hook and tells why it failed.
func runHook(ctx context.Context, d driver.Driver, task driver.TaskID, hook *structs.Hook, env []string, out *hookLog) *structs.Error {
	timeout := hook.Timeout
	if timeout <= 0 {
		timeout = structs.HookTimeoutDefault
	}
	words, err := structs.SplitCommand(hook.Command)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "client.hook_not_run", "when", hook.When, "cause", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout.Std())
	defer cancel()
	out.say("[nomadlike: hook " + hook.When + ": " + short(hook.Command) + "]\n")
	result, err := d.Exec(limited, task, driver.ExecSpec{Command: words, Env: env}, driver.Streams{Stdout: out, Stderr: out})
	var start *driver.StartError
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		out.say("[nomadlike: killed after " + structs.FormatDuration(timeout) + "]\n")
		return structs.NewError(structs.CodeTimeout, "client.hook_timeout", "when", hook.When, "command", short(hook.Command), "timeout", structs.FormatDuration(timeout))
	case errors.As(err, &start):
		return structs.NewError(structs.CodeInvalid, "client.hook_failed", "when", hook.When, "command", short(hook.Command),
			"code", start.ExitCode, "output", start.Err)
	case err != nil:
		return structs.NewError(structs.CodeUnavailable, "client.hook_not_run", "when", hook.When, "cause", err)
	case !result.Successful():
		return structs.NewError(structs.CodeInvalid, "client.hook_failed", "when", hook.When, "command", short(hook.Command),
			"code", result.Code, "output", out.lastLine())
	}
	return nil
}

// tell makes an event of an allocation known.
func (c *Client) tell(id string, attempt uint64, told structs.Told) {
	c.session.Note(structs.AllocNote{AllocID: id, Attempt: attempt, Seq: c.nextNote(), At: c.now(), Told: &told})
}

// short is the beginning of a command, for messages.
func short(command string) string {
	if len(command) > hookTailMax {
		return strings.ToValidUTF8(command[:hookTailMax], "") + "…"
	}
	return command
}

// after runs the hooks that follow the command, unless the task was killed: then
// nobody has the time. The result is the command's own.
func (c *Client) after(work context.Context, r *runner, d driver.Driver, result driver.ExitResult) {
	if _, ok := c.hooksOf(r.id, structs.HookPoststop); !ok {
		return
	}
	killed := false
	if err := c.ask(work, func() {
		state, ok := c.loop.table.State(r.id)
		killed = !ok || state.Force == alloc.ForceKill
	}); err != nil || killed {
		return
	}
	env := []string{"NOMADLIKE_EXIT_CODE=" + strconv.Itoa(result.Code), "NOMADLIKE_EXIT_SIGNAL=" + result.Signal}
	if failure := c.hooksAround(work, d, r.id, structs.HookPoststop, env); failure != nil {
		c.log.Warn("hook after the end", logkey.AllocID, r.id, logkey.Error, failure)
	}
}

// setHookTask remembers which tasks of hooks are this agent's own, so that they
// are not taken for strays.
func (c *Client) setHookTask(id driver.TaskID, runs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.hookTasks == nil {
		c.mu.hookTasks = make(map[driver.TaskID]bool)
	}
	if runs {
		c.mu.hookTasks[id] = true
	} else {
		delete(c.mu.hookTasks, id)
	}
}

func (c *Client) ownHookTask(id driver.TaskID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.hookTasks[id]
}

// hookLog is where the output of an allocation's hooks goes. The driver writes
// from several goroutines.
type hookLog struct {
	mu struct {
		sync.Mutex
		writer *tasklog.Writer
		tail   []byte // the end of what the present hook wrote
	}
	dir *os.File
}

func (c *Client) openHookLog(id string) (*hookLog, error) {
	dir, fresh, err := tasklog.PrepareDir(c.files.hookLogs(id))
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
	return log, nil
}

// Write takes output of a hook.
func (l *hookLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	l.mu.tail = nil
	_, _ = l.mu.writer.Write([]byte(line)) // it never fails
}

// lastLine is the last line of the present hook's output.
func (l *hookLog) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.mu.tail)), "\n")
	return strings.ToValidUTF8(short(lines[len(lines)-1]), "")
}

func (l *hookLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.mu.writer.Close() // what could not be written was counted
	l.dir.Close()
}
