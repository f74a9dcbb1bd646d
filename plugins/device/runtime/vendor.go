package runtime

import (
	"context"
	"log/slog"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/leftover"
)

// Library is the door to what knows the cards; F is what it says about them.
// Its methods may block for ever and may be called from several goroutines,
// except that Open and Close have no other call beside them.
type Library[F any] interface {
	// Open loads and initialises the library. The reason says why there is
	// none to use; it is nil when there is.
	Open() *structs.Reason
	// Read returns all facts about the node's cards.
	Read() (F, error)
	// Close releases the driver, so that a card can be reset. Open may
	// follow.
	Close()
}

// OpenFirst opens the first of several libraries that it can. The reason is
// that of the first, which says more than that of a fallback.
func OpenFirst[L interface{ Open() *structs.Reason }](libraries []L) (open L, reason *structs.Reason) {
	for _, library := range libraries {
		why := library.Open()
		if why == nil {
			return library, nil
		}
		if reason == nil {
			reason = why
		}
	}
	return open, reason
}

// Judge keeps the faults of a vendor's cards over time. The plugin calls it
// from one goroutine at a time, with its lock held: it touches nothing of the
// world. Health has most of it.
type Judge[F any] interface {
	// Resume takes over what an earlier life has stored; boot is the kernel's
	// boot id now.
	Resume(boot string)
	// Judge judges facts and returns them with what is missing: cards that
	// have vanished, or that do not say who they are. unkillable says, by card,
	// which of its unkillable processes are still there; nil: nobody has looked.
	Judge(facts *F, unkillable map[string][]int, now time.Time) (*F, []device.Event)
	// Forget ends the faults of a card: all of them by an operator's word, or
	// those that a reset ends.
	Forget(id string, all bool, now time.Time) []device.Event
	// Common returns the common record of a card; nil: there is none.
	Common(id string) *Unit
	// Unkillable lists the unkillable processes by card, of the cards that have some.
	Unkillable() map[string][]int
	// Restore reads what Stored has written; Stored is called when Mark says
	// something new.
	Restore(text []byte) error
	Stored() any
	Mark() string
}

// Vendor is what the runtime does not know of one vendor's cards.
type Vendor[F any] interface {
	Library[F]
	Judge[F]
	// Sample measures the cards of facts. It may block as the library does.
	Sample(facts *F) ([]device.DeviceStats, error)
	// Survey looks at the machine beside the library, for instance for device
	// nodes. It is called now and then, and at each look until it is complete;
	// keep is called with the lock held. facts is nil before the first look.
	Survey(facts *F) (keep func(), complete bool)
	// Buses lists the PCI addresses of the cards.
	Buses(facts *F) []string
	// Show returns what the cards are for others, with their verdicts: the
	// Devices, Attributes and Absent of a snapshot. The lock is held.
	Show(facts *F, around *Surroundings) device.Snapshot
	// Reserve says what a task needs to see devices of the newest snapshot.
	// The lock is held.
	Reserve(chosen []structs.Device) device.Reservation
	// Reset resets a card that nobody uses.
	Reset(ctx context.Context, id string, facts *F) error
}

// Glancer is a vendor that can ask for health alone, quicker than for
// everything. It is asked in the loop, between two looks.
type Glancer[F any] interface {
	// Glance returns a copy of facts with newer health; false: nothing is new.
	Glance(facts *F) (*F, bool, error)
}

// Options are a plugin's settings and its doors to the world.
type Options struct {
	Name   string // of the plugin, "nvidia"
	Vendor string // in words, "NVIDIA"
	Root   string // stands in for "/"
	// Poll is how often everything is read, Glance how often health alone is,
	// where the vendor is a Glancer.
	Poll, Glance time.Duration
	// LeftoverMemory is how many bytes may be in use on a card that nobody
	// uses, MemorySettle how long the driver may take to free memory.
	LeftoverMemory int64
	MemorySettle   time.Duration

	Logger *slog.Logger // nil: it logs nothing
	// StateDir takes the stored health; "": it is not stored.
	StateDir string
	// Proc looks processes up and ends them; nil: those of this machine.
	Proc leftover.Door
	// Quit ends the process when the library hangs for good; nil: it is never
	// ended.
	Quit func(reason string)
	// Boot is the kernel's boot id.
	Boot string

	// MayReset: this node's configuration lets cards be reset.
	MayReset bool
	// ResetsCordoned resets a card also when its worst fault is a cordon.
	ResetsCordoned bool
	// ResetClosed closes the library meanwhile: its driver refuses a reset
	// while anybody has the card open.
	ResetClosed bool
	// Free makes a program of the plugin's own let go of a card that is to be
	// reset; nil: there is none.
	Free func(ctx context.Context, id string) (resume func())
}
