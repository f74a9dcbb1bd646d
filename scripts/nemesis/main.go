// Nemesis attacks a cluster of the real binary and looks whether what was
// promised holds. It is run by `make nemesis`, as root.
//
// Flow: servers and clients start as hosts of their own, network namespaces
// with a small disk each. People work with them: they submit jobs with keys,
// write and read registers, stop jobs, watch events, through every agent. A plan
// drawn from the seed then strikes, one fault after the other; after each the
// cluster must be well again within a minute. At the end everything is healed,
// all jobs must end, and the checks look at the whole history: acknowledged
// writes and jobs (I4, I5), linearizable registers (I21), attempts and gangs (I1,
// I2, I3, I9), nodes and quotas never overbooked (I6 to I8), jobs that end as they
// should (I10, I11), nothing left behind (I12), equal replicas (I13), events
// without a gap (I20), no write without a majority (I28), bounded agents (I30),
// agents that live unless their disk failed.
// The report lists, for each kind of fault, the longest gap of writes and how
// long everything took to recover.
//
// Limits: it runs in true time, so a seed repeats the attacks and not the
// interleaving. Thresholds of snapshots are small in the binary that it builds,
// so that a server that was away gets one; `-plant` builds in a known defect that
// a run must find.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// recoveryMax bounds how long after the end of a fault the cluster may be unhealthy,
// on a machine that has processors for it.
const recoveryMax = time.Minute

// slownessMax bounds how much longer everything may take on a busy machine.
const slownessMax = 10

// slowness is how many processes want each processor of this machine, at least 1:
// the bounds of time grow with it, since what is judged is whether the cluster
// comes back, and a machine that has more to do than it can is no defect of it.
func slowness() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	newest, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(newest, 64)
	if err != nil {
		return 1
	}
	return min(slownessMax, max(1, load/float64(runtime.NumCPU())))
}

// patient is a bound of time as it is on this machine now.
func patient(bound time.Duration) time.Duration {
	return time.Duration(slowness() * float64(bound))
}

func main() {
	os.Exit(run())
}

// Exit codes, so that a script can tell them apart.
const (
	exitHeld    = 0
	exitBroken  = 1 // an invariant does not hold
	exitUnable  = 2 // the run could not be made
	exitUnfound = 3 // a planted defect was not found
)

type options struct {
	seed    uint64
	minutes float64
	servers int
	clients int
	only    string
	plant   string
	sought  []string // invariants of which one finding ends the run
	keep    bool
	list    bool
	build   string  // build the agent that is attacked into this file, and end
	binary  string  // attack this one
	cgroups bool    // agents see the machine's cgroups
	pace    float64 // how much slower people work
}

func run() int {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "names the attacks")
	flag.Float64Var(&o.minutes, "minutes", 5, "length of the attacks")
	flag.IntVar(&o.servers, "servers", 3, "servers")
	flag.IntVar(&o.clients, "clients", 3, "clients")
	flag.StringVar(&o.only, "only", "", "only these faults, comma-separated")
	flag.StringVar(&o.plant, "plant", "", "build this defect in and expect it to be found; all: one after the other; with -build nothing is attacked")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs of agents also when all held")
	flag.BoolVar(&o.list, "list", false, "list faults and plants")
	flag.StringVar(&o.build, "build", "", "build the agent that is attacked into this file and end, for a machine without a compiler")
	flag.StringVar(&o.binary, "binary", "", "attack this agent, which -build made, instead of building one")
	flag.BoolVar(&o.cgroups, "cgroups", false, "agents see the machine's cgroups: tasks are bounded by them")
	flag.Float64Var(&o.pace, "pace", 1, "people work so much slower than on a machine with two fast processors")
	flag.Parse()
	if o.list {
		for _, f := range faults() {
			fmt.Printf("fault  %s\n", f.name)
		}
		for _, p := range plants() {
			fmt.Printf("plant  %-24s %s\n", p.name, p.text)
		}
		return exitHeld
	}
	if o.build != "" {
		if err := buildInto(context.Background(), o.build, o.plant); err != nil {
			fmt.Fprintln(os.Stderr, "nemesis:", err)
			return exitUnable
		}
		return exitHeld
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "nemesis: network namespaces need root")
		return exitUnable
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.plant != "" {
		return findPlants(ctx, o)
	}
	binary, err := filepath.Abs(o.binary) // agents start elsewhere
	if err != nil {
		fmt.Fprintln(os.Stderr, "nemesis:", err)
		return exitUnable
	}
	if o.binary == "" {
		var err error
		if binary, err = build(ctx, nil); err != nil {
			fmt.Fprintln(os.Stderr, "nemesis:", err)
			return exitUnable
		}
		defer os.RemoveAll(filepath.Dir(binary))
	}
	r, err := attack(ctx, o, binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nemesis:", err)
		return exitUnable
	}
	r.print(os.Stdout)
	if len(r.findings) > 0 {
		return exitBroken
	}
	return exitHeld
}

