package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/leftover"
)

// verdicts is what the record asks a vendor, always with its lock held.
type verdicts[F any] interface {
	Judge[F]
	Show(facts *F, around *Surroundings) device.Snapshot
	Reserve(chosen []structs.Device) device.Reservation
}

// record is what is known of the cards: the newest facts, what is wrong, and
// what nobody has been told yet. It alone calls the vendor's judge, and
// publishes. Its methods may be called from any goroutine, and wait for
// nothing but processes looked up.
type record[F any] struct {
	v        verdicts[F]
	plugin   string
	proc     leftover.Door
	feed     *device.Feed
	saveSoon func() // does not block

	mu struct {
		sync.Mutex
		facts  *F // newest, completed by Judge; nil: none yet
		around *Surroundings
		absent *structs.Reason
		blind  *structs.Reason
		events []device.Event
		// heals counts how often faults were forgotten, healed has that count by
		// card: what was read of a card before says nothing after it, or a fault
		// that is over would come back. read is the count at which facts were read.
		heals  uint64
		healed map[string]uint64
		read   uint64
	}
}

func newRecord[F any](v verdicts[F], plugin string, proc leftover.Door) *record[F] {
	r := &record[F]{
		v: v, plugin: plugin, proc: proc, saveSoon: func() {},
		feed: device.NewFeed(device.Snapshot{At: time.Now(), Blind: structs.NewReason("device.starting", "plugin", plugin)}),
	}
	r.mu.healed, r.mu.around = make(map[string]uint64), &Surroundings{}
	return r
}

// newest returns the newest facts, which nobody changes; nil: there are none yet.
func (r *record[F]) newest() *F {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.facts
}

// heals is how often faults were forgotten so far.
func (r *record[F]) heals() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.heals
}

// measurable reports whether there is something to measure, and to measure it
// with.
func (r *record[F]) measurable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.facts != nil && r.mu.absent == nil
}

// choose finds devices of the newest snapshot.
func (r *record[F]) choose(ids []string) ([]structs.Device, error) {
	all := r.feed.Newest().Devices
	chosen := make([]structs.Device, 0, len(ids))
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d structs.Device) bool { return d.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("device %.80q: %w", id, device.ErrUnknownDevice)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// reserve says what a task needs to see devices.
func (r *record[F]) reserve(ids []string) (device.Reservation, error) {
	chosen, err := r.choose(ids)
	if err != nil {
		return device.Reservation{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.v.Reserve(chosen), nil
}

// update makes a change of the vendor's own with the lock held, and returns
// what it does.
func (r *record[F]) update(change func() (publish bool)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return change()
}

// tell takes events that the driver has reported.
func (r *record[F]) tell(take func(now time.Time) []device.Event) []device.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := take(time.Now())
	r.mu.events = append(r.mu.events, events...)
	return events
}

// opened notes that the library was opened, or why there is none to open.
func (r *record[F]) opened(absent *structs.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.absent, r.mu.blind = absent, nil
}

// blinded notes that the library does not answer; news: it did before.
func (r *record[F]) blinded(why *structs.Reason) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news = r.mu.blind == nil
	r.mu.blind = why
	return news
}

// settle notes where cards sit. keep is called with the lock held.
func (r *record[F]) settle(around *Surroundings, keep func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.around = around
	keep()
}

// looked judges what was read when faults had been forgotten heals times.
// overtaken: some were meanwhile, so that it says nothing. first: these are the
// first facts.
func (r *record[F]) looked(facts *F, heals uint64) (first, overtaken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.blind = nil
	if r.mu.heals != heals {
		return false, true
	}
	first = r.mu.facts == nil
	r.mu.read = heals
	r.judgeLocked(facts, r.stillUnkillableLocked())
	return first, false
}

// glanced judges newer health; nil: nothing is new. It reports whether there is
// something to publish.
func (r *record[F]) glanced(facts *F, heals uint64) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.heals != heals {
		return false
	}
	hung := r.mu.blind != nil
	r.mu.blind = nil
	if facts != nil {
		r.judgeLocked(facts, r.stillUnkillableLocked())
	}
	return facts != nil || hung
}

// judgeLocked makes facts the newest.
func (r *record[F]) judgeLocked(facts *F, unkillable map[string][]int) {
	full, events := r.v.Judge(facts, unkillable, time.Now())
	r.mu.facts = full
	r.mu.events = append(r.mu.events, events...)
}

// stillUnkillableLocked looks which unkillable processes are still there.
func (r *record[F]) stillUnkillableLocked() map[string][]int {
	unkillable := r.v.Unkillable()
	for id, pids := range unkillable {
		unkillable[id] = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !r.proc.Look(pid).Exists })
	}
	return unkillable
}

// worst returns what a card asks for.
func (r *record[F]) worst(id string) device.Action {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.worstLocked(id)
}

func (r *record[F]) worstLocked(id string) device.Action {
	if unit := r.v.Common(id); unit != nil {
		return unit.Worst()
	}
	return device.ActNone
}

// forget ends the faults of cards by an operator's word.
func (r *record[F]) forget(cards []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range cards {
		r.forgetLocked(id, true)
	}
}

// forgetLocked forgets the faults of a card, see Judge.Forget.
func (r *record[F]) forgetLocked(id string, all bool) {
	r.mu.heals++
	r.mu.healed[id] = r.mu.heals
	r.mu.events = append(r.mu.events, r.v.Forget(id, all, time.Now())...)
}

// reset judges a card that was reset by what was read after it, and returns
// what it still asks for.
func (r *record[F]) reset(id string, facts *F) device.Action {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(id, false)
	r.mu.read = r.mu.heals
	r.judgeLocked(facts, nil)
	return r.worstLocked(id)
}

// reaped writes what dead tasks have left into the health of cards, except of
// those whose faults were forgotten since heals. stale: the facts are older
// than some card's health, so that nothing is judged before the next look.
func (r *record[F]) reaped(left []leavings, heals uint64) (stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.facts == nil {
		return false
	}
	for _, each := range left {
		if unit := r.v.Common(each.card); unit != nil && r.mu.healed[each.card] <= heals {
			unit.Unkillable, unit.Suspect = each.unkillable, each.suspect
		}
	}
	if r.mu.read != r.mu.heals {
		return true
	}
	r.judgeLocked(r.mu.facts, nil)
	return false
}

// publish makes a snapshot of all that is known, and has health stored that
// has changed.
func (r *record[F]) publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := device.Snapshot{}
	if r.mu.facts != nil {
		snapshot = r.v.Show(r.mu.facts, r.mu.around)
	}
	snapshot.At, snapshot.Blind, snapshot.Events = time.Now(), r.mu.blind, r.mu.events
	if r.mu.absent != nil {
		snapshot.Absent = r.mu.absent
	}
	r.mu.events = nil
	if r.mu.blind != nil {
		snapshot.Devices = device.Cordoned(snapshot.Devices, r.mu.blind)
	}
	r.feed.Publish(snapshot)
	r.saveSoon()
}

// unsaved returns the health as it is stored, with its mark; no text: it is
// marked as what was saved.
func (r *record[F]) unsaved(saved string) (mark string, text []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mark = r.v.Mark(); mark == saved {
		return mark, nil, nil
	}
	text, err = json.Marshal(r.v.Stored())
	return mark, text, err
}
