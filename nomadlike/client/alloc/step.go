package alloc

import (
	"cmp"
	"syscall"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Step is the one function that decides what an event means for an
// allocation. now is the node's wall clock and is only shown to people.
func Step(s State, event Event, now structs.UnixNano) (State, []Effect) {
	m := machine{State: s, now: now}
	switch e := event.(type) {
	case Assigned:
		m.assigned(e)
	case Revoked:
		m.stop(ForceKill, e.Cause, false)
	case LeaseEnded:
		if m.Strict {
			m.stop(ForceKill, structs.NewReason("client.lease_ended"), true)
		}
	case Evicted:
		m.obey(e.Stop)
		m.stop(ForceStop, e.Cause, true)
	case Exceeded:
		m.Charged = m.Charged || m.Force == ForceNone && m.Phase != PhaseEnded
		m.stop(ForceKill, e.Cause, false)
	case Unblocked:
		if m.Phase == PhasePending {
			m.prepare()
		}
	case Progressed:
		if m.Phase == PhasePreparing && m.Force == ForceNone {
			m.report(structs.AllocReport{Status: structs.AllocPreparing, Step: e.Step, Progress: e.Percent})
		}
	case Prepared:
		m.prepared(e)
	case PrepareFailed:
		m.prepareFailed(e)
	case Started:
		m.started(e)
	case StartFailed:
		if m.Phase == PhaseStarting {
			e.Result.StartedAt = time.Time{} // its command never ran
			m.endWith(e.Result, e.Infra)
		}
	case Controlled:
		m.controlled(e.Answer)
	case Exited:
		if m.Phase.MayHaveProcesses() {
			m.exited(e.Result)
		}
	case Absent:
		m.absent()
	case Unrecoverable:
		if m.Phase.MayHaveProcesses() {
			m.unrecoverable(e)
		}
	case Acked:
		if m.Report != nil && m.Report.Status == e.Status && !m.Acked {
			m.Acked = true
			if m.Phase == PhaseEnded {
				m.give(Persist{m.of()}) // so that it is not told again after a restart
			}
		}
	}
	return m.State, m.effects
}

// Resume continues an allocation after a restart of the agent: what may have
// processes is recovered, what has ended unheard is reported again, and what
// was not started yet waits for the server to assign it again.
func Resume(s State, now structs.UnixNano) (State, []Effect) {
	m := machine{State: s, now: now}
	m.sent, m.sentCtrl = ForceNone, 0
	switch {
	case m.Phase.MayHaveProcesses():
		m.Doubtful = m.Doubtful || m.Handle == nil
		m.recovering = true
		m.give(Recover{m.of(), m.Handle})
	case m.Phase == PhaseEnded && m.Report != nil && !m.Acked:
		m.give(Report{m.of(), *m.Report})
	}
	return m.State, m.effects
}

// machine is a State being advanced.
type machine struct {
	State
	now     structs.UnixNano
	effects []Effect
}

func (m *machine) of() of { return of{m.AllocID} }

func (m *machine) give(e ...Effect) { m.effects = append(m.effects, e...) }

func (m *machine) assigned(e Assigned) {
	if m.Phase == PhaseEnded {
		// The servers lost our last word, or free a quarantine by it.
		if m.Acked && m.Report != nil && (!e.Status.Terminal() || e.Status == structs.AllocLost) {
			m.Acked = false
			m.give(Report{m.of(), *m.Report})
		}
		return
	}
	m.Released = m.Released || e.Released
	m.Control, m.Warning = e.Control, e.Warning
	switch {
	case e.Status == structs.AllocLost:
		m.stop(ForceKill, structs.NewReason("client.alloc_lost"), false)
	case e.Desired == structs.DesiredStop:
		m.obey(e.Stop)
		m.stop(ForceStop, e.Reason, false)
	case m.Phase == PhasePending && e.Status == structs.AllocRunning:
		// It ran here and nothing of it is left, not even a record: a server's
		// state from a backup knows it. It does not run a second time.
		m.unrecoverable(Unrecoverable{Cause: structs.NewReason("client.task_forgotten")})
	case m.Phase == PhasePending && !e.Blocked:
		m.prepare()
	case m.Phase == PhasePrepared && m.Released:
		m.start()
	case m.Phase == PhaseRunning:
		m.sendControl()
		m.sendWarning()
	}
}

// sendWarning sends a signal that does not end the command, once. One that this
// node does not know is not sent.
func (m *machine) sendWarning() {
	if m.Warning == nil || m.Warning.Seq == m.Warned || m.Force != ForceNone || m.recovering {
		return
	}
	m.Warned = m.Warning.Seq
	if _, err := driver.ParseSignal(m.Warning.Signal); err != nil {
		return
	}
	m.give(Persist{m.of()}, Signal{m.of(), m.Warning.Signal})
}

// sendControl sends what people want of a running command, once for each
// order. An agent that came back sends it again: a throttle may have ended with
// the one before, in the part of its cycle in which the command stands still.
func (m *machine) sendControl() {
	if m.Control == nil || m.Control.Seq == m.sentCtrl || m.Force != ForceNone || m.recovering {
		return
	}
	m.sentCtrl = m.Control.Seq
	m.give(Persist{m.of()}, Control{m.of(), *m.Control})
}

// controlled tells the servers that an order was executed, or why not. A
// command that is being stopped has other worries.
func (m *machine) controlled(answer structs.ControlAnswer) {
	if m.Phase != PhaseRunning || m.Force != ForceNone || answer.Seq != m.sentCtrl {
		return
	}
	m.report(structs.AllocReport{Status: structs.AllocRunning, StartedAt: structs.At(m.Handle.StartedAt), Control: &answer})
}

func (m *machine) prepare() {
	m.Phase = PhasePreparing
	m.give(Prepare{m.of()})
}

func (m *machine) prepared(e Prepared) {
	m.Image = e.Image
	switch {
	case m.Phase != PhasePreparing:
	case m.Force != ForceNone:
		m.end(m.stopped(structs.AllocReport{}))
	case m.Released:
		m.start()
	default:
		m.Phase = PhasePrepared
		m.report(structs.AllocReport{Status: structs.AllocPrepared})
	}
}

func (m *machine) prepareFailed(e PrepareFailed) {
	if m.Phase != PhasePreparing {
		return
	}
	r := structs.AllocReport{Status: structs.AllocFailed, Cause: e.Cause, Infra: e.Infra}
	if m.Force != ForceNone {
		r = m.stopped(structs.AllocReport{})
	}
	m.end(r)
}

func (m *machine) start() {
	m.Phase = PhaseStarting
	m.give(Persist{m.of()}, Start{m.of()})
}

func (m *machine) started(e Started) {
	if !m.Phase.MayHaveProcesses() {
		return
	}
	handle := e.Handle
	m.Handle, m.recovering = &handle, false
	m.Phase = PhaseRunning
	m.give(Persist{m.of()})
	if m.Status() != structs.AllocRunning || !m.Acked {
		m.report(structs.AllocReport{Status: structs.AllocRunning, StartedAt: structs.At(handle.StartedAt)})
	}
	m.sendStop()
	m.sendControl()
	m.sendWarning()
}

// absent is a recovery that found no trace. When the agent died between the
// decision to start and the start, the command is not started again: what
// was asked for may be executed yet, by a supervisor that is slow to
// begin, and then it would run twice. The server makes a new attempt.
func (m *machine) absent() {
	cause := structs.NewReason("client.task_vanished")
	if m.Phase == PhaseStarting {
		cause = structs.NewReason("client.start_interrupted")
	}
	if m.Phase.MayHaveProcesses() {
		m.unrecoverable(Unrecoverable{Cause: cause})
	}
}

// exited blames the node when something around the task went wrong, or when
// the task was killed in the moment in which its agent died: what is left of
// a start that nobody saw is killed by the recovery.
func (m *machine) exited(result driver.ExitResult) {
	if m.Doubtful && result.Err == nil && result.Signal == "SIGKILL" && m.Force == ForceNone {
		result.Err = structs.NewError(structs.CodeUnavailable, "client.start_interrupted")
		m.endWith(result, true)
		return
	}
	m.endWith(result, lostByNode(result))
}

func (m *machine) unrecoverable(e Unrecoverable) {
	r := structs.AllocReport{Status: structs.AllocFailed, ExitCode: driver.CodeUnknown, Cause: e.Cause, Infra: true, FinishedAt: m.now}
	if m.Handle != nil {
		r.StartedAt = structs.At(m.Handle.StartedAt)
	}
	if m.Force != ForceNone {
		r = m.stopped(r)
	}
	m.end(r)
}

// obey keeps how the servers want the allocation stopped, for a training that
// saves a checkpoint first. The first word counts: a grace that runs is not
// begun again. A signal that this node does not know is not sent.
func (m *machine) obey(order *structs.StopOrder) {
	if order == nil || m.Force != ForceNone {
		return
	}
	if _, err := driver.ParseSignal(order.Signal); err == nil {
		m.Signal = order.Signal
	}
	m.Grace = boundedGrace(order.Grace)
}

// stop asks for the end of the allocation. The first cause is kept.
func (m *machine) stop(force Force, cause *structs.Reason, infra bool) {
	if force <= m.Force || m.Phase == PhaseEnded {
		return
	}
	if m.Force == ForceNone {
		m.Cause, m.Infra = cause, infra
	}
	first := m.Force == ForceNone
	m.Force = force
	switch m.Phase {
	case PhasePending, PhasePrepared:
		m.end(m.stopped(structs.AllocReport{}))
	case PhasePreparing:
		if first {
			m.give(CancelPrepare{m.of()})
		}
	case PhaseRunning:
		m.give(Persist{m.of()})
		m.sendStop()
	case PhaseStarting, PhaseEnded: // Started will find the force
	}
}

func (m *machine) sendStop() {
	if m.Force <= m.sent || m.recovering {
		return // Started will find it
	}
	signal, grace := cmp.Or(m.Signal, StopSignal), m.Grace
	if m.Force == ForceKill {
		signal, grace = StopSignal, 0
	}
	m.sent = m.Force
	m.give(Stop{m.of(), signal, grace})
}

// endWith turns an exit result into the last report.
func (m *machine) endWith(result driver.ExitResult, infra bool) {
	r := structs.AllocReport{
		ExitCode:   result.Code,
		Signal:     signalNumber(result.Signal),
		OOMKilled:  result.OOMKilled,
		StartedAt:  structs.At(result.StartedAt),
		FinishedAt: structs.At(result.FinishedAt),
	}
	if r.StartedAt == 0 && m.Handle != nil {
		r.StartedAt = structs.At(m.Handle.StartedAt)
	}
	if r.FinishedAt == 0 {
		r.FinishedAt = m.now
	}
	switch {
	case m.Force != ForceNone:
		r = m.stopped(r)
	case result.Successful():
		r.Status = structs.AllocComplete
	default:
		r.Status, r.Infra, r.Cause = structs.AllocFailed, infra, causeOf(result)
	}
	m.end(r)
}

// stopped completes the last report of an allocation that was told to stop.
// A stop by the node itself is a failure that is charged to nobody, one for what
// the task did is charged to its job.
func (m *machine) stopped(r structs.AllocReport) structs.AllocReport {
	r.Status, r.Cause, r.Infra = structs.AllocKilled, m.Cause, false
	if m.Infra {
		r.Status, r.Infra = structs.AllocFailed, true
	}
	if m.Charged {
		r.Status = structs.AllocFailed
	}
	return r
}

func (m *machine) end(r structs.AllocReport) {
	if r.FinishedAt == 0 {
		r.FinishedAt = m.now
	}
	m.Phase = PhaseEnded
	m.EndedAt = m.now
	m.setReport(r)
	m.give(Persist{m.of()}, Report{m.of(), *m.Report}, Clean{m.of()})
}

func (m *machine) report(r structs.AllocReport) {
	m.setReport(r)
	m.give(Report{m.of(), *m.Report})
}

func (m *machine) setReport(r structs.AllocReport) {
	r.AllocID, r.Attempt = m.AllocID, m.Attempt
	m.Report, m.Acked = &r, false
}

// causeOf says in catalogue words why a task failed.
func causeOf(result driver.ExitResult) *structs.Reason {
	switch {
	case result.Err != nil:
		return &structs.Reason{ID: result.Err.ID, Params: result.Err.Params}
	case result.OOMKilled:
		return structs.NewReason("client.task_oom")
	case result.Signal != "":
		return structs.NewReason("client.task_signal", "signal", result.Signal)
	default:
		return structs.NewReason("client.task_exit", "code", result.Code)
	}
}

// lostByNode reports whether a task ended because something of the node went
// wrong around it.
func lostByNode(result driver.ExitResult) bool {
	if result.Err == nil {
		return false
	}
	switch result.Err.ID {
	case "driver.task_lost", "driver.supervisor_failed", "driver.unkillable",
		"docker.stopped_outside", "docker.killed_outside", "docker.container_gone":
		return true
	}
	return false
}

func signalNumber(name string) int {
	if name == "" {
		return 0
	}
	number, err := driver.ParseSignal(name)
	if err != nil {
		return int(syscall.SIGKILL)
	}
	return int(number)
}