// clientConfig sets for every client cores, memory and cards to promise.
const clientConfig = `client {
  device "nemesis/card" {
    count = 4
  }
}
`

// attack makes one run with a binary.
func attack(ctx context.Context, o options, binary string) (_ *report, err error) {
	dir, err := os.MkdirTemp("/tmp", "nemesis-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	r := &report{seed: o.seed, dir: dir}
	defer func() {
		if err == nil && len(r.findings) == 0 && !o.keep {
			_ = os.RemoveAll(dir)
		}
	}()
	config := filepath.Join(dir, "client.hcl")
	if err := os.WriteFile(config, []byte(clientConfig), 0o644); err != nil {
		return nil, err
	}
	c, err := newCluster(binary, dir, o.servers, o.clients)
	defer c.close()
	if err != nil {
		return nil, err
	}
	c.cgroups = o.cgroups
	say("seed %d: %d servers and %d clients start, logs in %s", o.seed, o.servers, o.clients, dir)
	if err := c.form(ctx, config); err != nil {
		return nil, err
	}
	h := newHistory(time.Now())
	ctx, h.enough = context.WithCancel(ctx)
	defer h.enough()
	h.sought = o.sought
	load, endLoad := context.WithCancel(ctx)
	defer endLoad()
	watch, endWatch := context.WithCancel(ctx)
	defer endWatch()
	w := &workload{c: c, h: h, seed: o.seed, length: time.Duration(o.minutes * float64(time.Minute)), pace: o.pace}
	if err := w.start(load, watch); err != nil {
		return nil, err
	}
	s := newSampler(c, h)
	for _, submitted := range h.mu.submissions { // nobody else runs yet that adds strict ones
		if strings.HasPrefix(submitted.Name, "stayer-") && strings.HasSuffix(submitted.Name, "1") {
			s.strict[submitted.ID] = true
		}
	}
	sampling, endSampling := context.WithCancel(ctx)
	defer endSampling()
	sampled := make(chan struct{})
	go func() { s.run(sampling); close(sampled) }()

	for i, step := range r.steps(o) {
		if ctx.Err() != nil {
			break
		}
		r.add(c.turn(ctx, h, s, step, rand.New(rand.NewPCG(o.seed, uint64(i)))))
	}
	endLoad()
	w.wait()
	if ctx.Err() != nil { // found, or interrupted: the end of it would show nothing
		return r.ended(ctx, h)
	}
	say("all is healed; waiting for the end of all jobs")
	w.settle(ctx)
	if ctx.Err() != nil {
		return r.ended(ctx, h)
	}
	_ = wait(ctx, patient(30*time.Second), "nothing left", func(context.Context) bool { return len(c.leftovers(s.allocs())) == 0 })
	for _, text := range c.leftovers(s.allocs()) {
		h.find("I12", text)
	}
	for _, text := range c.replicas(ctx) {
		h.find("I13", text)
	}
	jobs, err := w.jobs(ctx)
	if ctx.Err() != nil {
		return r.ended(ctx, h)
	}
	if err != nil {
		return nil, fmt.Errorf("list the jobs of the end: %w", err)
	}
	pass(ctx, time.Second) // the watchers' last lines
	endWatch()
	endSampling()
	<-sampled
	w.eyes.Wait()
	if h.isBroken() {
		keepState(ctx, c)
	}
	c.exits(h)
	for _, host := range c.hosts {
		_ = host.end(syscall.SIGTERM)
	}
	for _, text := range c.leftoverMounts() {
		h.find("I12", text)
	}
	c.panics(h)
	r.judge(h, w, s, jobs)
	return r, nil
}

// ended is what is told of a run that ended before its time: it has found what was
// sought, or somebody interrupted it.
func (r *report) ended(ctx context.Context, h *history) (*report, error) {
	if !h.isFound() {
		return nil, fmt.Errorf("attack: %w", ctx.Err())
	}
	r.findings = h.mu.findings
	return r, nil
}

// steps is the plan of a run, cut down to the faults that were asked for.
func (r *report) steps(o options) []step {
	kinds := faults()
	if o.only != "" {
		names := strings.Split(o.only, ",")
		kinds = slices.DeleteFunc(kinds, func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	return plan(o.seed, time.Duration(o.minutes*float64(time.Minute)), kinds)
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// turn strikes once, heals, and waits until the cluster is well.
func (c *cluster) turn(ctx context.Context, h *history, s *sampler, step step, chance *rand.Rand) turn {
	kinds := faults()
	kind := kinds[slices.IndexFunc(kinds, func(f fault) bool { return f.name == step.Fault })]
	strike := &strike{cluster: c, history: h, chance: rand.New(rand.NewPCG(step.Draw, chance.Uint64())), lasts: step.Lasts}
	h.during(kind.name)
	defer h.during("")
	t := turn{fault: kind.name, at: time.Now()}
	s.freeze(kind.name == "freeze-client-machine" || strings.HasPrefix(kind.name, "pause"))
	victims := c.ranks()
	if err := kind.strike(ctx, strike); err != nil {
		h.find("nemesis", fmt.Sprintf("%s: %v", kind.name, err))
	}
	struck := time.Now()
	if kind.has(exits) {
		for _, host := range strike.hit {
			host.mayEnd()
		}
	}
	t.hit = names(strike.hit)
	pass(ctx, step.Lasts)
	if kind.has(writes) && step.Lasts >= goesOnAfter {
		_ = wait(ctx, patient(goesOnAfter)-time.Since(struck), "a write", func(context.Context) bool { return h.ackedWithin(struck.Add(goesOnAfter/2), time.Now()) > 0 })
	}
	if kind.has(loses) {
		t.rerun = c.rerun(s, strike.hit, victims, t.at)
	}
	healed := time.Now()
	if count := h.ackedWithin(struck, healed); kind.has(halts) && count > 0 {
		h.find("I28", fmt.Sprintf("%s: %d writes were acknowledged that began when most servers were down", kind.name, count))
	}
	if kind.has(writes) && h.ackedWithin(struck.Add(goesOnAfter/2), healed) == 0 && step.Lasts >= goesOnAfter && ctx.Err() == nil {
		h.find("writes", fmt.Sprintf("%s of %s: no write was acknowledged for %.0f s, and most servers are whole", kind.name, strings.Join(t.hit, ","), healed.Sub(struck.Add(goesOnAfter/2)).Seconds()))
	}
	endTelling := c.tellUnwell(ctx, kind.name)
	if err := strike.heal(ctx); err != nil {
		h.find("nemesis", fmt.Sprintf("end of %s: %v", kind.name, err))
	}
	well := func(ctx context.Context) bool {
		c.exits(h)
		for _, host := range c.hosts {
			if !host.running() {
				if err := c.start(host); err != nil {
					h.find("nemesis", err.Error())
				}
			}
		}
		return c.well(ctx)
	}
	if err := wait(ctx, patient(recoveryMax), "a well cluster after "+kind.name, well); err != nil && ctx.Err() == nil {
		why := c.unwell(ctx)
		h.find("recovery", err.Error()+": "+why)
		say("not well: %s", why)
	}
	endTelling()
	s.freeze(false)
	t.well = time.Since(healed)
	t.gap = h.gap(t.at, time.Now())
	c.exits(h)
	say("%-24s %-10s lasted %5.1f s  well after %5.1f s  no write for %5.1f s%s", t.fault, strings.Join(t.hit, ","), healed.Sub(t.at).Seconds(), t.well.Seconds(), t.gap.Seconds(), t.rerunText())
	pass(ctx, step.Rest)
	return t
}
