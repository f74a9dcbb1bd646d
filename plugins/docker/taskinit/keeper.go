package taskinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/driver/taskproc"
)

// KeepArgument is the first argument with which the program becomes a keeper.
const KeepArgument = "keep"

// Descriptors of a keeper besides the standard ones.
const (
	initListenerFD    = 3
	controlListenerFD = 4
)

// Bounds of a keeper.
const (
	// firstPatience is how long a keeper waits for the container's first
	// word; pulling is over by then.
	firstPatience = 5 * time.Minute
	// againPatience is how long it waits for an init that lives to come back.
	againPause = 50 * time.Millisecond
	// drainPatience is how long the logs wait for the end of the pipes once
	// everything in the container is dead.
	drainPatience = 10 * time.Second
	watchersMax   = 32
	// maskPatience is how long logs wait, once the task has ended, for what to mask.
	maskPatience = time.Minute
)

// KeepConfig is what a keeper reads from its standard input.
type KeepConfig struct {
	Dir      string `json:"dir"` // the task's directory
	LogDir   string `json:"log_dir"`
	LogFiles int    `json:"log_files"`
	LogBytes int64  `json:"log_bytes"`
	// Spec is for a container that is about to start; nil for one that runs.
	Spec *Spec `json:"spec,omitempty"`
	// Lease is the file of the node's lease, for a task that ends with it.
	Lease string `json:"lease,omitempty"`
	// Mask are texts that the logs do not hold.
	Mask []tasklog.Masked `json:"mask,omitempty"`
	// MaskLater is for a keeper that takes over a container that runs, and has no Mask:
	// an agent will tell with OpMask, and nothing reaches the logs before.
	MaskLater bool `json:"mask_later,omitempty"`
}

// maskBytes are read at a time where something is masked.
const maskBytes = 64 << 10

// keeper serves one task.
type keeper struct {
	config  KeepConfig
	control *os.File
	door    *os.File
	logDir  *os.File
	logs    []*tasklog.Writer
	later   []*tasklog.Later // before the logs, in one that has taken over; else nil
	copying sync.WaitGroup
	done    chan *Exit // gets the end once
	over    sync.Once
	first   chan struct{} // closed at the first word of an init
	heard   sync.Once

	mu struct {
		sync.Mutex
		init     *Conn
		initPID  int
		ticks    int64
		lease    Lease // as last read
		started  *Started
		refused  *taskproc.Failure
		exit     *Exit // told to watchers only once the logs are complete
		watchers map[*Conn]bool
		copying  bool
	}
}

func runKeeper() int {
	body, err := io.ReadAll(io.LimitReader(os.Stdin, MessageBytesMax))
	k := &keeper{done: make(chan *Exit, 1), first: make(chan struct{})}
	k.mu.watchers = make(map[*Conn]bool)
	if err == nil {
		err = json.Unmarshal(body, &k.config)
	}
	if err == nil {
		err = k.open()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 1
	}
	inits := make(chan *Conn)
	go k.acceptInits(inits)
	go k.attendInits(inits)
	go k.acceptAgents()
	go k.giveUp()
	if k.config.Lease != "" {
		go k.enforceLease()
	}
	exit := <-k.done
	if exit == nil {
		return 1
	}
	k.finish(exit)
	return 0
}

func (k *keeper) open() error {
	for fd, place := range map[int]**os.File{initListenerFD: &k.door, controlListenerFD: &k.control} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return fmt.Errorf("take over listener: %w", err)
		}
		syscall.CloseOnExec(fd)
		*place = os.NewFile(uintptr(fd), "listener")
	}
	dir, fresh, err := tasklog.PrepareDir(k.config.LogDir)
	if err != nil {
		return err
	}
	k.logDir = dir
	for _, stream := range []string{tasklog.Stdout, tasklog.Stderr} {
		writer, err := tasklog.NewWriter(dir, fresh, stream, k.config.LogFiles, k.config.LogBytes)
		if err != nil {
			return err
		}
		k.logs = append(k.logs, writer)
		if k.config.Spec == nil && (k.config.MaskLater || len(k.config.Mask) > 0) {
			later := tasklog.NewLater(writer)
			if !k.config.MaskLater {
				later.Mask(k.config.Mask)
			}
			k.later = append(k.later, later)
		}
	}
	return nil
}

// giveUp ends a keeper whose container never came to life.
func (k *keeper) giveUp() {
	timer := time.NewTimer(firstPatience)
	defer timer.Stop()
	select {
	case <-k.first:
	case <-timer.C:
		k.end(nil)
	}
}

