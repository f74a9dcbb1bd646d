package nvidia

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/leftover"
	"nomadlike/plugins/device/runtime"
)

// Name is the plugin's name.
const Name = "nvidia"

// Times of the plugin's loop, and of its tools.
const (
	quitAfter     = runtime.QuitAfter
	openAgain     = runtime.OpenAgain
	happenedQueue = 256
	// memorySettle is how long the driver may take to free memory after the
	// last process has ended.
	memorySettle = 2 * time.Second
	// resetLimit bounds nvidia-smi, which may hang with the driver.
	resetLimit = 2 * time.Minute
)

// Options are the doors of a plugin, all of them thin.
type Options struct {
	Library Library
	Logger  *slog.Logger
	// StateDir takes the stored health; "": it is not stored.
	StateDir string
	// Proc looks processes up and ends them.
	Proc leftover.Door
	// Reset resets a card that nobody uses; nil: with nvidia-smi.
	Reset func(ctx context.Context, uuid string) error
	// Quit ends the process when the library hangs for good; nil: it is never
	// ended.
	Quit func(reason string)
	// Boot is the kernel's boot id, Booted when that was.
	Boot   string
	Booted time.Time
}

// Plugin is the device plugin for NVIDIA cards. It implements device.Plugin
// and device.Healer.
type Plugin = runtime.Plugin[Facts]

// cards is what the runtime does not know of NVIDIA's cards.
type cards struct {
	Library
	*Health
	s     *Settings
	reset func(ctx context.Context, uuid string) error
	nodes Nodes
	mps   *mpsDaemons
	// mpsDown says which MPS daemons are not up, and why, by the directory of
	// their pipes; mpsKnown that they have been looked at.
	mpsDown  map[string]*structs.Reason
	mpsKnown bool
}

var _ runtime.Vendor[Facts] = (*cards)(nil)

// Start makes a plugin and begins to look; Close ends it.
func Start(s *Settings, o Options) *Plugin {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Reset == nil {
		o.Reset = smiReset(s.SMI)
	}
	c := &cards{Library: o.Library, Health: &Health{}, s: s, reset: o.Reset, mps: &mpsDaemons{program: s.MPSControl, dir: o.StateDir, log: o.Logger}}
	p := runtime.Start(c, runtime.Options{
		Name: Name, Vendor: "NVIDIA", Root: s.Root, Poll: s.poll, LeftoverMemory: s.LeftoverMemory, MemorySettle: memorySettle,
		Logger: o.Logger, StateDir: o.StateDir, Proc: o.Proc, Quit: o.Quit, Boot: o.Boot,
		MayReset: s.Reset != runtime.ResetNever, ResetClosed: true, Free: c.mps.without,
	})
	hear := func(e Happening) { c.hear(p, o.Logger, e) }
	p.Beside(func(ctx context.Context) { c.listen(ctx, p, hear) })
	if s.Kernel != kernelNone {
		p.Beside(func(ctx context.Context) { c.listenKernel(ctx, p, o, hear) })
	}
	if slices.ContainsFunc(s.Share, func(share Share) bool { return share.How == device.SharingMPS }) || mpsRecorded(o.StateDir) {
		p.Beside(func(ctx context.Context) { c.tendMPS(ctx, p) })
	}
	return p
}

// Sample measures the cards, which the library knows from its newest Read.
func (c *cards) Sample(*Facts) ([]device.DeviceStats, error) { return c.Library.Sample() }

// Judge judges facts, see Health.Step.
func (c *cards) Judge(facts *Facts, unkillable map[string][]int, now time.Time) (*Facts, []device.Event) {
	events := c.Step(Input{Now: now, Facts: facts, Unkillable: unkillable}, c.s.actions)
	return c.Complete(facts), events
}

// Restore reads what an earlier life has stored.
func (c *cards) Restore(text []byte) error {
	health, err := decodeHealth(text)
	if err == nil {
		*c.Health = *health
	}
	return err
}

// Stored is what is stored.
func (c *cards) Stored() any { return c.Health }

