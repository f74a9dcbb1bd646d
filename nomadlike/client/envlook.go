package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/envcheck"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// This file looks at the environment of ranks by package envcheck: before the
// command is started, in a task like it, and while it runs.

// Bounds of a look.
const (
	envPatience     = 15 * time.Second
	envOutputMax    = 64 << 10
	envTableMax     = 1 << 20
	envFindingsMax  = 16 // told of one task
	envTableFile    = "environment.json"
	envCheckedNames = 64 // of peers
	masterPatience  = 3 * time.Second
	procDir         = "/proc"
)

// Variables that the script is told by. The first marks the check's own
// processes.
const (
	envNames     = "NOMADLIKE_CHECK_NAMES"
	envVariables = "NOMADLIKE_CHECK_VARIABLES"
)

// envTold is what was told of one task, so that it is told once.
type envTold struct {
	rules  map[string]bool
	common map[string]string // that all ranks should have; nil before the first look
	met    bool              // the port of rank 0 was reached, or will not be tried again
}

// look is one look at the environment of a task.
type look struct {
	client  *Client
	a       *structs.Assignment
	task    driver.TaskID
	unset   []string // variables that the command names and that were not given
	image   string   // that the task runs on
	runsFor time.Duration
	runs    bool // otherwise the command was not started yet
	told    *envTold
	tell    func(structs.Told)
}

// checkEnvironment looks at the environment of the task that runs.
func (w *watcher) checkEnvironment(ctx context.Context, a *structs.Assignment, state *patrolState) {
	l := look{client: w.client, a: a, task: alloc.TaskID(w.id), runs: true, runsFor: w.client.config.Now().Sub(state.begun), image: state.image, told: state.told, tell: w.say}
	l.take(ctx)
}

// foresee looks at what the command will see: in a task like its own, without
// the command. What is found changes nothing but the job's events.
func (c *Client) foresee(ctx context.Context, a *structs.Assignment, p *prepared, notes []structs.Reason) {
	d, ok := c.config.Drivers[a.Job.Task.Driver]
	if !ok || a.Job.Checkpoint == nil || !a.Job.Checkpoint.Precheck {
		return
	}
	id := a.Alloc.ID
	spec := p.spec
	spec.ID, spec.Command, spec.Hold, spec.LogDir = hookTaskID(id), nil, true, c.files.hookTaskLogs(id)
	c.setHookTask(spec.ID, true)
	defer c.setHookTask(spec.ID, false)
	if err := startHookTask(ctx, d, spec); err != nil {
		c.log.Warn("environment is not checked before the start", logkey.AllocID, id, logkey.Error, err)
		return
	}
	defer func() {
		if err := d.Destroy(context.WithoutCancel(ctx), spec.ID); err != nil {
			c.log.Warn("destroy task of environment check", logkey.TaskID, spec.ID, logkey.Error, err)
		}
	}()
	p.told = new(envTold)
	l := look{client: c, a: a, task: spec.ID, unset: unsetVariables(p.spec.Command, notes), image: p.image, told: p.told, tell: func(told structs.Told) {
		c.session.Note(structs.AllocNote{AllocID: id, Attempt: a.Alloc.Attempt, Seq: c.nextNote(), At: c.now(), Told: &told})
	}}
	l.take(ctx)
}

// unsetVariables are those that the command names and nobody sets; of a shell,
// those that its script wants from the environment, set or not.
func unsetVariables(command []string, notes []structs.Reason) []string {
	if len(command) > 0 && envcheck.IsShell(command[0]) {
		return envcheck.Wants(command)
	}
	var names []string
	for _, note := range notes {
		if note.ID == "launch.variable_unknown" {
			names = append(names, note.Params["name"])
		}
	}
	return names
}

