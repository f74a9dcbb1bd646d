package nvidia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

const (
	// mpsEvery is how often the daemons of NVIDIA's multi-process service are
	// looked at.
	mpsEvery = 2 * time.Second
	// mpsPatience bounds one call of the program that starts and asks them.
	mpsPatience = 10 * time.Second
	// mpsProgram is the name of that program, and of the daemon's process.
	mpsProgram  = "nvidia-cuda-mps-control"
	mpsFile     = "mps.json"
	mpsListMax  = 64 << 10
	mpsFileMax  = 64 << 10
	mpsPipeMode = 0o755
)

// mpsWanted returns the cards of every daemon that this plugin has to run, by the
// directory of its pipes. Pure.
func mpsWanted(facts *Facts, s *Settings) map[string][]string {
	wanted := make(map[string][]string)
	for i := range facts.Cards {
		card := &facts.Cards[i]
		share := s.shareOf(card)
		if share == nil || share.How != device.SharingMPS || share.Daemon != daemonAuto || card.MIG || card.UUID == "" || names(s.Ignore, card) {
			continue
		}
		wanted[share.PipeDir] = append(wanted[share.PipeDir], card.UUID)
	}
	for _, cards := range wanted {
		slices.Sort(cards)
	}
	return wanted
}

// mpsDaemons starts and stops the daemons. They live on without this process,
// as the tasks do that use them: a file keeps which ones it has started.
type mpsDaemons struct {
	program string // "": looked for
	dir     string // of the file, and of the daemons' logs; "": nothing is kept
	log     *slog.Logger

	mu struct {
		sync.Mutex                     // held while a daemon is started or ended
		ours       map[string][]string // by directory of pipes, the cards; nil: not read yet
	}
}

// tend makes the daemons those that are wanted, and says of each that is not
// there why.
func (m *mpsDaemons) tend(ctx context.Context, wanted map[string][]string) map[string]*structs.Reason {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endLocked(ctx, func(pipes string, cards []string) bool { return !slices.Equal(cards, wanted[pipes]) })
	down := make(map[string]*structs.Reason)
	for _, pipes := range slices.Sorted(maps.Keys(wanted)) {
		if m.running(pipes) {
			continue
		}
		if err := m.startLocked(ctx, pipes, wanted[pipes]); err != nil && ctx.Err() == nil {
			down[pipes] = structs.NewReason("device.nvidia_mps_down", "dir", pipes, "cause", err)
		}
	}
	return down
}

// without ends the daemon that has a card open, when no task uses it, and keeps
// it ended until resume is called.
func (m *mpsDaemons) without(ctx context.Context, card string) (resume func()) {
	m.mu.Lock()
	m.endLocked(ctx, func(_ string, cards []string) bool { return slices.Contains(cards, card) })
	return m.mu.Unlock
}

// endLocked ends those of our daemons that are chosen and that no task uses.
func (m *mpsDaemons) endLocked(ctx context.Context, chosen func(pipes string, cards []string) bool) {
	if m.mu.ours == nil {
		m.mu.ours = m.read()
	}
	for _, pipes := range slices.Sorted(maps.Keys(m.mu.ours)) {
		if !chosen(pipes, m.mu.ours[pipes]) || m.running(pipes) && !m.quit(ctx, pipes) {
			continue // one that tasks use stays as it is until they have ended
		}
		delete(m.mu.ours, pipes)
		m.writeLocked()
	}
}

// startLocked starts a daemon and keeps that it is ours.
func (m *mpsDaemons) startLocked(ctx context.Context, pipes string, cards []string) error {
	program, err := m.find()
	if err != nil {
		return err
	}
	if err := ownDirectory(pipes); err != nil {
		return err
	}
	// Written first: a daemon that is not on record would never be stopped.
	m.mu.ours[pipes] = cards
	m.writeLocked()
	ctx, cancel := context.WithTimeout(ctx, mpsPatience)
	defer cancel()
	cmd := m.command(ctx, program, pipes, "-d")
	cmd.Env = append(cmd.Env, "CUDA_VISIBLE_DEVICES="+strings.Join(cards, ","))
	// Its output would be held open by the daemon.
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s -d: %w", program, err)
	}
	for !m.running(pipes) {
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.New("the daemon has ended again; see its control.log")
		}
	}
	m.log.Info("MPS daemon started", "pipes", pipes, logkey.Count, len(cards))
	return nil
}

// quit ends a daemon that no task uses, and reports whether it did.
func (m *mpsDaemons) quit(ctx context.Context, pipes string) bool {
	servers, err := m.ask(ctx, pipes, "get_server_list")
	if err != nil {
		m.log.Warn("MPS daemon cannot be asked", "pipes", pipes, logkey.Error, err)
		return false
	}
	for _, server := range strings.Fields(servers) {
		if _, err := strconv.Atoi(server); err != nil {
			continue // a remark
		}
		clients, err := m.ask(ctx, pipes, "get_client_list "+server)
		if err != nil || strings.TrimSpace(clients) != "" {
			return false
		}
	}
	if _, err := m.ask(ctx, pipes, "quit"); err != nil {
		m.log.Warn("MPS daemon cannot be ended", "pipes", pipes, logkey.Error, err)
		return false
	}
	m.log.Info("MPS daemon ended", "pipes", pipes)
	return true
}

