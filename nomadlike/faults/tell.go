package faults

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Input is what is known of a job.
type Input struct {
	Job      *structs.Job
	Attempts []*structs.Attempt // by subjob and number
	Allocs   []*structs.Allocation
	Events   []*structs.Event // of the job, oldest first
	Dropped  bool             // its oldest events are kept no more
	// Steps are what ranks logged of their steps, by allocation; of those that are
	// missing nobody answered, or they logged none.
	Steps map[string]Steps
	Now   structs.UnixNano
}

// Steps are the first and the last step that a rank logged.
type Steps struct {
	First, Last     int64
	FirstAt, LastAt structs.UnixNano
}

// Max bounds the faults that are told of one job: the newest.
const Max = 64

// namesMax bounds the nodes that one moment names.
const namesMax = 8

// Tell returns the story of each fault of a job by subjob and attempt, the newest Max of them.
func Tell(in *Input) []Fault {
	var list []Fault
	for i, attempt := range in.Attempts {
		if !isFault(attempt) {
			continue
		}
		t := teller{Input: in, attempt: attempt, gang: in.gang(attempt)}
		if i+1 < len(in.Attempts) && in.Attempts[i+1].Subjob == attempt.Subjob {
			t.next = in.Attempts[i+1]
			t.nextGang = in.gang(t.next)
		}
		list = append(list, t.tell())
	}
	return list[max(0, len(list)-Max):]
}

// Stepping returns the ranks whose steps a story wants: the first ones of the attempts
// that ended by a fault and of those that went on, the newest attempts first, at most
// so many.
func (in *Input) Stepping(most int) []*structs.Allocation {
	var list []*structs.Allocation
	for i := len(in.Attempts) - 1; i >= 0; i-- {
		attempt := in.Attempts[i]
		goesOn := i > 0 && in.Attempts[i-1].Subjob == attempt.Subjob && isFault(in.Attempts[i-1])
		if attempt.RunningAt == 0 || !goesOn && !isFault(attempt) {
			continue
		}
		gang := in.gang(attempt)
		for _, alloc := range gang[:min(len(gang), steppingRanks)] {
			if len(list) == most {
				return list
			}
			list = append(list, alloc)
		}
	}
	return list
}

// steppingRanks of an attempt are asked for their steps: usually rank 0 logs them.
const steppingRanks = 4

func isFault(attempt *structs.Attempt) bool {
	return attempt.Outcome == structs.OutcomeFailed || attempt.Outcome == structs.OutcomeLost
}

// gang is the ranks of an attempt by rank.
func (in *Input) gang(attempt *structs.Attempt) []*structs.Allocation {
	var gang []*structs.Allocation
	for _, alloc := range in.Allocs {
		if alloc.Subjob == attempt.Subjob && alloc.Attempt == attempt.Number {
			gang = append(gang, alloc)
		}
	}
	slices.SortFunc(gang, func(a, b *structs.Allocation) int { return cmp.Compare(a.Rank, b.Rank) })
	return gang
}

// teller tells one fault.
type teller struct {
	*Input
	attempt  *structs.Attempt
	gang     []*structs.Allocation
	next     *structs.Attempt // nil: there is none
	nextGang []*structs.Allocation
	fault    Fault
	before   structs.UnixNano // the newest moment that is known
}

func (t *teller) tell() Fault {
	t.fault = Fault{Subjob: t.attempt.Subjob, Attempt: t.attempt.Number, Outcome: t.attempt.Outcome, Cause: t.attempt.Cause, Rank: -1}
	first := t.first()
	if first != nil {
		t.fault.Rank, t.fault.Node, t.fault.NodeID = first.Rank, first.NodeName, first.NodeID
	}
	noticed := t.noticed()
	t.happened(first, noticed)
	t.known(noticed)
	t.agreed(first)
	t.saved()
	t.stopped()
	t.placed()
	t.running()
	t.stepped()
	t.fault.Loss = t.loss()
	return t.fault
}

