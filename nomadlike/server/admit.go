package server

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// idBytes is the randomness of an id.
const idBytes = 16

// randomID draws an id, in hexadecimal.
func (c *Config) randomID() (string, error) {
	id := make([]byte, idBytes)
	if _, err := io.ReadFull(c.Rand, id); err != nil {
		return "", fmt.Errorf("draw id: %w", err)
	}
	return hex.EncodeToString(id), nil
}

// Complete fills what a job leaves out, by the rules of its project and of its
// pool first, and reports what was chosen. It changes job in place.
func Complete(snapshot *state.Snapshot, job *structs.Job) []structs.Default {
	project := snapshot.Project(job.Project)
	chosen := structs.SharingOff(snapshot.Settings(), project).SetDefaults(job)
	chosen = append(chosen, project.SetDefaults(job)...)
	chosen = append(chosen, rulingPool(snapshot, job).SetDefaults(job)...)
	chosen = append(chosen, snapshot.ImageRecordFor(job.Task.Image).SetDefaults(job)...)
	return append(chosen, job.SetDefaults()...)
}

// rulingPool is the record by whose rules a job is admitted: of the pool that it
// names, or else of the default one; nil without a record.
func rulingPool(snapshot *state.Snapshot, job *structs.Job) *structs.Pool {
	return snapshot.Pool(job.RulingPool())
}

// restOnPool is the record by whose rules a job is admitted, as a decision's
// ground.
func restOnPool(pool *structs.Pool, job *structs.Job) structs.Rest {
	rest := structs.Rest{Kind: structs.RestPool, ID: cmp.Or(job.Placement.Pool, structs.PoolDefault)}
	if len(job.Placement.Nodes) > 0 {
		rest.ID = structs.PoolDefault
	}
	if pool != nil {
		rest.Index = pool.ModifyIndex
	}
	return rest
}

// restOnProject is the record of a job's project, as a decision's ground.
func restOnProject(project *structs.Project, job *structs.Job) structs.Rest {
	rest := structs.Rest{Kind: structs.RestProject, ID: job.Project}
	if project != nil {
		rest.Index = project.ModifyIndex
	}
	return rest
}

// restsOf are the records by whose rules a job is admitted, as a decision's grounds.
// Without settings there is nothing to rest on: what servers of a version before have
// as their log they could not compare.
func restsOf(settings *structs.Settings, pool *structs.Pool, project *structs.Project, job *structs.Job) []structs.Rest {
	rests := []structs.Rest{restOnPool(pool, job), restOnProject(project, job)}
	if settings != nil {
		rests = append(rests, structs.Rest{Kind: structs.RestSettings, ID: structs.SettingsID, Index: settings.ModifyIndex})
	}
	return rests
}

// Admitted is a job that was completed and checked, with what was seen of the same
// snapshot: a submission does neither again. Only Admit makes one. It does not
// change, may be shared between goroutines, and may be submitted more than once,
// each time as another job.
type Admitted struct {
	job      *structs.Job // nobody else has it
	defaults []structs.Default
	pool     *structs.Pool  // of the snapshot, nil without a record
	rests    []structs.Rest // the records of pool, project and settings
}

// Job returns a copy of the job as it is admitted: its defaults filled in,
// multiples of its pool's SKU as cores, memory and devices. It has no id yet, nor
// what else SubmitJob fixes. What callers change in the copy is not submitted.
func (a *Admitted) Job() *structs.Job { return a.job.Copy() }

// Defaults lists what the job left out and what was chosen for it. Callers do not
// change it.
func (a *Admitted) Defaults() []structs.Default { return a.defaults }

// Pool returns the record by whose rules the job was admitted, nil without one.
// Callers do not change it.
func (a *Admitted) Pool() *structs.Pool { return a.pool }