// Survey reads the device nodes, and the libraries of the driver once its
// version is known.
func (c *cards) Survey(facts *Facts) (keep func(), complete bool) {
	driver := ""
	if facts != nil {
		driver = facts.Driver
	}
	nodes := ReadNodes(c.s.Root, driver)
	return func() { c.nodes = nodes }, facts != nil && len(nodes.Common) > 0
}

// Buses lists the PCI addresses of the cards.
func (c *cards) Buses(facts *Facts) []string {
	buses := make([]string, len(facts.Cards))
	for i := range facts.Cards {
		buses[i] = facts.Cards[i].Bus
	}
	return buses
}

// Show makes the devices of a snapshot.
func (c *cards) Show(facts *Facts, around *Surroundings) device.Snapshot {
	snapshot := device.Snapshot{Devices: Devices(facts, around, c.s), Attributes: nodeAttributes(facts, "nvml")}
	c.Apply(snapshot.Devices)
	c.cordonMPS(snapshot.Devices)
	if len(snapshot.Devices) == 0 {
		snapshot.Absent = noDevices(facts)
	}
	return snapshot
}

// Reserve says what a task needs to see devices.
func (c *cards) Reserve(chosen []structs.Device) device.Reservation {
	return reserve(chosen, &c.nodes, c.s)
}

// Reset resets a card.
func (c *cards) Reset(ctx context.Context, uuid string, _ *Facts) error { return c.reset(ctx, uuid) }

// noDevices says why a library that works names no devices.
func noDevices(facts *Facts) *structs.Reason {
	for i := range facts.Cards {
		if facts.Cards[i].MIG {
			return structs.NewReason("device.nvidia_mig_empty")
		}
	}
	return structs.NewReason("device.nvidia_no_cards")
}

// whenReady waits for the first facts, and then does something again and again,
// with pauses, as long as the plugin lives.
func (c *cards) whenReady(ctx context.Context, p *Plugin, something func() (pause bool)) {
	select {
	case <-p.Ready():
	case <-ctx.Done():
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for ctx.Err() == nil {
		if !something() {
			continue
		}
		pause.Reset(c.s.poll)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// listen waits for the library's events.
func (c *cards) listen(ctx context.Context, p *Plugin, hear func(Happening)) {
	c.whenReady(ctx, p, func() bool {
		happened, err := runtime.Call(p, runtime.CallWait, func() ([]Happening, error) { return c.Wait(runtime.WaitEach) })
		for _, each := range happened {
			hear(each)
		}
		return err != nil // no events on this machine, or not now: polling goes on
	})
}

// listenKernel follows the kernel's messages.
func (c *cards) listenKernel(ctx context.Context, p *Plugin, o Options, hear func(Happening)) {
	told := false
	c.whenReady(ctx, p, func() bool {
		log, err := openKernelLog(c.s.Kernel)
		if err == nil {
			err = log.follow(ctx, o.Booted, hear)
		}
		if err != nil && !told && ctx.Err() == nil {
			told = true
			o.Logger.Warn("the kernel's messages cannot be read; XIDs come from the library only", logkey.Error, err)
		}
		return true
	})
}

// hear takes one event and publishes at once.
func (c *cards) hear(p *Plugin, log *slog.Logger, e Happening) {
	if e.XID == 0 {
		p.LookSoon()
		return
	}
	events := p.Tell(func(now time.Time) []device.Event {
		return c.Step(Input{Now: now, Happened: []Happening{e}}, c.s.actions)
	})
	for _, event := range events {
		log.Warn("NVIDIA card reports an error", logkey.Reason, event.DeviceID+" "+event.Code)
	}
}

// smi is the vendor's own tool.
func smi(path string) *runtime.Tool {
	return &runtime.Tool{
		Name: "nvidia-smi", Path: path, Limit: resetLimit,
		Usual: []string{"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"},
	}
}

// smiReset resets with the vendor's own tool.
func smiReset(path string) func(context.Context, string) error {
	return func(ctx context.Context, uuid string) error {
		_, err := smi(path).Run(ctx, "--gpu-reset", "--id="+uuid)
		return err
	}
}
