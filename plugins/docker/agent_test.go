package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
)

// agentArgument makes the test program an agent that starts one task and
// waits to be killed.
const agentArgument = "play-agent"

// play is what such an agent is told.
type play struct {
	Config docker.Config
	Spec   driver.TaskSpec
}

func playAgent(args []string) int {
	var told play
	if err := json.Unmarshal([]byte(args[0]), &told); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	d, err := docker.New(told.Config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	handle, err := d.Start(context.Background(), told.Spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	body, err := json.Marshal(handle)
	if err != nil {
		return 1
	}
	fmt.Println(string(body))
	select {}
}

// startPatience is how long an agent may take for a start.
const startPatience = 2 * time.Minute

// startInAgent starts a task in an agent of its own and kills that.
func startInAgent(t *testing.T, config docker.Config, spec driver.TaskSpec) driver.Handle {
	t.Helper()
	config.Logger = nil
	told, err := json.Marshal(play{config, spec})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	agent := osexec.CommandContext(ctx, "/proc/self/exe", agentArgument, string(told))
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killErr := agent.Process.Kill(); killErr != nil {
		t.Fatal(killErr)
	}
	_ = agent.Wait() // it was killed
	var handle driver.Handle
	if err != nil || json.Unmarshal([]byte(strings.TrimSpace(line)), &handle) != nil {
		t.Fatalf("agent says %q, %v", line, err)
	}
	return handle
}