// add adds a moment of which the time is known.
func (t *teller) add(stage Stage, at structs.UnixNano, reason *structs.Reason) {
	moment := Moment{Stage: stage, At: at, Reason: *reason}
	if t.before != 0 && at > t.before {
		moment.Took = structs.Duration(at.Sub(t.before))
	}
	t.before = max(t.before, at)
	t.fault.Moments = append(t.fault.Moments, moment)
}

// unknown adds a moment of which nobody knows when it was, and why.
func (t *teller) unknown(stage Stage, id string, params ...any) {
	t.fault.Moments = append(t.fault.Moments, Moment{Stage: stage, Reason: *structs.NewReason(id, params...)})
}

// first is the rank that ended first: the one that the servers noted, or the first
// that was lost.
func (t *teller) first() *structs.Allocation {
	for _, alloc := range t.gang {
		if alloc.ID == t.attempt.FirstFailed {
			return alloc
		}
	}
	for _, alloc := range t.gang {
		if alloc.Status == structs.AllocLost {
			return alloc
		}
	}
	return nil
}

// noticed is the event by which the servers knew, nil when none is kept.
func (t *teller) noticed() *structs.Event {
	for _, event := range t.Events {
		if event.Subjob != t.attempt.Subjob || event.Attempt != t.attempt.Number || t.attempt.EndingAt != 0 && event.Time > t.attempt.EndingAt {
			continue
		}
		switch event.ID {
		case "event.alloc.failed", "event.alloc.failed_signal", "event.alloc.failed_unrun", "event.alloc.lost", "event.alloc.evicted":
			return event
		case "event.alloc.killed":
			if event.AllocID == t.attempt.FirstFailed {
				return event
			}
		}
		if strings.HasPrefix(event.ID, "event.attempt.hangs") && hung(t.attempt.Cause) || event.ID == "event.alloc.slow" && slow(t.attempt.Cause) {
			return event
		}
	}
	return nil
}

func hung(cause *structs.Reason) bool {
	return cause != nil && strings.HasPrefix(cause.ID, "reason.hung")
}
func slow(cause *structs.Reason) bool { return cause != nil && cause.ID == structs.ReasonSlow }

// happened reports when the work stopped.
func (t *teller) happened(first *structs.Allocation, noticed *structs.Event) {
	switch {
	case hung(t.attempt.Cause) && noticed != nil:
		if silent, err := structs.ParseDuration(noticed.Params["silent"]); err == nil {
			t.add(StageFault, noticed.Time.Add(-silent.Std()), structs.NewReason("story.silent", "attempt", t.attempt.Number))
			return
		}
		t.unknown(StageFault, "story.unknown")
	case noticed != nil && (noticed.ID == "event.alloc.evicted" || slow(t.attempt.Cause)):
		// The rank did not end by itself: what was noticed is the beginning.
	case first == nil:
		t.unknown(StageFault, "story.unknown")
	case first.Status == structs.AllocLost || first.FinishedAt == 0:
		t.unknown(StageFault, "story.node_silent", "node", first.NodeName)
	case first.Signal != 0:
		t.add(StageFault, first.FinishedAt, structs.NewReason("story.rank_signal", "rank", first.Rank, "node", first.NodeName, "signal", first.Signal))
	case first.StartedAt == 0:
		t.add(StageFault, first.FinishedAt, structs.NewReason("story.rank_unrun", "rank", first.Rank, "node", first.NodeName))
	default:
		t.add(StageFault, first.FinishedAt, structs.NewReason("story.rank_ended", "rank", first.Rank, "node", first.NodeName, "exit_code", first.ExitCode))
	}
}

// known reports when the servers knew.
func (t *teller) known(noticed *structs.Event) {
	switch {
	case noticed != nil:
		t.add(StageNoticed, noticed.Time, &structs.Reason{ID: noticed.ID, Params: noticed.Params})
	case t.Dropped:
		t.unknown(StageNoticed, "story.events_gone")
	}
}