// take looks once, and tells what the table makes of it, each rule once. What
// the task sees is told at the first look, and again when something has
// changed that all ranks should have in common.
func (l *look) take(ctx context.Context) {
	c := l.client
	table, err := c.envTable()
	if err != nil {
		c.log.Warn("environment of a task is not checked", logkey.TaskID, l.task, logkey.Error, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, envPatience)
	defer cancel()
	facts, err := l.facts(ctx)
	if err != nil {
		c.log.Debug("environment of a task is not checked", logkey.TaskID, l.task, logkey.Error, err) // it has no shell, or has ended
		return
	}
	common := table.Common(facts, structs.SeenMax-1)
	if l.image != "" {
		common[factImage] = l.image // what is told replaces what was
	}
	if l.told.common == nil || !maps.Equal(common, l.told.common) {
		l.told.common = common
		l.tell(structs.Told{Event: structs.EventEnvironment, Params: map[string]string{"seen": seen(facts)}, Seen: common})
	}
	for _, found := range table.Judge(facts) {
		if !l.told.rules[found.ID] && len(l.told.rules) < envFindingsMax {
			if l.told.rules == nil {
				l.told.rules = make(map[string]bool)
			}
			l.told.rules[found.ID] = true
			l.tell(structs.Told{
				Event: structs.EventEnvironmentFound, Severity: "warn",
				Params: map[string]string{"rule": found.ID, "text": found.Text, "text_zh": found.TextZh},
			})
		}
	}
}

// facts gathers what the task sees, what its processes have, and what the node
// sees of the port at which the ranks meet.
func (l *look) facts(ctx context.Context) (envcheck.Facts, error) {
	c := l.client
	d, ok := c.config.Drivers[l.a.Job.Task.Driver]
	if !ok {
		return nil, driver.ErrUnavailable
	}
	var names []string
	for _, member := range l.a.Members[:min(len(l.a.Members), envCheckedNames)] {
		names = append(names, member.Name)
	}
	var out cappedBuffer
	spec := driver.ExecSpec{
		Command: []string{"sh", "-c", envcheck.Script},
		Env:     []string{envNames + "=" + strings.Join(names, " "), envVariables + "=" + strings.Join(l.unset, " ")},
	}
	asked := c.config.Now()
	if _, err := d.Exec(ctx, l.task, spec, driver.Streams{Stdout: &out}); err != nil && (ctx.Err() == nil || out.String() == "") {
		return nil, err
	} // else: what it said until its time was up
	facts := envcheck.Parse(out.String())
	if at, err := strconv.ParseInt(facts["clock"], 10, 64); err == nil {
		facts["clock.skew"] = strconv.FormatInt(clockSkew(at, asked.Unix(), c.config.Now().Unix()), 10)
	}
	var processes []envcheck.Process
	if l.runs {
		processes = envcheck.Processes(procDir, "NOMADLIKE_ALLOC_ID="+l.a.Alloc.ID)
		facts.Compare(processes, envNames)
	}
	l.lookAtMaster(ctx, facts, processes)
	return facts, nil
}

// clockSkew is how far, in seconds, a clock that showed at some moment from asked
// to answered is ahead of the clock that showed these two. Negative means behind.
// However long the answer took, it is no skew.
func clockSkew(at, asked, answered int64) int64 {
	return at - min(max(at, asked), answered)
}

// lookAtMaster looks whether the ranks can meet. Tasks of gangs are in the
// network of their node, so what the node reaches they reach.
func (l *look) lookAtMaster(ctx context.Context, facts envcheck.Facts, processes []envcheck.Process) {
	port, err := strconv.Atoi(facts["env.MASTER_PORT"])
	if len(l.a.Members) < 2 || err != nil || port < 1 || port > structs.PortMax || facts["env.MASTER_ADDR"] == "" {
		return
	}
	if l.a.Alloc.Rank == 0 {
		if who, own := envcheck.Listener(procDir, port, processes); who != "" && !own {
			facts["master.foreign"] = fmt.Sprintf("port %d, %s", port, who)
		}
		return
	}
	if l.told.met {
		return
	}
	address := l.masterAddress(facts["env.MASTER_ADDR"])
	dialer := net.Dialer{Timeout: masterPatience, Control: firewall.Pass}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	shown := facts["env.MASTER_ADDR"] + ":" + strconv.Itoa(port)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		if l.runs {
			l.told.met = true
			break
		}
		facts["master.foreign"] = shown + " answers before rank 0 was started"
	case errors.Is(err, syscall.ECONNREFUSED): // it can be reached
		if l.runs {
			facts["master.refused.min"] = strconv.Itoa(int(l.runsFor / time.Minute))
		}
	default:
		var dns *net.DNSError
		if ctx.Err() == nil && !errors.As(err, &dns) { // whether the name resolves is for the task to say
			facts["master.unreachable"] = shown + " (" + plainCause(err) + ")"
		}
	}
}

// masterAddress gives the address behind a rank's name, which the node itself
// cannot resolve.
func (l *look) masterAddress(host string) string {
	host = strings.Trim(host, "[]")
	for i := range l.a.Members {
		if m := &l.a.Members[i]; m.Name == host {
			return cmp.Or(m.Addr, host)
		}
	}
	return host
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

// cappedBuffer keeps the beginning of what is written to it. It may be read while
// it is written: a driver that was told to give up may still have something.
type cappedBuffer struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write takes everything and keeps what fits.
func (b *cappedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept.Write(data[:min(len(data), max(envOutputMax-b.kept.Len(), 0))])
	return len(data), nil
}

// String is what was kept so far.
func (b *cappedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept.String()
}