// Admit completes and checks a job, which stays as it is, against snapshot. The
// error reports everything that is wrong with the job, that its pool does not allow,
// or that is not available yet. It is pure: callers that only show what a job would
// do call it as those that submit it do.
//
// The state goes on after snapshot. What an admission must not outlive is compared
// where the entry is applied: the records of the pool and of the project stand in the
// guard of the submission, beside the caller's token. What a project may hold, how many urgent
// jobs it may have, names and idempotency keys are judged by the log alone. A machine
// that the job names may go, and its devices may be numbered anew, at any time after
// the entry as well as before it: such a job waits and says why.
func Admit(snapshot *state.Snapshot, job *structs.Job) (*Admitted, *structs.Error) {
	job = job.Copy()
	asked := job.Notify // not what a project has all told by default
	defaults := Complete(snapshot, job)
	if err := structs.InvalidJob(structs.CodeInvalid, job.Validate()); err != nil {
		return nil, err
	}
	if err := structs.InvalidJob(structs.CodeNotAvailable, job.NotAvailable()); err != nil {
		return nil, err
	}
	pool := rulingPool(snapshot, job)
	admitted, problems := pool.Admit(job)
	project := snapshot.Project(job.Project)
	problems = append(problems, project.Admit(admitted)...)
	settings := snapshot.Settings()
	problems = append(problems, settings.Admit(project, admitted)...)
	problems = append(problems, placeProblems(snapshot, admitted)...)
	if image := snapshot.ImageRecordFor(admitted.Task.Image); image != nil {
		problems = append(problems, image.Admit(admitted, image.SetBy)...)
	}
	problems = append(problems, fixSecrets(snapshot, admitted)...)
	problems = append(problems, fixCode(snapshot, admitted)...)
	problems = append(problems, fixData(snapshot, admitted, defaults)...)
	problems = append(problems, fixKeep(snapshot, admitted)...)
	problems = append(problems, channelProblems(snapshot, job.User, asked)...)
	if err := structs.InvalidJob(structs.CodeInvalid, problems); err != nil {
		return nil, err
	}
	nameDevices(snapshot, admitted)
	return &Admitted{job: admitted, defaults: defaults, pool: pool, rests: restsOf(settings, pool, project, admitted)}, nil
}

// channelProblems lists what keeps a job from having its owner told where it says: they
// have no such channel.
func channelProblems(snapshot *state.Snapshot, user string, asked *structs.JobNotify) []structs.Problem {
	if asked == nil || asked.To == structs.ChannelBell {
		return nil
	}
	settings := snapshot.NotifySettings(user)
	if settings != nil && settings.Channel(asked.To) != nil {
		return nil
	}
	const at = "notify"
	known := []string{structs.ChannelBell}
	if settings != nil {
		for i := range settings.Channels {
			known = append(known, settings.Channels[i].Name)
		}
	}
	return []structs.Problem{placeProblem(at+".to", "server.channel_unknown", "channel", asked.To, "known", strings.Join(known, ", "))}
}

// SetRules sets by which rules of scheduling and of ends a job goes on: those that
// every server of a protocol knows. Callers that show what a job would do set them
// as its admission would.
func SetRules(job *structs.Job, protocol int) {
	job.PatientStarts = protocol >= wire.ProtocolStarts
	job.OutsideYields = protocol >= wire.ProtocolOutside
	job.SavesAtEnds = protocol >= wire.ProtocolSaves
	job.KillsLast = protocol >= wire.ProtocolKills && job.VIP != nil
}

// nameDevices puts the ids of devices in the place of the numbers that the named
// nodes give them. From here on the ids count: numbers may change at a reboot.
func nameDevices(snapshot *state.Snapshot, job *structs.Job) {
	var nodes []*structs.Node
	for _, name := range job.Placement.Nodes {
		nodes = append(nodes, nodesCalled(snapshot, name)...)
	}
	for i := range job.Resources {
		for k := range job.Resources[i].Devices {
			request := &job.Resources[i].Devices[k]
			if len(request.IDs) == 0 || len(nodes) == 0 {
				continue
			}
			var ids []string
			for _, node := range nodes {
				for _, written := range request.IDs {
					if id := deviceCalled(node, request.Kind, written); !slices.Contains(ids, id) {
						ids = append(ids, id)
					}
				}
			}
			request.IDs = ids
		}
	}
}

// deviceCalled is the id of a node's device, of which an id or the number on the node
// is written; what names none stays as it is.
func deviceCalled(node *structs.Node, kind, written string) string {
	found := written
	for i := range node.Devices {
		switch d := &node.Devices[i]; {
		case d.ID == written:
			return written
		case d.Kind == kind && strconv.Itoa(d.Index) == written:
			found = d.ID
		}
	}
	return found
}