// agreed reports when the servers ended the attempt.
func (t *teller) agreed(first *structs.Allocation) {
	if t.attempt.EndingAt == 0 {
		return
	}
	told, signal, grace := 0, "", structs.Duration(0)
	for _, alloc := range t.gang {
		if alloc == first || alloc.Desired != structs.DesiredStop || alloc.Status == structs.AllocLost {
			continue
		}
		told++
		if alloc.Stop != nil {
			signal, grace = alloc.Stop.Signal, alloc.Stop.Grace
		}
	}
	switch {
	case told == 0:
		t.add(StageAgreed, t.attempt.EndingAt, structs.NewReason("story.agreed_alone", "attempt", t.attempt.Number))
	case signal != "":
		t.add(StageAgreed, t.attempt.EndingAt, structs.NewReason("story.agreed_signal", "attempt", t.attempt.Number, "ranks", told,
			"signal", signal, "grace", structs.FormatDuration(grace)))
	default:
		t.add(StageAgreed, t.attempt.EndingAt, structs.NewReason("story.agreed", "attempt", t.attempt.Number, "ranks", told))
	}
}

// saved reports the checkpoint that was registered when the attempt was to end.
func (t *teller) saved() {
	from := t.attempt.EndingAt
	if from == 0 || t.Job.Checkpoint == nil {
		return
	}
	if at := t.eventAt("event.alloc.evicted"); at != 0 {
		from = min(from, at) // its rank was told to save before the servers ended the attempt
	}
	for _, event := range t.Events {
		if event.ID == "event.alloc.checkpoint" && event.Subjob == t.attempt.Subjob && event.Attempt == t.attempt.Number && event.Time >= from {
			t.add(StageSaved, event.Time, &structs.Reason{ID: event.ID, Params: event.Params})
			return
		}
	}
	switch {
	case t.attempt.EndedAt == 0:
	case t.Dropped:
		t.unknown(StageSaved, "story.events_gone")
	default:
		t.unknown(StageSaved, "story.not_saved")
	}
}

// eventAt is when an event of the attempt was, 0 when it was not.
func (t *teller) eventAt(id string) structs.UnixNano {
	for _, event := range t.Events {
		if event.ID == id && event.Subjob == t.attempt.Subjob && event.Attempt == t.attempt.Number {
			return event.Time
		}
	}
	return 0
}

// stopped reports when nothing of the attempt was left, and who was last.
func (t *teller) stopped() {
	if t.attempt.EndedAt == 0 {
		t.unknown(StageStopped, "story.not_stopped")
		return
	}
	var last *structs.Allocation
	for _, alloc := range t.gang {
		if alloc.Status != structs.AllocLost && (last == nil || alloc.FinishedAt > last.FinishedAt) {
			last = alloc
		}
	}
	if last == nil || len(t.gang) < 2 {
		t.add(StageStopped, t.attempt.EndedAt, structs.NewReason("story.stopped", "attempt", t.attempt.Number))
		return
	}
	t.add(StageStopped, t.attempt.EndedAt, structs.NewReason("story.stopped_last", "attempt", t.attempt.Number, "rank", last.Rank, "node", last.NodeName))
}

// placed reports when the next attempt had its nodes, and which of them are other ones.
func (t *teller) placed() {
	if t.attempt.EndedAt == 0 {
		return
	}
	if t.next == nil {
		t.unknown(StagePlaced, "story.no_next")
		return
	}
	t.fault.Next = t.next.Number
	gone, come := others(t.gang, t.nextGang), others(t.nextGang, t.gang)
	switch {
	case len(t.nextGang) == 0 || len(gone)+len(come) == 0:
		t.add(StagePlaced, t.next.PlacedAt, structs.NewReason("story.placed", "attempt", t.next.Number))
	case len(come) == 0:
		t.add(StagePlaced, t.next.PlacedAt, structs.NewReason("story.placed_without", "attempt", t.next.Number, "gone", names(gone)))
	default:
		t.add(StagePlaced, t.next.PlacedAt, structs.NewReason("story.placed_elsewhere", "attempt", t.next.Number, "come", names(come), "gone", names(gone)))
	}
}

