package command

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/sim/trace"
	"nomadlike/nomadlike/structs"
)

func simVerbs() []verb {
	return []verb{
		{path: "sim trace", args: "FILE", setup: simTrace},
		{path: "sim generate", args: "[FILE]", setup: simGenerate},
	}
}

// simNumberMax bounds what flags count, seconds among them: 200 years.
const simNumberMax = 200 * 366 * 24 * 3600

// gpusPerNodeDefault is what nodes have when nobody says.
const gpusPerNodeDefault = 8

// simTraceFlags are the flags of `sim trace`.
type simTraceFlags struct {
	output                          outputFlags
	pools, place, policy, estimate  *string
	nodes, gpus, from, to, sample   *int
	seed                            *uint64
	predict, onlyQueued, throughAll *bool
}

func declareSimTrace(set *flag.FlagSet) *simTraceFlags {
	return &simTraceFlags{
		output:     declareOutput(set),
		pools:      set.String("pools", "", "cli.flag.sim_pools"),
		nodes:      set.Int("nodes", 0, "cli.flag.sim_nodes"),
		gpus:       set.Int("gpus-per-node", 0, "cli.flag.sim_gpus"),
		place:      set.String("place", string(trace.PlaceConsolidate), "cli.flag.sim_place"),
		policy:     set.String("policy", string(trace.PolicyDefault), "cli.flag.sim_policy"),
		estimate:   set.String("estimate", string(trace.EstimateLearned), "cli.flag.sim_estimate"),
		from:       set.Int("from", 0, "cli.flag.sim_from"),
		to:         set.Int("to", 0, "cli.flag.sim_to"),
		predict:    set.Bool("predict", false, "cli.flag.sim_predict"),
		sample:     set.Int("sample", 2000, "cli.flag.sim_sample"),
		seed:       set.Uint64("seed", 1, "cli.flag.sim_seed"),
		onlyQueued: set.Bool("only-queued", false, "cli.flag.sim_only_queued"),
		throughAll: set.Bool("state", false, "cli.flag.sim_state"),
	}
}

// checkNumbers refuses what no count can be.
func (f *simTraceFlags) checkNumbers() error {
	for _, number := range []struct {
		name  string
		value int
	}{{"nodes", *f.nodes}, {"gpus-per-node", *f.gpus}, {"from", *f.from}, {"to", *f.to}, {"sample", *f.sample}} {
		if number.value < 0 || number.value > simNumberMax {
			return usagef("cli.sim.bad_number", "flag", number.name, "value", number.value, "min", 0, "max", simNumberMax)
		}
	}
	return nil
}

// options are what the flags ask for, without the pools.
func (f *simTraceFlags) options() trace.Options {
	options := trace.Options{
		Policy: trace.Policy(*f.policy), Estimate: trace.Estimate(*f.estimate), Place: trace.Place(*f.place),
		From: time.Duration(*f.from) * time.Second, To: time.Duration(*f.to) * time.Second, Engine: trace.EngineBoard,
	}
	if *f.throughAll {
		options.Engine = trace.EngineState
	}
	if *f.predict {
		options.Predict = &trace.Predict{Sample: *f.sample, Seed: *f.seed, OnlyQueued: *f.onlyQueued}
	}
	return options
}

// simTrace replays a trace through the scheduler; it needs no cluster.
func simTrace(set *flag.FlagSet) func(*Env, []string) error {
	flags := declareSimTrace(set)
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *flags.pools != "" && *flags.nodes != 0 {
			return usagef("cli.sim.both_sizes")
		}
		if err := flags.checkNumbers(); err != nil {
			return err
		}
		recorded, err := readFile(env, path, trace.Read)
		if err != nil {
			return err
		}
		options := flags.options()
		if options.Pools, err = flags.readPools(env, recorded); err != nil {
			return err
		}
		done := env.simProgress(&options)
		report, err := trace.Replay(env.Context, recorded, options)
		done()
		if err != nil {
			return err
		}
		return env.show(flags.output, report, func() { env.printReport(report) })
	}
}

// readPools returns the pools of -pools, or the one of -nodes, or the machine
// that the trace itself describes.
func (f *simTraceFlags) readPools(env *Env, recorded *trace.Trace) ([]trace.Pool, error) {
	gpus := *f.gpus
	switch {
	case *f.pools != "":
		if gpus == 0 {
			gpus = gpusPerNodeDefault
		}
		return readFile(env, *f.pools, func(name string, from io.Reader) ([]trace.Pool, error) { return trace.ReadPools(name, from, gpus) })
	case *f.nodes > 0:
		if gpus == 0 {
			gpus = gpusPerNodeDefault
		}
		if *f.nodes > trace.GPUsMax/gpus {
			return nil, usagef("cli.sim.too_many_gpus", "max", trace.GPUsMax)
		}
		return []trace.Pool{{Nodes: *f.nodes, GPUs: gpus}}, nil
	case recorded.Nodes > 0:
		if gpus == 0 {
			gpus = recorded.NodeGPUs
		}
		return []trace.Pool{{Nodes: recorded.Nodes, GPUs: gpus}}, nil
	}
	return nil, nil // Replay says what is missing
}

