package client

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/envcheck"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// The rhythm of the patrol over a task of a job that wants prechecks, and its
// bounds.
const (
	patrolFirst     = time.Second // after the start of the command
	patrolEvery     = time.Minute
	patrolStrikes   = 2 // looks in a row that find the network of a gang unwell until it is left
	envPatience     = 15 * time.Second
	envOutputMax    = 64 << 10
	envTableMax     = 1 << 20
	envFindingsMax  = 16 // told of one task
	envTableFile    = "environment.json"
	envCheckedNames = 64 // of peers
)

// patrolState is what a patrol remembers from look to look.
type patrolState struct {
	told    map[string]bool // rules
	unfit   string          // what was told of the node, "" for nothing
	strikes int
}

// patrol looks again and again at what the task sees and at its node, until ctx
// ends. What is new is told in the events of the job; a gang leaves a node whose
// network is not well.
func (w *watcher) patrol(ctx context.Context) {
	state := patrolState{told: make(map[string]bool)}
	for first, wait := true, patrolFirst; sleep(ctx, wait); first, wait = false, patrolEvery {
		a := w.runner.assigned.Load()
		if a == nil || a.Job == nil || a.Alloc.Control.Holds() {
			continue
		}
		w.checkEnvironment(ctx, a, &state, first)
		w.checkNode(a, &state)
	}
}

// checkNode looks whether the node is still fit.
func (w *watcher) checkNode(a *structs.Assignment, state *patrolState) {
	_, found := w.client.fitness(a)
	switch {
	case found == nil:
		if state.unfit != "" {
			w.say(structs.Told{Event: structs.EventPatrolWell})
		}
		state.unfit, state.strikes = "", 0
		return
	case found.check != state.unfit:
		w.say(structs.Told{Event: structs.EventPatrolFailed, Severity: "warn", Params: map[string]string{"check": found.check, "cause": found.cause}})
		state.unfit, state.strikes = found.check, 0
	}
	state.strikes++
	if strings.HasPrefix(found.check, "network ") && state.strikes == patrolStrikes {
		w.client.leave(w.id, structs.NewReason("client.patrol", "device", found.check, "cause", found.cause), evictionOrder(a.Job))
	}
}

// leave takes an allocation away from this node, by the node's own fault.
func (c *Client) leave(id string, cause *structs.Reason, order *structs.StopOrder) {
	c.post(func() {
		if s, ok := c.loop.table.State(id); ok {
			c.tellEvicted(&s, cause)
			c.add(c.loop.table.Step(id, alloc.Evicted{Cause: cause, Stop: order}, c.now()))
		}
	})
}

func (w *watcher) say(told structs.Told) {
	w.tell(w.client.nextNote(), structs.AllocNote{Told: &told})
}

// checkEnvironment runs the script of package envcheck in the task, and tells
// what the table makes of it, each rule once. The first look tells what the task
// sees, too.
func (w *watcher) checkEnvironment(ctx context.Context, a *structs.Assignment, state *patrolState, first bool) {
	c := w.client
	d, ok := c.config.Drivers[a.Job.Task.Driver]
	if !ok {
		return
	}
	table, err := c.envTable()
	if err != nil {
		c.log.Warn("environment of a task is not checked", logkey.AllocID, w.id, logkey.Error, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, envPatience)
	defer cancel()
	var names []string
	for _, member := range a.Members[:min(len(a.Members), envCheckedNames)] {
		names = append(names, member.Name)
	}
	var out cappedBuffer
	spec := driver.ExecSpec{Command: []string{"sh", "-c", envcheck.Script}, Env: []string{"NOMADLIKE_CHECK_NAMES=" + strings.Join(names, " ")}}
	if _, err := d.Exec(ctx, alloc.TaskID(w.id), spec, driver.Streams{Stdout: &out}); err != nil {
		c.log.Debug("environment of a task is not checked", logkey.AllocID, w.id, logkey.Error, err) // it has no shell, or has ended
		return
	}
	facts := envcheck.Parse(out.String())
	if at, err := strconv.ParseInt(facts["clock"], 10, 64); err == nil {
		facts["clock.skew"] = strconv.FormatInt(at-c.config.Now().Unix(), 10)
	}
	if first {
		w.say(structs.Told{Event: structs.EventEnvironment, Params: map[string]string{"seen": seen(facts)}})
	}
	for _, found := range table.Judge(facts) {
		if !state.told[found.ID] && len(state.told) < envFindingsMax {
			state.told[found.ID] = true
			w.say(structs.Told{Event: structs.EventEnvironmentFound, Severity: "warn",
				Params: map[string]string{"rule": found.ID, "text": found.Text, "text_zh": found.TextZh}})
		}
	}
}

// seen lists facts for people.
func seen(facts envcheck.Facts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if value := facts[name]; value != "" && name != "clock" {
			parts = append(parts, name+"="+short(value))
		}
	}
	text := strings.Join(parts, ", ")
	return strings.ToValidUTF8(text[:min(len(text), structs.NoteParamMax)], "")
}

// envTable is the table of rules: the administrator's, in the node's data
// directory, or the one that is built in. It is read at every look, so that it
// may be edited.
func (c *Client) envTable() (*envcheck.Table, error) {
	path := filepath.Join(c.config.DataDir, envTableFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return envcheck.Load(nil)
	}
	if err == nil && info.Size() > envTableMax {
		err = errors.New("the table is too large")
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return envcheck.Load(data)
}

// cappedBuffer keeps the begin of what is written to it.
type cappedBuffer struct{ bytes.Buffer }

// Write takes everything and keeps what fits.
func (b *cappedBuffer) Write(data []byte) (int, error) {
	b.Buffer.Write(data[:min(len(data), max(envOutputMax-b.Len(), 0))])
	return len(data), nil
}
