package environment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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
	"nomadlike/nomadlike/client/envcheck"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/words"
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

// FactImage is the fact by which ranks of a gang are told to run on different
// images.
const FactImage = "image"

// Environment looks at what tasks see. Any goroutine may use it.
type Environment struct {
	Drivers map[string]driver.Driver
	DataDir string // in which the administrator's table of rules may lie
	Now     func() time.Time
	Log     *slog.Logger
}

// Told is what was told of one task, so that it is told once.
type Told struct {
	rules  map[string]bool
	common map[string]string // that all ranks should have; nil before the first look
	met    bool              // the port of rank 0 was reached, or will not be tried again
}

// Look is one look at the environment of a task.
type Look struct {
	Assignment *structs.Assignment
	Task       driver.TaskID
	Unset      []string // variables that the command names and that were not given
	Image      string   // that the task runs on
	RunsFor    time.Duration
	Runs       bool // otherwise the command was not started yet
	Told       *Told
	Tell       func(structs.Told)
}

// UnsetVariables are those that the command names and nobody sets; of a shell,
// those that its script wants from the environment, set or not.
func UnsetVariables(command []string, notes []structs.Reason) []string {
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

// Take looks once, and reports what the table makes of it, each rule once. What
// the task sees is told at the first look, and again when something has
// changed that all ranks should have in common.
func (e *Environment) Take(ctx context.Context, l *Look) {
	table, err := e.Table()
	if err != nil {
		e.Log.Warn("environment of a task is not checked", logkey.TaskID, l.Task, logkey.Error, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, envPatience)
	defer cancel()
	facts, err := e.facts(ctx, l)
	if err != nil {
		e.Log.Debug("environment of a task is not checked", logkey.TaskID, l.Task, logkey.Error, err) // it has no shell, or has ended
		return
	}
	common := table.Common(facts, structs.SeenMax-1)
	if l.Image != "" {
		common[FactImage] = l.Image // what is told replaces what was
	}
	if l.Told.common == nil || !maps.Equal(common, l.Told.common) {
		l.Told.common = common
		l.Tell(structs.Told{Event: structs.EventEnvironment, Params: map[string]string{"seen": Seen(facts)}, Seen: common})
	}
	for _, found := range table.Judge(facts) {
		if !l.Told.rules[found.ID] && len(l.Told.rules) < envFindingsMax {
			if l.Told.rules == nil {
				l.Told.rules = make(map[string]bool)
			}
			l.Told.rules[found.ID] = true
			l.Tell(structs.Told{
				Event: structs.EventEnvironmentFound, Severity: "warn",
				Params: map[string]string{"rule": found.ID, "text": found.Text, "text_zh": found.TextZh},
			})
		}
	}
}

// facts gathers what the task sees, what its processes have, and what the node
// sees of the port at which the ranks meet.
func (e *Environment) facts(ctx context.Context, l *Look) (envcheck.Facts, error) {
	d, ok := e.Drivers[l.Assignment.Job.Task.Driver]
	if !ok {
		return nil, driver.ErrUnavailable
	}
	var names []string
	for _, member := range l.Assignment.Members[:min(len(l.Assignment.Members), envCheckedNames)] {
		names = append(names, member.Name)
	}
	var out cappedBuffer
	spec := driver.ExecSpec{
		Command: []string{"sh", "-c", envcheck.Script},
		Env:     []string{envNames + "=" + strings.Join(names, " "), envVariables + "=" + strings.Join(l.Unset, " ")},
	}
	asked := e.Now()
	if _, err := d.Exec(ctx, l.Task, spec, driver.Streams{Stdout: &out}); err != nil && (ctx.Err() == nil || out.String() == "") {
		return nil, err
	} // else: what it said until its time was up
	facts := envcheck.Parse(out.String())
	secret := make(map[string]bool)
	for _, use := range l.Assignment.Job.Task.Secrets {
		secret[use.Var] = true
	}
	if at, err := strconv.ParseInt(facts["clock"], 10, 64); err == nil {
		facts["clock.skew"] = strconv.FormatInt(clockSkew(at, asked.Unix(), e.Now().Unix()), 10)
	}
	var processes []envcheck.Process
	if l.Runs {
		processes = envcheck.Processes(procDir, "NOMADLIKE_ALLOC_ID="+l.Assignment.Alloc.ID)
	}
	facts.Compare(processes, envNames, secret)
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
func (l *Look) lookAtMaster(ctx context.Context, facts envcheck.Facts, processes []envcheck.Process) {
	port, err := strconv.Atoi(facts["env.MASTER_PORT"])
	if len(l.Assignment.Members) < 2 || err != nil || port < 1 || port > structs.PortMax || facts["env.MASTER_ADDR"] == "" {
		return
	}
	if l.Assignment.Alloc.Rank == 0 {
		if who, own := envcheck.Listener(procDir, port, processes); who != "" && !own {
			facts["master.foreign"] = fmt.Sprintf("port %d, %s", port, who)
		}
		return
	}
	if l.Told.met {
		return
	}
	address := l.masterAddress(facts["env.MASTER_ADDR"])
	dialer := net.Dialer{Timeout: masterPatience, Control: firewall.Pass}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	shown := facts["env.MASTER_ADDR"] + ":" + strconv.Itoa(port)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		if l.Runs {
			l.Told.met = true
			break
		}
		facts["master.foreign"] = shown + " answers before rank 0 was started"
	case errors.Is(err, syscall.ECONNREFUSED): // it can be reached
		if l.Runs {
			facts["master.refused.min"] = strconv.Itoa(int(l.RunsFor / time.Minute))
		}
	default:
		var dns *net.DNSError
		if ctx.Err() == nil && !errors.As(err, &dns) { // whether the name resolves is for the task to say
			facts["master.unreachable"] = shown + " (" + words.Cause(err) + ")"
		}
	}
}

// masterAddress returns the address behind a rank's name, which the node itself
// cannot resolve.
func (l *Look) masterAddress(host string) string {
	host = strings.Trim(host, "[]")
	for i := range l.Assignment.Members {
		if m := &l.Assignment.Members[i]; m.Name == host {
			return cmp.Or(m.Addr, host)
		}
	}
	return host
}

// Seen lists facts for people.
func Seen(facts envcheck.Facts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if value := facts[name]; value != "" && name != "clock" {
			parts = append(parts, name+"="+words.Short(value))
		}
	}
	text := strings.Join(parts, ", ")
	return strings.ToValidUTF8(text[:min(len(text), structs.NoteParamMax)], "")
}

// Table is the table of rules: the administrator's, in the node's data
// directory, or the one that is built in. It is read at every look, so that it
// may be edited.
func (e *Environment) Table() (*envcheck.Table, error) {
	path := filepath.Join(e.DataDir, envTableFile)
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
