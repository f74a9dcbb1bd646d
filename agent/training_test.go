package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/structs"
)

// kills is how often the training of the test below is killed; `make long`
// asks for more.
var kills = flag.Int("kills", 3, "how often a training is killed by its test")

// trainArgument makes the test program one rank of a training, see TestMain.
const trainArgument = "train-one-rank"

// training is what a checkpoint holds: small, but its result depends on every
// step and on every rank.
type training struct {
	Step    int
	Weights [4]float64
}

const (
	trainSteps     = 160
	trainSaveEvery = 8
	trainStepTakes = 5 * time.Millisecond
)

// gradient is the share of one rank in a step.
func (m *training) gradient(rank int) [4]float64 {
	var g [4]float64
	for i, w := range m.Weights {
		x := math.Sin(float64(m.Step*7 + i*3 + rank*11))
		g[i] = (w*x - math.Cos(float64(i+rank))) * x
	}
	return g
}

func (m *training) update(one, two [4]float64) {
	for i := range m.Weights {
		m.Weights[i] -= 0.1 * (one[i] + two[i])
	}
	m.Step++
}

// loss names the state of a training exactly.
func (m *training) loss() string {
	sum := 0.0
	for _, w := range m.Weights {
		sum += w * w
	}
	return strconv.FormatFloat(sum, 'x', -1, 64)
}

// trainOneRank is rank 0 or 1 of a training of two that meet at addr. Rank 0
// keeps the weights and saves them below dir; both fail when the other is gone.
func trainOneRank(dir, addr string) int {
	var err error
	if os.Getenv("NOMADLIKE_RANK") == "0" {
		err = leadTraining(dir, addr)
	} else {
		err = followTraining(addr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// resumed reads the checkpoint that the environment names.
func resumed() (training, error) {
	var m training
	path := os.Getenv("NOMADLIKE_CHECKPOINT")
	if path == "" {
		return m, nil
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && strconv.Itoa(m.Step) != os.Getenv("NOMADLIKE_CHECKPOINT_STEP") {
		err = fmt.Errorf("checkpoint %s is of step %d", path, m.Step)
	}
	return m, err
}

func leadTraining(dir, addr string) error {
	m, err := resumed()
	if err != nil {
		return err
	}
	fmt.Println("begin at step", m.Step)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	peer := json.NewDecoder(bufio.NewReader(conn))
	for m.Step < trainSteps {
		var theirs [4]float64
		if err := json.NewEncoder(conn).Encode(m); err != nil {
			return err
		}
		if err := peer.Decode(&theirs); err != nil {
			return err
		}
		m.update(m.gradient(0), theirs)
		time.Sleep(trainStepTakes)
		if m.Step%trainSaveEvery == 0 {
			if err := saveTraining(dir, &m); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "progress"), []byte(strconv.Itoa(m.Step)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "loss"), []byte(m.loss()), 0o644)
}

func followTraining(addr string) error {
	var conn net.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("tcp", addr); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return err
		}
	}
	defer conn.Close()
	leader := json.NewDecoder(bufio.NewReader(conn))
	for {
		var m training
		if err := leader.Decode(&m); errors.Is(err, io.EOF) && m.Step == 0 {
			return nil
		} else if err != nil {
			return err
		}
		if err := json.NewEncoder(conn).Encode(m.gradient(1)); err != nil {
			return err
		}
		if m.Step == trainSteps-1 {
			return nil
		}
	}
}

func saveTraining(dir string, m *training) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("step-%d.json", m.Step))
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = checkpoint.Register(ctx, os.Getenv(checkpoint.EnvInbox), path, int64(m.Step))
	return err
}

// A training that is killed again and again, at random moments and ranks, ends
// with exactly the loss of one that was not.
func TestATrainingThatIsKilledEndsWithTheSameLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole trainings")
	}
	var whole training
	for whole.Step < trainSteps {
		whole.update(whole.gradient(0), whole.gradient(1))
	}
	c := startCluster(t, 1, 2)
	letRoot(t, c.api) // program and files lie in this test's own directories
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	submitted, err := c.api.SubmitJob(t.Context(), jobOf(trainingJob("digits", program, dir, freePort(t), 4**kills)), "")
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	chance := rand.New(rand.NewPCG(uint64(*kills), 1))
	for n := range *kills {
		killARank(t, dir, chance, n)
	}
	detail := awaitJob(t, c.api, submitted.JobID, structs.JobSucceeded)
	loss, err := os.ReadFile(filepath.Join(dir, "loss"))
	if err != nil || string(loss) != whole.loss() {
		t.Errorf("loss %s, %v; want %s", loss, err, whole.loss())
	}
	if detail.Attempt < 2 || len(detail.Subjobs[0].Checkpoints) != structs.CheckpointsKept {
		t.Errorf("attempt %d, checkpoints %+v", detail.Attempt, detail.Subjobs[0].Checkpoints)
	}
	t.Logf("%d kills, %d attempts", *kills, detail.Attempt)
}

// rankOf finds the process of a rank as this machine numbers it, which is not
// what a task in a namespace of its own sees; 0: there is none.
func rankOf(dir string, rank int) int {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range found {
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if len(words) < 3 || words[1] != trainArgument || words[2] != dir {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(process, "environ"))
		if !slices.Contains(strings.Split(string(environment), "\x00"), "NOMADLIKE_RANK="+strconv.Itoa(rank)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil {
			return pid
		}
	}
	return 0
}

// killARank waits for some progress and kills one of the ranks.
func killARank(t *testing.T, dir string, chance *rand.Rand, n int) {
	t.Helper()
	read := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		number, numberErr := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || numberErr != nil {
			return -1
		}
		return number
	}
	reach := min((n+1)*(trainSteps-20) / *kills, trainSteps-20) - chance.IntN(4)
	rank := chance.IntN(2)
	eventually.Within(t, time.Minute, fmt.Sprintf("see step %d", reach), func() bool { return read("progress") >= reach })
	killed := rankOf(dir, rank)
	if killed == 0 {
		t.Fatalf("no process of rank %d at step %d", rank, read("progress"))
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "see the next attempt", func() bool {
		pid := rankOf(dir, rank)
		return pid > 0 && pid != killed
	})
}

// trainingJob is the job file of a training of two ranks.
func trainingJob(name, program, dir string, port, resumes int) string {
	return fmt.Sprintf(`
job %q {
  nodes = 2
  resources {
    cpu    = 0.1
    memory = "64MiB"
  }
  placement { spread_or_pack = "spread" }
  task {
    driver  = "exec"
    command = "%s %s %s 127.0.0.1:%d"
  }
  checkpoint { max_resumes = %d }
}
`, name, program, trainArgument, dir, port, resumes)
}
