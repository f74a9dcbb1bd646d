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

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// idBytes is the randomness of an id.
const idBytes = 16

// randomID draws an id, in hexadecimal.
func (s *Server) randomID() (string, error) {
	id := make([]byte, idBytes)
	if _, err := io.ReadFull(s.config.Rand, id); err != nil {
		return "", fmt.Errorf("draw id: %w", err)
	}
	return hex.EncodeToString(id), nil
}

// Complete fills what a job leaves out, by the rules of its project and of its
// pool first, and tells what was chosen. It changes job in place.
func Complete(snapshot *state.Snapshot, job *structs.Job) []structs.Default {
	chosen := snapshot.Project(job.Project).SetDefaults(job)
	chosen = append(chosen, PoolOf(snapshot, job).SetDefaults(job)...)
	return append(chosen, job.SetDefaults()...)
}

// PoolOf is the record by whose rules a job is admitted: of the pool that it
// names, or else of the default one; nil without a record.
func PoolOf(snapshot *state.Snapshot, job *structs.Job) *structs.Pool {
	return snapshot.Pool(job.RulingPool())
}

// restOnPool is the record by whose rules a job is admitted, as a decision's
// ground.
func restOnPool(snapshot *state.Snapshot, job *structs.Job) structs.Rest {
	rest := structs.Rest{Kind: structs.RestPool, ID: cmp.Or(job.Placement.Pool, structs.PoolDefault)}
	if len(job.Placement.Nodes) > 0 {
		rest.ID = structs.PoolDefault
	}
	if pool := PoolOf(snapshot, job); pool != nil {
		rest.Index = pool.ModifyIndex
	}
	return rest
}

// CheckJob returns a copy of job as it would be admitted: its defaults filled in,
// multiples of its pool's SKU as cores, memory and devices. Or it tells
// everything that is wrong with the job, that its pool does not allow, or that
// is not available yet. What a project may hold, and how many urgent jobs it may
// have, the log decides.
func CheckJob(snapshot *state.Snapshot, job *structs.Job) (*structs.Job, *structs.Error) {
	checked := job.Copy()
	Complete(snapshot, checked)
	if err := structs.InvalidJob(structs.CodeInvalid, checked.Validate()); err != nil {
		return checked, err
	}
	if err := structs.InvalidJob(structs.CodeNotAvailable, checked.NotAvailable()); err != nil {
		return checked, err
	}
	admitted, problems := PoolOf(snapshot, checked).Admit(checked)
	problems = append(problems, placeProblems(snapshot, admitted)...)
	nameDevices(snapshot, admitted)
	return admitted, structs.InvalidJob(structs.CodeInvalid, problems)
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

// SubmitJob admits a job: it fills defaults, validates, fixes id, user and
// time, and queues it. The caller's job is not changed. Key, if not empty,
// makes a repeated submission by the same user the same submission; the id is
// then that of the first one's job. The job is queued only while guard, and the
// record of the pool by whose rules it was admitted, stand.
func (s *Server) SubmitJob(ctx context.Context, guard structs.Guard, user, key string, job *structs.Job) (jobID string, index uint64, err error) {
	snapshot := s.config.Store.Snapshot()
	guard.Rests = append(slices.Clip(guard.Rests), restOnPool(snapshot, job))
	admitted, problem := CheckJob(snapshot, job)
	if problem != nil {
		return "", 0, problem
	}
	if admitted.ID, err = s.randomID(); err != nil {
		return "", 0, err
	}
	if admitted.FillPaths() {
		if err := structs.InvalidJob(structs.CodeInvalid, admitted.Validate()); err != nil {
			return "", 0, err
		}
	}
	if s.config.Protocol() < wire.ProtocolRDMA {
		for i := range admitted.Resources {
			admitted.Resources[i].RDMAByNodes = false
		}
	}
	SetRules(admitted, s.config.Protocol())
	admitted.User, admitted.IdempotencyKey = user, key
	if refusal := s.roomFor(admitted); refusal != nil {
		return "", 0, refusal
	}
	if len(admitted.Source) > structs.SourceKeptMax {
		admitted.Source = "" // every server would keep it, in memory and in each snapshot
	}
	admitted.SubmittedAt = s.now()
	body := &structs.JobSubmit{Job: admitted}
	if s.config.Protocol() >= wire.ProtocolJobBytes {
		body.BytesMax = s.config.JobBytesMax
	}
	result, index, err := s.SubmitGuarded(ctx, guard, structs.CommandJobSubmit, user, body)
	return result.JobID, index, err
}