func (k *keeper) end(exit *Exit) {
	k.over.Do(func() { k.done <- exit })
}

// acceptInits turns everybody away but the container's process 1: the socket
// is seen by the whole container.
func (k *keeper) acceptInits(inits chan<- *Conn) {
	for {
		link, err := accept(k.door)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			time.Sleep(againPause)
		case !k.trusted(link):
			link.Close()
		default:
			inits <- link
		}
	}
}

// attendInits serves the init, one connection after the other, until it is
// dead.
func (k *keeper) attendInits(inits <-chan *Conn) {
	link := <-inits
	for {
		k.attend(link)
		link.Close()
		next, exit := k.awaitReturn(inits)
		if exit != nil {
			k.end(exit)
			return
		}
		link = next
	}
}

// trusted takes only process 1 of a process namespace below this one, and
// once there was one, only that.
func (k *keeper) trusted(link *Conn) bool {
	peer, err := link.Peer()
	if err != nil || peer.Pid <= 0 {
		return false
	}
	pid := int(peer.Pid)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(ids)
			if len(fields) < 2 || fields[len(fields)-1] != "1" {
				return false
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.initPID != 0 && k.mu.initPID != pid {
		return false
	}
	k.mu.initPID, k.mu.ticks = pid, startTicks(pid)
	return true
}

// attend listens to the init until its connection ends.
func (k *keeper) attend(link *Conn) {
	for {
		var report Report
		descriptors, err := link.Receive(&report)
		if err != nil {
			k.mu.Lock()
			k.mu.init = nil
			k.mu.Unlock()
			return
		}
		k.heard.Do(func() { close(k.first) })
		if report.Hello {
			k.mu.Lock()
			k.mu.init = link
			k.mu.Unlock()
			if report.Started == nil && report.Refused == nil && k.config.Spec != nil {
				if k.config.Lease != "" { // from its first moment on
					lease := k.leaseNow()
					k.config.Spec.Lease = &lease
				}
				k.tell(order{Spec: k.config.Spec})
				k.config.Spec = nil // only this goroutine reads it
			}
		}
		if report.Started != nil {
			k.begin(report.Started, descriptors)
		} else {
			taskproc.CloseAll(descriptors)
		}
		if report.Refused != nil {
			k.mu.Lock()
			k.mu.refused = report.Refused
			k.mu.Unlock()
			k.publish(News{Refused: report.Refused})
			k.tell(order{Ack: true})
			k.end(nil)
		}
		if report.Exit != nil {
			exit := *report.Exit
			exit.OOMKills = oomKills(k.initPID()) // while the container's cgroup is still there
			k.tell(order{Ack: true})
			k.end(&exit)
		}
	}
}

// tell passes an order to the init, if there is one to hear it.
func (k *keeper) tell(o order, descriptors ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.init != nil {
		_ = k.mu.init.Send(o, descriptors...) // a broken link is seen by attend
	}
}

func (k *keeper) initPID() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.initPID
}

// begin notes that the task runs and begins to copy its output.
func (k *keeper) begin(started *Started, pipes []int) {
	k.mu.Lock()
	started.InitPID, started.InitTicks = k.mu.initPID, k.mu.ticks
	k.mu.started = started
	again := k.mu.copying
	k.mu.copying = k.mu.copying || len(pipes) == len(k.logs)
	k.mu.Unlock()
	k.publish(News{Started: started})
	if again || len(pipes) != len(k.logs) {
		taskproc.CloseAll(pipes)
		return
	}
	for i, log := range k.logs {
		if k.later != nil {
			k.copying.Go(func() { copyLater(k.later[i], pipes[i]) })
			continue
		}
		k.copying.Go(func() { copyOutput(log, k.config.Mask, pipes[i]) })
	}
}

// copyOutput fills a log until the pipe ends. The pipe is shared with the
// init, so it stays blocking and costs a thread. Bytes leave it only into the
// file, so that the death of this process loses none.
func copyOutput(log *tasklog.Writer, mask []tasklog.Masked, pipe int) {
	defer syscall.Close(pipe)
	if masker := tasklog.NewMasker(log, mask); masker != nil {
		copyMasked(masker, pipe)
		return
	}
	for log.Splice(pipe) == nil {
	}
}

// copyMasked is copyOutput with some texts masked on the way.
func copyMasked(masker *tasklog.Masker, pipe int) {
	defer masker.Close()
	copyThrough(masker, pipe)
}

// copyLater is copyOutput in a keeper that took over what another one has begun to read.
func copyLater(later *tasklog.Later, pipe int) {
	copyThrough(later, pipe)
	syscall.Close(pipe)
	later.Close(maskPatience)
}

