package command

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"pgregory.net/rapid"

	"nomadlike/internal/eventually"
	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// topScene is a cluster of three nodes, as top sees it.
func topScene() topData {
	card := func(index int, busy, memory, temperature float64) api.DeviceState {
		return api.DeviceState{
			Device: structs.Device{ID: "GPU-000" + string(rune('0'+index)), Index: index, Kind: device.KindNVIDIA, Model: "A800", Memory: 80 << 30, Healthy: true},
			Gauges: map[string]float64{
				device.GaugeUtilization: busy, device.GaugeMemoryUsed: memory * (1 << 30), device.GaugeMemoryTotal: 80 << 30,
				device.GaugeTemperature: temperature, device.GaugePower: 4 * temperature,
			},
		}
	}
	owned := func(d api.DeviceState, job string, rank int) api.DeviceState {
		d.Used, d.Owner = true, &api.DeviceOwner{Job: job, User: "li", Project: "vision", Rank: rank, Attempt: 1}
		return d
	}
	sick := card(1, 0, 0, 30)
	sick.Healthy, sick.Action = false, string(device.ActReboot)
	secret := card(1, 0.2, 10, 40)
	secret.Used = true
	return topData{
		At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Nodes: []api.NodeDevices{
			{
				Name: "gpu-01", Pool: "a800", Status: structs.NodeReady, Eligibility: structs.NodeEligible, CPU: 64, CPUHeld: 32, CPUBusy: 12.34,
				Memory: 512 << 30, MemoryHeld: 256 << 30, MemoryBusy: 99 << 30, Measured: true,
				Devices: []api.DeviceState{owned(card(0, 0.97, 71.5, 66), "训练-resnet", 0), sick},
			},
			{
				Name: "gpu-02", Pool: "a800", Status: structs.NodeReady, Eligibility: structs.NodeDraining, CPU: 64, Memory: 512 << 30, Measured: true,
				Devices: []api.DeviceState{owned(card(0, 0.5, 79, 71), "训练-resnet", 1), secret},
			},
			{Name: "cpu-01", Pool: "default", Status: structs.NodeLost, Eligibility: structs.NodeEligible, CPU: 16, Memory: 64 << 30},
		},
		Jobs: []api.JobSummary{
			{ID: "0123456789", Name: "训练-resnet", Project: "vision", User: "li", Nodes: 2, JobStatus: api.JobStatus{State: structs.JobRunning, Attempt: 1}},
			{ID: "abcdefghij", Name: "bert", Project: "nlp", User: "wang", Nodes: 4, JobStatus: api.JobStatus{State: structs.JobQueued}},
		},
	}
}

// What top draws, in both languages, for screens of several sizes.
func TestTopLines(t *testing.T) {
	t.Setenv("TZ", "UTC")
	var out strings.Builder
	for _, c := range []struct {
		title         string
		language      messages.Language
		view          topView
		width, height int
	}{
		{"everything, printed once", messages.English, topView{order: orderName}, 0, 0},
		{"in Chinese", messages.Chinese, topView{order: orderName}, 0, 0},
		{"the hottest first, on a small screen", messages.English, topView{order: orderTemperature}, 70, 14},
		{"the busiest first", messages.English, topView{order: orderBusy}, 100, 24},
		{"narrowed to a job", messages.Chinese, topView{order: orderMemory, narrow: "训练"}, 90, 16},
		{"while it is typed", messages.English, topView{order: orderName, narrow: "BERT", typing: true}, 80, 12},
		{"scrolled to the last card", messages.English, topView{order: orderName, skip: 99}, 80, 20},
		{"out of reach", messages.English, topView{order: orderName, trouble: "no server answers"}, 60, 8},
	} {
		env, _, _ := paper()
		env.Language = c.language
		c.view.data = topScene()
		out.WriteString("== " + c.title + "\n")
		for _, line := range env.topLines(&c.view, c.width, c.height) {
			out.WriteString(line + "\n")
		}
	}
	golden.Assert(t, filepath.Join("testdata", "top.golden"), out.String())
}

// Whatever the screen, every line fits, and there are as many as it has.
func TestTopFitsTheScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env, _, _ := paper()
		env.Stdout.Colour = rapid.Bool().Draw(t, "colour")
		width, height := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(3, 60).Draw(t, "height")
		view := topView{data: topScene(), order: rapid.SampledFrom(topOrders()).Draw(t, "order"), narrow: rapid.SampledFrom([]string{"", "gpu-0", "练", "nothing"}).Draw(t, "narrow")}
		for range rapid.IntRange(0, 8).Draw(t, "keys") {
			if view.key(rapid.SampledFrom([]string{"s", "/", "x\r", keyDown, keyPageDown, keyUp, "\x7f", "训", "\x1b[1;5C"}).Draw(t, "key")) {
				t.Fatal("a key that does not leave has left")
			}
		}
		lines := env.topLines(&view, width, height)
		if len(lines) != height {
			t.Fatalf("%d lines on a screen of %d", len(lines), height)
		}
		for _, line := range lines {
			if displayWidth(line) > width || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("line %q is wider than %d", line, width)
			}
		}
	})
}

// screenText collects what a terminal is sent.
type screenText struct {
	sync.Mutex
	bytes.Buffer
}

func (s *screenText) has(text string) bool {
	s.Lock()
	defer s.Unlock()
	return strings.Contains(s.String(), text)
}

// A person at a terminal sorts, narrows and leaves.
func TestTopOnATerminal(t *testing.T) {
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	if err := pty.Setsize(program, &pty.Winsize{Rows: 30, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	var shown screenText
	var reading sync.WaitGroup
	reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			shown.Lock()
			shown.Write(buffer[:n])
			shown.Unlock()
			if err != nil {
				return
			}
		}
	})
	env, _, _ := paper()
	env.Context, env.Stdin, env.Stdout = t.Context(), program, &Screen{Writer: program, Terminal: true}
	terminal := env.fullScreen()
	if terminal == nil {
		t.Fatal("a terminal is not seen as one")
	}
	var looks atomic.Int64
	look := func(context.Context) (topData, error) {
		if looks.Add(1) > 2 {
			return topData{}, errors.New("the cluster is away")
		}
		return topScene(), nil
	}
	done := make(chan error, 1)
	go func() { done <- env.watchTop(terminal, topView{order: orderName}, 10*time.Millisecond, look) }()
	await := func(text string) {
		t.Helper()
		eventually.Within(t, time.Minute, "the screen shows "+text, func() bool { return shown.has(text) })
	}
	typed := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	await(screenEnter)
	await("the cluster is away")
	typed("/")
	await("only what contains: _")
	typed("训练")
	await("only what contains: 训练_")
	typed("\r")
	typed("q")
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("top does not leave")
	}
	await(screenLeave)
	if env.Stdin = strings.NewReader(""); env.fullScreen() != nil {
		t.Error("a file is taken for a keyboard")
	}
	typed("\n") // ends the last read of the keyboard, and with it the terminal's last user
	program.Close()
	reading.Wait()
	if !slices.Contains(topOrders(), orderName.next()) || orderTemperature.next() != orderName {
		t.Error("sorting does not go round")
	}
}