// others are the nodes of one gang that the other does not have.
func others(of, than []*structs.Allocation) []string {
	var list []string
	for _, alloc := range of {
		has := func(a *structs.Allocation) bool { return a.NodeID == alloc.NodeID }
		if !slices.ContainsFunc(than, has) && !slices.Contains(list, alloc.NodeName) {
			list = append(list, alloc.NodeName)
		}
	}
	return list
}

func names(list []string) string {
	if len(list) > namesMax {
		return strings.Join(list[:namesMax], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// running reports when every rank of the next attempt ran.
func (t *teller) running() {
	switch {
	case t.next == nil:
	case t.next.RunningAt != 0:
		t.add(StageRunning, t.next.RunningAt, structs.NewReason("story.running", "attempt", t.next.Number))
	case t.next.EndingAt != 0:
		t.unknown(StageRunning, "story.never_ran", "attempt", t.next.Number)
	default:
		t.unknown(StageRunning, "story.not_running", "attempt", t.next.Number)
	}
}

// stepped reports when the next attempt made its first step.
func (t *teller) stepped() {
	if t.next == nil || t.next.RunningAt == 0 {
		return
	}
	var first Steps
	for _, alloc := range t.nextGang {
		if steps, ok := t.Steps[alloc.ID]; ok && steps.FirstAt != 0 && (first.FirstAt == 0 || steps.FirstAt < first.FirstAt) {
			first = steps
		}
	}
	if first.FirstAt == 0 {
		t.unknown(StageStepped, "story.no_steps")
		return
	}
	t.add(StageStepped, first.FirstAt, structs.NewReason("story.stepped", "attempt", t.next.Number, "step", strconv.FormatInt(first.First, 10)))
}

// loss counts what the fault cost.
func (t *teller) loss() Loss {
	loss := Loss{Devices: devicesOf(t.gang), Nodes: len(t.gang), Saved: t.attempt.CheckpointAt != 0}
	ending := cmp.Or(t.attempt.EndingAt, t.Now)
	since := max(t.attempt.CheckpointAt, t.attempt.RunningAt)
	if since != 0 && ending > since {
		loss.Work = structs.Duration(ending.Sub(since))
	}
	ended := cmp.Or(t.attempt.EndedAt, t.Now)
	loss.Stopping = structs.Duration(max(0, ended.Sub(ending)))
	loss.Open = t.attempt.EndedAt == 0
	nextDevices, nextNodes := devicesOf(t.nextGang), len(t.nextGang)
	if t.next != nil {
		loss.Waiting = structs.Duration(max(0, t.next.PlacedAt.Sub(ended)))
		began := cmp.Or(t.next.RunningAt, t.next.EndingAt, t.Now)
		loss.Starting = structs.Duration(max(0, began.Sub(t.next.PlacedAt)))
		loss.Open = t.next.RunningAt == 0 && t.next.EndingAt == 0
		loss.Steps = t.repeated()
	}
	count, nextCount := loss.Devices, nextDevices
	if count == 0 && nextCount == 0 {
		count, nextCount = loss.Nodes, nextNodes
	}
	loss.Hours = (loss.Work.Std()+loss.Stopping.Std()).Hours()*float64(count) + loss.Starting.Std().Hours()*float64(nextCount)
	return loss
}

// repeated is how many steps were made again.
func (t *teller) repeated() int64 {
	last, from := int64(-1), int64(-1)
	for _, alloc := range t.gang {
		if steps, ok := t.Steps[alloc.ID]; ok {
			last = max(last, steps.Last)
		}
	}
	for _, alloc := range t.nextGang {
		switch steps, ok := t.Steps[alloc.ID]; {
		case alloc.Resume != nil && alloc.Resume.Step > 0:
			from = max(from, alloc.Resume.Step)
		case ok && alloc.Resume == nil && from < 0:
			from = steps.First - 1
		}
	}
	if last < 0 || from < 0 || from > last {
		return 0
	}
	return last - max(from, 0)
}

func devicesOf(gang []*structs.Allocation) int {
	n := 0
	for _, alloc := range gang {
		n += len(alloc.Devices)
	}
	return n
}