func copyThrough(to io.Writer, pipe int) {
	buffer := make([]byte, maskBytes)
	for {
		n, err := syscall.Read(pipe, buffer)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 {
			return
		}
		_, _ = to.Write(buffer[:n]) // never fails: see tasklog.Writer
	}
}

// awaitReturn waits, once an init's connection has ended, until it makes another, or is
// dead: then it tells how the task has ended. A dying init closes its descriptors first,
// and lives on until the kernel has ended all others of its namespace, which takes a while
// on a busy machine.
func (k *keeper) awaitReturn(inits <-chan *Conn) (*Conn, *Exit) {
	k.mu.Lock()
	pid, ticks, started := k.mu.initPID, k.mu.ticks, k.mu.started
	k.mu.Unlock()
	tick := time.NewTicker(againPause)
	defer tick.Stop()
	for startTicks(pid) == ticks {
		select {
		case link := <-inits:
			return link, nil
		case <-tick.C:
		}
	}
	exit := &Exit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL), Vanished: true, FinishedNS: time.Now().UnixNano()}
	if started != nil {
		exit.StartedNS = started.StartedNS
	}
	return nil, exit
}

// acceptAgents serves the agent's connections.
func (k *keeper) acceptAgents() {
	for {
		connection, err := accept(k.control)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return
			}
			time.Sleep(againPause)
			continue
		}
		peer, err := connection.Peer()
		if err != nil || peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
			connection.Close()
			continue
		}
		go k.serve(connection)
	}
}

func (k *keeper) serve(connection *Conn) {
	connection.SetDeadline(time.Now().Add(sendPatience))
	var ask Ask
	descriptors, err := connection.Receive(&ask)
	taskproc.CloseAll(descriptors)
	if err != nil {
		connection.Close()
		return
	}
	connection.SetDeadline(time.Time{})
	if ask.Op == OpWatch && k.watch(connection) {
		return // publish and finish have it now
	}
	if ask.Op == OpRelay {
		_ = connection.Lend(func(fd int) error { k.tell(order{Caller: true}, fd); return nil })
	}
	if ask.Op == OpMask {
		for _, later := range k.later {
			if ask.Withhold {
				later.Withhold()
			} else {
				later.Mask(ask.Mask)
			}
		}
	}
	connection.Close() // the init has its own copy; without one the agent sees the end
}

// watch adds a watcher and tells it what is known.
func (k *keeper) watch(connection *Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.mu.watchers) >= watchersMax {
		return false
	}
	k.mu.watchers[connection] = true
	news := News{Started: k.mu.started, Refused: k.mu.refused, Exit: k.mu.exit}
	if news != (News{}) {
		_ = connection.Send(news) // a watcher that is gone is dropped by publish
	}
	return true
}

// publish tells all watchers.
func (k *keeper) publish(news News) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for connection := range k.mu.watchers {
		if connection.Send(news) != nil {
			connection.Close()
			delete(k.mu.watchers, connection)
		}
	}
}

// finish completes the logs, records the exit and tells it.
func (k *keeper) finish(exit *Exit) {
	complete := make(chan struct{})
	go func() {
		k.copying.Wait()
		close(complete)
	}()
	patience := drainPatience
	if k.later != nil {
		patience += maskPatience
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-complete:
		for _, log := range k.logs {
			log.Close()
		}
	case <-timer.C: // something unkillable holds a pipe
	}
	if err := WriteExit(k.config.Dir, exit); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
	}
	k.mu.Lock()
	k.mu.exit = exit
	k.mu.Unlock()
	_ = syscall.Unlink(k.config.Dir + "/" + ControlSocket) // nobody needs to come any more
	k.publish(News{Exit: exit})
}

// WriteExit records how a task has ended, for good.
func WriteExit(dir string, exit *Exit) error {
	body, err := json.Marshal(exit)
	if err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	file, err := os.OpenFile(dir+"/"+ExitFile+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(dir+"/"+ExitFile+".new", dir+"/"+ExitFile)
	}
	if err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	return nil
}

// ReadExit returns a recorded exit; an error that satisfies
// errors.Is(os.ErrNotExist) when there is none.
func ReadExit(dir string) (*Exit, error) {
	body, err := os.ReadFile(dir + "/" + ExitFile)
	if err != nil {
		return nil, fmt.Errorf("read exit: %w", err)
	}
	var exit Exit
	if err := json.Unmarshal(body, &exit); err != nil {
		return nil, fmt.Errorf("read exit: %w", err)
	}
	return &exit, nil
}