// placeProblems lists what a job names and is not there: its pool, or a machine
// that it chose.
func placeProblems(snapshot *state.Snapshot, job *structs.Job) []structs.Problem {
	var problems []structs.Problem
	if pool := job.Placement.Pool; pool != "" && len(job.Placement.Nodes) == 0 && snapshot.Pool(pool) == nil {
		if known := poolNames(snapshot); !slices.Contains(known, pool) {
			problems = append(problems, placeProblem("placement.pool", "server.pool_unknown", "pool", pool, "known", strings.Join(known, ", ")))
		}
	}
	if job.VIP == nil {
		return problems
	}
	chosen := make(map[string]bool, len(job.VIP.Machines))
	for i, machine := range job.VIP.Machines {
		path := structs.IndexedPath("vip.machine", i) + ".node"
		nodes := nodesCalled(snapshot, machine.Node)
		switch {
		case len(nodes) == 0:
			problems = append(problems, placeProblem(path, "server.machine_unknown", "node", machine.Node))
		case len(nodes) > 1:
			problems = append(problems, placeProblem(path, "server.machine_ambiguous", "node", machine.Node))
		case chosen[nodes[0].ID]:
			problems = append(problems, placeProblem(path, "server.machine_twice", "node", machine.Node))
		default:
			chosen[nodes[0].ID] = true
		}
	}
	return problems
}

func placeProblem(path, id string, params ...string) structs.Problem {
	p := structs.Problem{Path: path, ID: id, Params: map[string]string{"path": path}, HintID: id + ".hint"}
	for i := 0; i+1 < len(params); i += 2 {
		p.Params[params[i]] = params[i+1]
	}
	return p
}

// poolNames lists the pools that have a record or a node, by name.
func poolNames(snapshot *state.Snapshot) []string {
	names := []string{structs.PoolDefault}
	for pool := range snapshot.Pools() {
		names = append(names, pool.Name)
	}
	for node := range snapshot.Nodes() {
		names = append(names, cmp.Or(node.Pool, structs.PoolDefault))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodesCalled finds the nodes of an id or name; of several that share a name,
// those that are not gone.
func nodesCalled(snapshot *state.Snapshot, name string) []*structs.Node {
	if node := snapshot.Node(name); node != nil {
		return []*structs.Node{node}
	}
	nodes := snapshot.NodesNamed(name)
	if len(nodes) > 1 {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *structs.Node) bool {
			return n.Status == structs.NodeLost || n.Status == structs.NodeLeft
		})
	}
	return nodes
}

// roomFor bounds what one user, and one project, keep waiting or running: the
// queue of all has an end, too. Submissions at the same moment may go over it by
// a few.
func (s *Server) roomFor(job *structs.Job) *structs.Error {
	ofUser, ofProject := s.config.Store.LiveOf(job.User, job.Project)
	switch count := job.SubjobCount(); {
	case ofUser+count > state.LiveUserMax:
		return structs.NewError(structs.CodeUnavailable, "server.user_full", "user", job.User, "max", state.LiveUserMax)
	case ofProject+count > state.LiveProjectMax:
		return structs.NewError(structs.CodeUnavailable, "server.project_full", "project", job.Project, "max", state.LiveProjectMax)
	}
	return nil
}

// SubmitJob queues a job that was admitted: it fixes its id, user and time, and by
// which rules it goes on. Key, if not empty, makes a repeated submission by the same
// user the same submission; the id is then that of the first one's job. The job is
// queued only while guard, and the records of the pool and of the project by whose
// rules it was admitted, stand: after a refusal with RestChanged the caller admits it anew.
// What the id brings into the job's paths is checked here, since it is new.
func (s *Server) SubmitJob(ctx context.Context, guard structs.Guard, user, key string, admitted *Admitted) (jobID string, index uint64, err error) {
	guard.Rests = append(slices.Clip(guard.Rests), admitted.rests...)
	job := admitted.Job()
	if job.ID, err = s.config.randomID(); err != nil {
		return "", 0, err
	}
	if job.FillPaths() {
		if err := structs.InvalidJob(structs.CodeInvalid, job.Validate()); err != nil {
			return "", 0, err
		}
	}
	if s.config.Protocol() < wire.ProtocolRDMA {
		for i := range job.Resources {
			job.Resources[i].RDMAByNodes = false
		}
	}
	SetRules(job, s.config.Protocol())
	job.User, job.IdempotencyKey = user, key
	if refusal := s.roomFor(job); refusal != nil {
		return "", 0, refusal
	}
	if len(job.Source) > structs.SourceKeptMax {
		job.Source = "" // every server would keep it, in memory and in each snapshot
	}
	job.SubmittedAt = s.config.now()
	job.FixTimes(job.SubmittedAt, time.Local)
	body := &structs.JobSubmit{Job: job, Numbered: s.config.Protocol() >= wire.ProtocolAfter}
	if s.config.Protocol() >= wire.ProtocolJobBytes {
		body.BytesMax = s.config.JobBytesMax
	}
	result, index, err := s.SubmitGuarded(ctx, guard, structs.CommandJobSubmit, user, body)
	return result.JobID, index, err
}