// readFile reads a file, "-" for standard input, through read.
func readFile[T any](env *Env, path string, read func(string, io.Reader) (T, error)) (T, error) {
	if path == "-" {
		return read("-", env.Stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		var nothing T
		return nothing, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	defer file.Close() // it was only read
	return read(path, file)
}

// simProgress shows on a terminal how far a replay is; the function that it
// gives wipes it away.
func (env *Env) simProgress(options *trace.Options) (done func()) {
	if !env.Stderr.Terminal {
		return func() {}
	}
	started, shown := time.Now(), time.Time{}
	options.Progress = func(ended, jobs int) {
		if now := time.Now(); now.Sub(shown) > 200*time.Millisecond {
			shown = now
			fmt.Fprintf(env.Stderr, "\r\x1b[K%s", env.text("cli.sim.progress", "ended", ended, "jobs", jobs, "took", span(now.Sub(started))))
		}
	}
	return func() { fmt.Fprint(env.Stderr, "\r\x1b[K") }
}

// printReport shows a report as tables.
func (env *Env) printReport(report trace.Report) {
	table := newTable(env.Stdout, env.text("cli.sim.pool"), env.text("cli.sim.jobs"), env.text("cli.sim.dropped"), env.text("cli.sim.avg_jct"),
		env.text("cli.sim.avg_wait"), "P50", "P90", "P99", env.text("cli.sim.avg_bsld"), env.text("cli.sim.utilisation"), env.text("cli.sim.makespan"))
	row := func(name string, f trace.Statistics) {
		table.row(name, strconv.Itoa(f.Jobs), strconv.Itoa(f.Dropped), inSeconds(f.AvgJCT), inSeconds(f.AvgWait), inSeconds(f.P50Wait), inSeconds(f.P90Wait),
			inSeconds(f.P99Wait), fmt.Sprintf("%.2f", f.AvgBSLD), fmt.Sprintf("%.1f %%", f.Utilisation*100), inSeconds(f.Makespan))
	}
	if len(report.PerPool) > 1 {
		for _, name := range slices.Sorted(maps.Keys(report.PerPool)) {
			row(safe(name), report.PerPool[name])
		}
	}
	row(env.text("cli.sim.total"), report.Statistics)
	table.print()
	if report.Score == nil {
		return
	}
	fmt.Fprintln(env.Stdout)
	s := report.Score
	scores := newTable(env.Stdout, env.text("cli.sim.forecasts"), env.text("cli.sim.hits"), env.text("cli.sim.mae"), env.text("cli.sim.medae"),
		env.text("cli.sim.p90_error"), env.text("cli.sim.cov50"), env.text("cli.sim.cov90"))
	scores.row(strconv.Itoa(s.N), inPercent(s.HitPct), inSeconds(s.MAE), inSeconds(s.MedAE), inSeconds(s.P90Error), inPercent(s.Cov50Pct), inPercent(s.Cov90Pct))
	scores.print()
}

func inSeconds(s float64) string { return strconv.FormatFloat(s, 'f', 0, 64) + " s" }
func inPercent(p float64) string { return strconv.FormatFloat(p, 'f', 1, 64) + " %" }

// simGenerate writes a synthetic trace.
func simGenerate(set *flag.FlagSet) func(*Env, []string) error {
	seed := set.Uint64("seed", 1, "cli.flag.sim_seed")
	pools := set.String("pools", "", "cli.flag.sim_pools_out")
	numbers := []struct {
		name  string
		most  int
		value *int
	}{
		{"jobs", trace.JobsMax, set.Int("jobs", 10_000, "cli.flag.sim_jobs")},
		{"days", trace.GenerateDaysMax, set.Int("days", 30, "cli.flag.sim_days")},
		{"users", trace.GenerateUsersMax, set.Int("users", 60, "cli.flag.sim_users")},
		{"pool-count", trace.PoolsMax, set.Int("pool-count", 3, "cli.flag.sim_pool_count")},
		{"nodes", trace.GenerateNodesMax, set.Int("nodes", 24, "cli.flag.sim_nodes_all")},
		{"gpus-per-node", trace.GenerateNodeGPUsMax, set.Int("gpus-per-node", gpusPerNodeDefault, "cli.flag.sim_gpus")},
		{"load", trace.GenerateLoadMax, set.Int("load", 85, "cli.flag.sim_load")},
	}
	return func(env *Env, args []string) error {
		path, err := atMostOne(args)
		if err != nil {
			return err
		}
		for _, number := range numbers {
			if *number.value < 1 || *number.value > number.most {
				return usagef("cli.sim.bad_number", "flag", number.name, "value", *number.value, "min", 1, "max", number.most)
			}
		}
		value := func(i int) int { return *numbers[i].value }
		made, sizes := trace.Generate(trace.Workload{
			Seed: *seed, Jobs: value(0), Days: value(1), Users: value(2), Pools: value(3),
			Nodes: value(4), NodeGPUs: value(5), Load: value(6),
		})
		if *pools != "" {
			if err := env.writeFile(*pools, func(to io.Writer) error { return trace.WritePools(sizes, to) }); err != nil {
				return err
			}
		}
		return env.writeFile(path, made.Write)
	}
}

// writeFile writes to a file, standard output for "" and "-"; a name that ends
// in .gz is compressed.
func (env *Env) writeFile(path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return write(env.Stdout)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if strings.HasSuffix(path, ".gz") {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write(text.Bytes()); err != nil {
			return fmt.Errorf("compress %s: %w", path, err)
		}
		if err := writer.Close(); err != nil {
			return fmt.Errorf("compress %s: %w", path, err)
		}
		text = packed
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return structs.NewError(structs.CodeInvalid, "cli.sim.unwritable", "path", path, "problem", rootCause(err))
	}
	return nil
}