// ask has a daemon execute one command and returns its answer.
func (m *mpsDaemons) ask(ctx context.Context, pipes, command string) (string, error) {
	program, err := m.find()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, mpsPatience)
	defer cancel()
	cmd := m.command(ctx, program, pipes)
	cmd.Stdin = strings.NewReader(command + "\n")
	answer, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask MPS daemon %q: %w", command, err)
	}
	return string(answer[:min(len(answer), mpsListMax)]), nil
}

func (m *mpsDaemons) command(ctx context.Context, program, pipes string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "CUDA_MPS_PIPE_DIRECTORY=" + pipes, "CUDA_MPS_LOG_DIRECTORY=" + m.logs(pipes)}
	cmd.Dir = "/"
	// A session of its own: this process's group is killed with the agent.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	return cmd
}

// logs is where a daemon logs: beside the plugin's state, or its pipes.
func (m *mpsDaemons) logs(pipes string) string {
	if m.dir == "" {
		return pipes
	}
	dir := filepath.Join(m.dir, "mps", strings.ReplaceAll(strings.Trim(pipes, "/"), "/", "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pipes
	}
	return dir
}

// find returns the program's path.
func (m *mpsDaemons) find() (string, error) {
	tool := runtime.Tool{Name: mpsProgram, Path: m.program, Usual: []string{"/usr/bin/" + mpsProgram, "/usr/local/bin/" + mpsProgram, "/usr/local/nvidia/bin/" + mpsProgram}}
	return tool.Find()
}

// running reports whether a daemon lives, by the file that it keeps with its
// pipes.
func (m *mpsDaemons) running(pipes string) bool {
	text, err := runtime.ReadFile(filepath.Join(pipes, mpsProgram+".pid"), 64)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return false
	}
	line, err := runtime.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid), mpsFileMax)
	return err == nil && strings.Contains(string(line), mpsProgram)
}

// ownDirectory makes the directory of a daemon's pipes, and refuses one that
// somebody else could have prepared: all that is computed goes through it.
func ownDirectory(path string) error {
	if err := os.Mkdir(path, mpsPipeMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !known || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only this plugin's user may write", path)
	}
	return nil
}

func (m *mpsDaemons) file() string { return filepath.Join(m.dir, mpsFile) }

// mpsRecorded reports whether an earlier process has started daemons.
func mpsRecorded(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, mpsFile))
	return dir != "" && err == nil
}

// read returns the daemons that an earlier process has started.
func (m *mpsDaemons) read() map[string][]string {
	ours := make(map[string][]string)
	if m.dir == "" {
		return ours
	}
	text, err := runtime.ReadFile(m.file(), mpsFileMax)
	if err == nil {
		err = json.Unmarshal(text, &ours)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.log.Warn("record of MPS daemons is lost", logkey.Error, err)
	}
	if ours == nil {
		ours = make(map[string][]string)
	}
	return ours
}

func (m *mpsDaemons) writeLocked() {
	if m.dir == "" {
		return
	}
	text, err := json.Marshal(m.mu.ours)
	if err == nil {
		err = runtime.WriteFile(m.file(), text)
	}
	if err != nil {
		m.log.Error("MPS daemons cannot be recorded", logkey.Error, err)
	}
}

// tendMPS keeps the daemons up that the configuration asks for, as long as the
// plugin lives, and those parts from new work whose daemon is down.
func (c *cards) tendMPS(ctx context.Context, p *Plugin) {
	tick := time.NewTicker(mpsEvery)
	defer tick.Stop()
	ready := p.Ready()
	for {
		if facts := p.Facts(); facts != nil {
			down := c.mps.tend(ctx, mpsWanted(facts, c.s))
			p.Update(func() bool {
				changed := !c.mpsKnown || !maps.EqualFunc(c.mpsDown, down, func(a, b *structs.Reason) bool { return maps.Equal(a.Params, b.Params) })
				c.mpsDown, c.mpsKnown = down, true
				return changed
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-ready:
			ready = nil // once
		}
	}
}

// cordonMPS keeps parts from new work whose daemon is not up.
func (c *cards) cordonMPS(devices []structs.Device) {
	for i := range devices {
		d := &devices[i]
		if d.Attrs[device.AttrSharing] != device.SharingMPS || !device.ActionOf(d).TakesWork() {
			continue
		}
		share := c.s.shareOf(&Card{UUID: d.Attrs[device.AttrParent], Bus: d.PCIBus, Index: d.Index})
		if share == nil || share.Daemon != daemonAuto {
			continue
		}
		reason := c.mpsDown[share.PipeDir]
		if reason == nil && !c.mpsKnown {
			reason = structs.NewReason("device.starting", "plugin", Name)
		}
		if reason != nil {
			device.Judge(d, device.ActCordon, reason)
		}
	}
}
