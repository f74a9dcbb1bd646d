package consensus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes the test binary play a part of a test in a process of its
// own.
const roleVariable = "CONSENSUS_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "propose":
		err = proposeUntilKilled(os.Getenv("CONSENSUS_TEST_DIR"))
	case "fill":
		err = fillTheDisk(os.Getenv("CONSENSUS_TEST_DIR"))
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// played is the test binary in a role.
func played(ctx context.Context, role, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "CONSENSUS_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// openOnPlain opens and, where new, bootstraps a server outside of a test.
func openOnPlain(dir string, change func(*Config)) (*Node, *ledger, error) {
	fsm := &ledger{}
	config := Config{
		ClusterID:         "test",
		Dir:               dir,
		Transport:         NewNetwork(time.Second).Transport("alone:4646"),
		FSM:               fsm,
		SnapshotThreshold: 200,
		TrailingLogs:      50,
		SnapshotInterval:  20 * time.Millisecond,
		segmentBytes:      16 << 10,
	}
	if change != nil {
		change(&config)
	}
	node, err := Open(config)
	if err != nil {
		return nil, nil, err
	}
	if len(node.Peers()) == 0 {
		err := node.Bootstrap([]Peer{{ID: node.ID(), Addr: "alone:4646", Voter: true}})
		if err != nil && !errors.Is(err, ErrAlreadyBootstrapped) {
			return nil, nil, err
		}
	}
	for news := range node.LeadershipCh() {
		if news.Leader {
			break
		}
	}
	return node, fsm, nil
}

// proposeUntilKilled prints each command that was acknowledged.
func proposeUntilKilled(dir string) error {
	node, fsm, err := openOnPlain(dir, nil)
	if err != nil {
		return err
	}
	begin := len(fsm.lines())
	var out sync.Mutex
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				command := fmt.Sprintf("%d.%d.%d", begin, caller, i)
				if _, err := node.Propose(context.Background(), []byte(command)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(command)
				out.Unlock()
			}
		})
	}
	callers.Wait()
	return nil
}

// Nothing acknowledged is lost by kill -9, whatever the process was doing, log
// rotation, snapshots and compaction included.
func TestKilledProcessLosesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	var acknowledged []string
	for round := range 6 {
		cmd := played(t.Context(), "propose", dir)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for count := 0; lines.Scan(); count++ {
			acknowledged = append(acknowledged, lines.Text())
			if count == 300+500*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("round %d ended with %v", round, err)
		}
	}
	node, fsm := mustOpenAlone(t, dir, nil)
	held := make(map[string]int)
	for _, command := range fsm.commands() {
		held[command]++
	}
	for _, command := range acknowledged {
		if held[command] != 1 {
			t.Errorf("%s was acknowledged and is there %d times", command, held[command])
		}
	}
	t.Logf("%d acknowledged, %d held, stats %+v", len(acknowledged), len(held), node.Stats())
}

// fillTheDisk runs on a small file system of its own.
func fillTheDisk(dir string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=40m"); err != nil {
		return fmt.Errorf("mount small disk: %w", err)
	}
	data := filepath.Join(dir, "raft")
	exits := make(chan int, 1)
	noFloor := func(c *Config) {
		c.MinFreeBytes = 1
		c.SnapshotInterval = time.Hour
		c.segmentBytes = 0
		c.ExitFunc = func(code int) { exits <- code }
	}
	node, _, err := openOnPlain(data, noFloor)
	if err != nil {
		return err
	}
	acknowledged := 0
	pad := strings.Repeat("x", 1<<20)
	for err == nil {
		if _, err = node.Propose(context.Background(), []byte(strconv.Itoa(acknowledged)+pad)); err == nil {
			acknowledged++
		}
	}
	if !errors.Is(err, ErrOutcomeUnknown) && !errors.As(err, new(*NotLeaderError)) && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("proposal on the full disk: %w", err)
	}
	fmt.Println("refused after", acknowledged, "with", err)
	if !errors.Is(err, ErrDiskFull) {
		if code := <-exits; code != exitStorage {
			return fmt.Errorf("exit code %d", code)
		}
	}
	if err := node.Shutdown(context.Background(), false); err != nil {
		return err
	}
	// Space comes back, and so does the server, with all it acknowledged.
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=400m"); err != nil {
		return fmt.Errorf("enlarge disk: %w", err)
	}
	node, fsm, err := openOnPlain(data, nil)
	if err != nil {
		return fmt.Errorf("open after the disk was full: %w", err)
	}
	if _, err := node.Propose(context.Background(), []byte("last")); err != nil {
		return err
	}
	commands := fsm.commands()
	for i := range acknowledged {
		if !slices.Contains(commands, strconv.Itoa(i)+pad) {
			return fmt.Errorf("command %d of %d is lost", i, acknowledged)
		}
	}
	fmt.Println("nothing lost")
	return node.Shutdown(context.Background(), false)
}

func TestFullDisk(t *testing.T) {
	cmd := played(t.Context(), "fill", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "nothing lost") {
		t.Errorf("on a full disk: %v", err)
	}
}

// Before the disk is full, writes are refused and reads go on.
func TestNearlyFullDiskRefusesWrites(t *testing.T) {
	free := make(chan uint64, 1)
	free <- 1 << 40
	node, _ := mustOpenAlone(t, filepath.Join(t.TempDir(), "raft"), func(c *Config) {
		c.FreeBytes = func(string) (uint64, error) {
			bytes := <-free
			free <- bytes
			return bytes, nil
		}
	})
	setFree := func(bytes uint64) {
		<-free
		free <- bytes
		node.checkSpace()
	}
	mustPropose(t, node, "a")
	setFree(defaultMinFreeBytes - 1)
	if _, err := node.Propose(t.Context(), []byte("b")); !errors.Is(err, ErrDiskFull) {
		t.Errorf("proposal on a nearly full disk: %v", err)
	}
	if !node.Stats().DiskFull {
		t.Error("stats do not tell")
	}
	if _, err := node.ReadIndex(t.Context()); err != nil {
		t.Errorf("read on a nearly full disk: %v", err)
	}
	setFree(defaultMinFreeBytes)
	mustPropose(t, node, "b")
}
