package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// deviceBench is a Go benchmark that measures what cannot be measured through
// the binary alone: it brings the fake libraries of the tests.
type deviceBench struct {
	pkg   string
	bench string // regular expression
	times string // -benchtime
	names map[string]string
}

// deviceBenches are the figures of devices and drivers, by the units that the
// benchmarks report. "ns" is the time of one operation.
func deviceBenches() []deviceBench {
	return []deviceBench{
		{"./agent", "^BenchmarkFaultToSignal$", "20x", map[string]string{"p50-ms": "device_fault_to_signal_p50_ms", "p99-ms": "device_fault_to_signal_p99_ms"}},
		{"./plugins/nvidia/nvml", "^BenchmarkStats$", "10x", map[string]string{"%-of-a-core": "device_stats_8_cards_1hz_percent_of_core"}},
		{"./plugins/nvidia/nvml", "^BenchmarkFingerprint128$", "5x", map[string]string{"ns/op": "device_fingerprint_128_ms"}},
		{"./plugins/exec", "^BenchmarkStart$/^(small|raw|private)$", "50x", map[string]string{"start-p50-ms": "exec_start_p50_ms"}},
		{"./plugins/docker", "^BenchmarkStart$", "10x", map[string]string{"ratio": "docker_start_to_docker_run_ratio"}},
	}
}

// devices runs the benchmarks of devices and drivers. One that cannot run
// here, for want of a compiler or of Docker, is told on stderr and left out.
func devices(ctx context.Context, _ *bench) error {
	for _, d := range deviceBenches() {
		program := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", d.bench, "-benchtime", d.times, d.pkg)
		program.Stderr = os.Stderr
		output, err := program.Output()
		if err != nil {
			return fmt.Errorf("run %s of %s: %w\n%s", d.bench, d.pkg, err, output)
		}
		if !d.report(output) {
			fmt.Fprintf(os.Stderr, "  %s of %s measured nothing here\n", d.bench, d.pkg)
		}
	}
	return nil
}

// report prints the figures in the output of go test, and reports whether there
// are any. What one benchmark runs in several ways has the way in its name.
func (d deviceBench) report(output []byte) (any bool) {
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		way := ""
		if _, sub, ok := strings.Cut(fields[0], "/"); ok {
			way, _, _ = strings.Cut(sub, "-")
			way = "_" + way
		}
		for i := 2; i+1 < len(fields); i += 2 {
			name, wanted := d.names[fields[i+1]]
			value, err := strconv.ParseFloat(fields[i], 64)
			if !wanted || err != nil {
				continue
			}
			unit := fields[i+1]
			if unit == "ns/op" {
				unit, value = "ms", value/1e6
			}
			report(name+way, strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(unit, "start-"), "p50-"), "p99-"), []float64{value})
			any = true
		}
	}
	return any
}
