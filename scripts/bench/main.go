// Bench measures the real binary as a user meets it and prints one JSON line
// for each figure: name, unit, n, p50, p99. It is run by `make bench`.
//
// Flow: every figure has a function that starts what it needs (a development
// agent, or servers and clients as processes of their own), measures, and ends
// what it started. As root, hosts are network namespaces, so a lost machine
// is silence and not a refused connection; otherwise they share loopback.
//
// Limits: it measures wall time on the machine it runs on; nothing here
// passes or fails.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sort"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// figure is one measured quantity.
type figure struct {
	name    string
	measure func(context.Context, *bench) error
}

func figures() []figure {
	return []figure{
		{"binary_mb", binarySize},
		{"coldstart_ready_s", coldStart},
		{"submit", submitLatency},
		{"throughput", throughput},
		{"task_supervisor_pss_mb", supervisorMemory},
		{"coldstart_3s3c_all_ready_s", clusterColdStart},
		{"agent_restart_reattached_s", agentRestart},
		{"failover_accepted_s", failover},
		{"nodeloss_running_elsewhere_s", nodeLoss},
		{"double_loss_running_elsewhere_s", doubleLoss},
		{"launch", launchPlans},
		{"recovery", recovery},
		{"life_rank_dies", rankDies},
		{"life_node_loss_resumed", gangResumes},
		{"forecast", forecasts},
		{"pictures", pictures},
		{"held", heldJobs},
		{"fleet", manyNodes},
		{"queue", queueFigures},
		{"people", peopleFigures},
		{"devices", devices},
		{"data", dataFigures},
	}
}

// bench is what the figures share.
type bench struct {
	binary string
	dir    string
	runs   int
	fleet  int // agents of the fleet
	hosts  int // counter for names and ports
}

func main() {
	binary := flag.String("binary", "bin/nomadlike", "binary to measure")
	runs := flag.Int("runs", 5, "repetitions of the slow figures")
	only := flag.String("only", "", "regular expression of figures to measure")
	fleet := flag.Int("fleet", fleetSize, "agents of the fleet, a multiple of 100")
	served := flag.Int("serve", 0, "measure nothing: keep a server with so many simulated nodes until the input ends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &bench{binary: *binary, runs: *runs, fleet: *fleet}, *only, *served); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		var refused *structs.Error
		if errors.As(err, &refused) {
			for _, detail := range refused.Details {
				fmt.Fprintln(os.Stderr, "  ", detail.Error())
			}
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench, only string, served int) (err error) {
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "nomadlike-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o755); err != nil { // tasks reach their stage
		return err
	}
	if served > 0 {
		return serve(ctx, b, served)
	}
	for _, f := range figures() {
		if !wanted.MatchString(f.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", f.name)
		if err := f.measure(ctx, b); err != nil {
			return fmt.Errorf("measure %s: %w", f.name, err)
		}
	}
	return nil
}

// report prints the figure that values are samples of.
func report(name, unit string, values []float64) {
	sort.Float64s(values)
	quantile := func(q float64) float64 {
		return values[min(len(values)-1, int(q*float64(len(values))))]
	}
	line, err := json.Marshal(struct {
		Name string  `json:"name"`
		Unit string  `json:"unit"`
		N    int     `json:"n"`
		P50  float64 `json:"p50"`
		P90  float64 `json:"p90"`
		P99  float64 `json:"p99"`
	}{name, unit, len(values), round(quantile(0.5)), round(quantile(0.9)), round(quantile(0.99))})
	if err != nil {
		panic(err) // numbers and strings always encode
	}
	fmt.Println(string(line))
}

func round(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

func binarySize(_ context.Context, b *bench) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	report("binary_mb", "MB", []float64{float64(info.Size()) / 1e6})
	return nil
}
