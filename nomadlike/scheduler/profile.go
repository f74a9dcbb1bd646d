package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// profilesMax bounds the shapes whose times are remembered.
const profilesMax = 32

// profile remembers for one alternative when each node is expected to have room
// for a rank, or has it by time limits.
type profile struct {
	need    int32
	bounded bool
	used    uint64             // serial of the newest pass that asked
	mark    int                // touches of nodes that were looked at
	times   []structs.UnixNano // never: could not even when empty; whenever: nobody knows; 0: now
	able    int                // nodes that could
}

// profileOf finds the profile of an alternative, as of now.
func (b *Board) profileOf(n *need, bounded bool) *profile {
	var prof *profile
	oldest := 0
	for i, other := range b.promises.profiles {
		if other.need == n.at && other.bounded == bounded {
			prof = other
			break
		}
		if other.used < b.promises.profiles[oldest].used {
			oldest = i
		}
	}
	switch {
	case prof != nil:
	case len(b.promises.profiles) < profilesMax:
		prof = &profile{need: n.at, bounded: bounded, mark: -1}
		b.promises.profiles = append(b.promises.profiles, prof)
	default:
		prof = &profile{need: n.at, bounded: bounded, mark: -1}
		b.promises.profiles[oldest] = prof
	}
	prof.used = b.serial
	for len(prof.times) < len(b.nodes.states) {
		prof.times = append(prof.times, never)
	}
	if prof.mark < b.nodes.touchesFrom {
		for at := range b.nodes.states {
			prof.look(b, n, int32(at))
		}
	} else {
		for _, at := range b.nodes.touches[prof.mark-b.nodes.touchesFrom:] {
			prof.look(b, n, at)
		}
	}
	prof.mark = b.nodes.touchesFrom + len(b.nodes.touches)
	return prof
}

// look brings a profile up to date with a node.
func (prof *profile) look(b *Board, n *need, at int32) {
	when := b.freeAt(n, at, prof.bounded)
	if was := prof.times[at]; was == never && when != never {
		prof.able++
	} else if was != never && when == never {
		prof.able--
	}
	prof.times[at] = when
}

// cloneProfiles copies the profiles that are in use as of a pass.
func (p *promises) cloneProfiles(serial uint64) []*profile {
	copied := make([]*profile, 0, len(p.profiles))
	for _, prof := range p.profiles {
		if prof.used+profileIdle < serial {
			continue
		}
		own := *prof
		own.times = slices.Clone(prof.times)
		copied = append(copied, &own)
	}
	return copied
}

// profileIdle is after how many passes a clone leaves out a profile.
const profileIdle = 4

// freeAt estimates when a node will have room for a rank, from the ends of the
// gangs that stand there: those that are expected, or those that limits set.
func (b *Board) freeAt(n *need, at int32, bounded bool) structs.UnixNano {
	if !b.nodes.able(n, at) {
		return never
	}
	s := &b.nodes.states[at]
	if s.shut {
		return whenever
	}
	rank, room := b.nodes.rankOn(n, at), b.nodes.room(at)
	mixed := b.nodes.builds.list[s.build].mixed && rank.Devices > 0
	if mixed {
		room.Devices = b.nodes.meeting(n, at)
	}
	if rank.Fits(room) {
		return 0
	}
	var few [16]leave
	leaves := few[:0]
	for record := s.seats; record >= 0; record = b.nodes.occupants[record].next {
		e := &b.queue.entries[b.nodes.occupants[record].entry]
		leaves = append(leaves, leave{b.queue.runs[e.run].endBy(bounded), b.nodes.occupants[record]})
	}
	slices.SortFunc(leaves, func(a, b leave) int { return cmp.Compare(a.end, b.end) })
	for i := range leaves {
		gang := b.queue.entries[leaves[i].occupant.entry].gang
		left := gang.demands[leaves[i].occupant.rank]
		if mixed {
			left.Devices = int64(b.nodes.floor.MeetingIn(&n.Need, &gang.seats[leaves[i].occupant.rank]))
		}
		if room = room.Add(left); rank.Fits(room) {
			if leaves[i].end == never {
				return whenever
			}
			return leaves[i].end
		}
	}
	return whenever // used by what nobody here knows
}

// leave is a gang that leaves a node.
type leave struct {
	end      structs.UnixNano
	occupant occupant
}
