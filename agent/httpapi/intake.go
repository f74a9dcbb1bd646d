package httpapi

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// idempotencyKeyMax bounds the header of that name.
const idempotencyKeyMax = 128 // bytes

// submissionHandlers judges jobs that callers bring, and takes them in.
type submissionHandlers struct {
	*core
	submissions Submissions
	boards      Boards
	calls       *nodeCalls
	members     Membership
}

// offered is a job that a request brings: neither completed nor checked.
type offered struct {
	request *api.JobRequest
	job     *structs.Job
	rank    *int // the one that a plan shows
}

// admission is a job as it would be accepted.
type admission struct {
	*server.Admitted
	job   *structs.Job     // a copy, to look at and to try: changes to it are not submitted
	notes []structs.Reason // what its launch lets its author know
}

// offer reads the job in a request's body and gives the caller's would-be
// job as the object. A caller that may submit nothing at all is refused before their
// text is parsed.
func (h *submissionHandlers) offer(r *front.Request, body *api.JobRequest) (*offered, auth.Object, error) {
	principal := r.Caller.Principal
	own := r.Caller.Standing.Project
	object := auth.Object{Kind: auth.ObjectJob, Project: own, Owner: principal.ID}
	submits := auth.Allowed(principal, auth.Verb(r.Route.Verb), object).Allow
	if !submits && !auth.Allowed(principal, auth.VerbVIP, object).Allow {
		return nil, object, nil // judged, and refused
	}
	job, err := requestedJob(body)
	if err != nil {
		return nil, auth.Object{}, err
	}
	// Whatever the body says of these, the server decides.
	job.ID, job.User, job.SubmittedAt, job.IdempotencyKey, job.Resume = "", principal.ID, 0, "", nil
	job.Number, job.BeginAt, job.DeadlineAt = 0, 0, 0
	for i := range job.After {
		job.After[i].ID = ""
	}
	if body.Zone != "" && !structs.ValidZone(body.Zone) {
		return nil, auth.Object{}, structs.NewError(structs.CodeInvalid, "agent.zone", "zone", body.Zone)
	}
	job.Begin, job.Deadline = structs.Zoned(job.Begin, body.Zone), structs.Zoned(job.Deadline, body.Zone)
	if job.Project == "" {
		job.Project = own
	}
	if body.Resume != "" {
		if job.Resume, err = h.checkpointOf(r, body.Resume, body.ResumeStep); err != nil {
			return nil, auth.Object{}, err
		}
		job.After, job.Begin = nil, "" // what it waited for before it first ran
	}
	offer := &offered{request: body, job: job, rank: body.Rank}
	object.Project = job.Project
	if job.VIP != nil {
		r.Verb = auth.VerbVIP
	}
	decision := auth.Allowed(principal, r.Verb, object)
	if !decision.Allow && decision.Hide {
		return nil, auth.Object{}, auth.NotFound(auth.ObjectProject, job.Project)
	}
	return offer, object, nil
}

func requestedJob(body *api.JobRequest) (*structs.Job, error) {
	switch {
	case body.Job != nil && body.HCL != "":
		return nil, structs.NewError(structs.CodeInvalid, "agent.request_both")
	case body.Job != nil && len(body.Set) > 0:
		return nil, structs.NewError(structs.CodeInvalid, "agent.request_set")
	case body.Job != nil:
		return body.Job, nil
	case body.HCL != "" && len(body.Set) > 0:
		text, err := changedJobFile(body.HCL, body.Set)
		if err != nil {
			return nil, err
		}
		body.HCL = text
		return parseJobFile(text, body.Variables)
	case body.HCL != "":
		return parseJobFile(body.HCL, body.Variables)
	}
	return nil, structs.NewError(structs.CodeInvalid, "agent.request_empty")
}

func (h *submissionHandlers) parse(r *front.Request, offer *offered) (*api.JobParsed, error) {
	defaults := server.Complete(h.store.Snapshot(), offer.job)
	return &api.JobParsed{Job: offer.job, Defaults: defaults}, nil
}

// format answers jobs.format.
func (h *submissionHandlers) format(r *front.Request, offer *offered) (*api.JobFormatted, error) {
	body, written := offer.request, *offer.job // as it came, without defaults
	defaults := server.Complete(h.store.Snapshot(), offer.job)
	text := string(jobspec.Write(&written))
	if body.HCL != "" {
		formatted, diagnostics := jobspec.Format(jobFileName, []byte(body.HCL))
		if err := diagnostics.Err(); err != nil {
			return nil, err
		}
		text = string(formatted)
	}
	return &api.JobFormatted{HCL: text, Job: offer.job, Defaults: defaults}, nil
}

// admit returns a job as it would be accepted, or everything that keeps it from
// that as one error. The job stays as it is: where a request is judged anew, by
// other rules perhaps, it has no defaults of the old ones.
func (h *submissionHandlers) admit(r *front.Request, job *structs.Job) (*admission, *structs.Error) {
	snapshot := h.store.Snapshot()
	job, refusal := h.timed(r, snapshot, job)
	if refusal != nil {
		return nil, refusal
	}
	admitted, refusal := server.Admit(snapshot, job)
	if refusal != nil {
		return nil, refusal
	}
	a := &admission{Admitted: admitted, job: admitted.Job()}
	var err error
	if a.notes, err = launch.Check(a.job); err != nil {
		var failure *structs.Error
		if errors.As(err, &failure) {
			return nil, failure
		}
		return nil, structs.NewError(structs.CodeInvalid, "agent.internal", "reference", "launch").Because(err)
	}
	return a, nil
}

// warnings is what is doubtful about a job that may be accepted all the same,
// in the caller's language.
func (a *admission) warnings(r *front.Request, more ...structs.Problem) []structs.Error {
	doubts := append(a.job.Warnings(), more...)
	doubts = append(doubts, a.Pool().Warnings(a.job)...)
	found := structs.InvalidJob(structs.CodeInvalid, doubts)
	if found == nil {
		return nil
	}
	return front.Render(found, front.AcceptedLanguage(r.Header.Get("Accept-Language"))).Details
}

func (h *submissionHandlers) validate(r *front.Request, offer *offered) (*api.JobValidated, error) {
	admitted, failure := h.admit(r, offer.job)
	if failure == nil {
		return &api.JobValidated{Valid: true, Warnings: admitted.warnings(r)}, nil
	}
	failure = front.Render(failure, front.AcceptedLanguage(r.Header.Get("Accept-Language")))
	problems := failure.Details
	if len(problems) == 0 {
		problems = []structs.Error{*failure}
	}
	return &api.JobValidated{Problems: problems}, nil
}

func (h *submissionHandlers) submit(r *front.Request, offer *offered) (*api.JobSubmitted, error) {
	key := r.Header.Get(api.HeaderIdempotencyKey)
	if !structs.PlainText(key, idempotencyKeyMax) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", api.HeaderIdempotencyKey, "max", idempotencyKeyMax)
	}
	admitted, failure := h.admit(r, offer.job)
	if failure != nil {
		return nil, failure
	}
	job := admitted.job
	if job.Workdir != nil && job.Tree() == "" {
		return nil, structs.InvalidJob(structs.CodeInvalid, []structs.Problem{unsentCode(job)})
	}
	if err := mayPrioritize(r, job.Priority, r.Object); err != nil {
		return nil, err
	}
	if refusal := structs.InvalidJob(structs.CodeInvalid, h.labelProblems(r.Context(), h.store.Snapshot(), job)); refusal != nil {
		return nil, refusal
	}
	missing, nodes, kept := h.lookForData(r.Context(), job, r.Caller.Principal.ID)
	if len(missing) > 0 {
		return nil, structs.InvalidJob(structs.CodeInvalid, h.dataProblems(job, r.Caller.Principal.ID, missing, nodes))
	}
	id, index, err := h.submissions.SubmitJob(r.Context(), r.Guard(), r.Caller.Principal.ID, key, admitted.Admitted)
	if err != nil {
		return nil, err
	}
	h.log.Debug("job submitted", logkey.JobID, id, logkey.User, r.Caller.Principal.ID, logkey.Index, index)
	r.SetIndex(index)
	r.Made(id)
	number := uint64(0) // its entry is in this server's state
	if view, known := h.store.Snapshot().Job(id); known {
		number = view.Job.Number
	}
	return &api.JobSubmitted{JobID: id, Number: number, Name: job.Name, Index: index, Warnings: admitted.warnings(r, outputProblems(kept)...)}, nil
}

// unsentCode is the problem of a job whose directory nobody has sent: it was written
// into a form, or by a program that does not send.
func unsentCode(job *structs.Job) structs.Problem {
	return structs.Problem{Path: "workdir", ID: "agent.code_unsent", HintID: "agent.code_unsent.hint", Params: map[string]string{"path": "workdir", "source": job.Workdir.Source}}
}

// plan reports what a job would run, and whether it would start now, by
// putting it at its place in a copy of the queue.
func (h *submissionHandlers) plan(r *front.Request, offer *offered) (*api.JobPlan, error) {
	admitted, failure := h.admit(r, offer.job)
	if failure != nil {
		return nil, failure
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	if refusal := structs.InvalidJob(structs.CodeInvalid, h.labelProblems(r.Context(), snapshot, admitted.job)); refusal != nil {
		return nil, refusal
	}
	job, out := admitted.job, api.JobPlan{Defaults: admitted.Defaults(), Notes: admitted.notes, Ranks: []api.RankPlan{}}
	first, err := h.tryJob(r, job, &out)
	if err != nil {
		return nil, err
	}
	if out.Ranks, err = previewRanks(snapshot, job, first, offer.rank); err != nil {
		return nil, err
	}
	out.Later = knownLater(job, first != nil)
	missing, _, kept := h.lookForData(r.Context(), job, r.Caller.Principal.ID)
	if len(missing) > 0 {
		out.StartsNow, out.Starts, out.Lacks = false, 0, missing
		out.Wait = &structs.WaitReason{Reason: missing[0].Cause}
	}
	out.Ceilings = effectiveFor(snapshot, job)
	job.ID = "" // it never was one
	out.Wait = waitOf(r, snapshot, out.Wait)
	out.Job, out.Warnings = job, admitted.warnings(r, outputProblems(kept)...)
	return &out, nil
}

// effectiveFor lists the most that a job may ask for where it stands.
func effectiveFor(snapshot *state.Snapshot, job *structs.Job) []structs.Ceiling {
	return effectiveIn(snapshot, job.RulingPool(), job.Project, len(job.Placement.Nodes) > 0)
}

// effectiveIn lists the most that jobs of a project may ask for in a pool, or, if they
// name their nodes, under the rule of that pool.
func effectiveIn(snapshot *state.Snapshot, name, project string, named bool) []structs.Ceiling {
	pool := snapshot.Pool(name)
	if pool != nil && named { // of which only this is asked
		pool = &structs.Pool{Name: pool.Name, Ceilings: structs.PoolCeilings{NoCheckpoint: pool.Ceilings.NoCheckpoint}, CeilingsBy: pool.CeilingsBy, CeilingsAt: pool.CeilingsAt}
	}
	return structs.EffectiveCeilings(snapshot.Settings(), pool, snapshot.Project(project))
}

// planPassesMax bounds the passes of the scheduler for one preview.
const planPassesMax = 64

// tryJob puts a job at its place in a copy of the queue, fills in whether it
// starts now, and returns the gang of its first subjob when that does.
func (h *submissionHandlers) tryJob(r *front.Request, job *structs.Job, out *api.JobPlan) (first *structs.GangPlan, err error) {
	now := structs.At(h.now())
	job.ID, job.SubmittedAt = trialID(), now
	placed := unmet(h.store.Snapshot(), job)
	waits := make(map[int]bool, job.SubjobCount())
	err = h.boards.Try(r.Context(), asker(r, job.Project), func(trial *scheduler.Board) {
		settings := trial.Settings()
		settings.Quiet = false
		trial.SetSettings(settings)
		for i := range job.SubjobCount() {
			waits[i] = true
			trial.Submit(placed, placed.Trial(i, now, trial.Index()+1))
		}
		for range planPassesMax {
			plan := trial.Pass(now, trial.Index())
			for i := range plan.Gangs {
				gang := &plan.Gangs[i]
				if gang.JobID != job.ID || gang.Nominate || len(gang.Victims) > 0 {
					continue // another's, or nodes that others have to leave first
				}
				if gang.Subjob == 0 {
					first = gang
				}
				delete(waits, gang.Subjob)
				out.Starts++
			}
			if len(plan.Gangs) == 0 {
				break
			}
		}
		for i := range job.SubjobCount() {
			if waits[i] {
				out.Wait = trial.Explain(job.ID, i)
				break
			}
		}
	})
	out.StartsNow = len(waits) == 0
	return first, patiently(err)
}

// previewRanks builds the launch of the first subjob's ranks, on the nodes of
// gang, or on made-up ones when there is none. An elastic gang may be smaller
// than its job asks for.
func previewRanks(snapshot *state.Snapshot, job *structs.Job, gang *structs.GangPlan, only *int) ([]api.RankPlan, error) {
	size, alternative := job.RanksOf(job.Nodes), 0
	var placed []structs.RankPlacement
	if gang != nil {
		placed = job.Spread(gang.Placements)
		size, alternative = len(placed), gang.Spec
	}
	from, until := 0, min(size, api.PlanRanksMax)
	if only != nil {
		if from, until = *only, *only+1; *only < 0 || *only >= size {
			return nil, structs.NewError(structs.CodeInvalid, "agent.plan_no_rank", "rank", *only, "last", size-1)
		}
	}
	members := make([]structs.Member, size)
	for rank := range members {
		members[rank] = structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), Addr: "192.0.2.1"}
		if gang == nil {
			continue
		}
		placement := placed[rank]
		members[rank].NodeID, members[rank].Ports, members[rank].Devices = placement.NodeID, placement.Ports, placement.Devices
		if node := snapshot.Node(placement.NodeID); node != nil {
			members[rank].NodeName, members[rank].Addr = node.Name, node.Addr
			members[rank].Cards = server.CardsOf(node, placement.Devices)
		}
	}
	shared, err := launch.NewGang(members)
	if err != nil {
		return nil, err
	}
	ranks := make([]api.RankPlan, 0, until-from)
	for rank := from; rank < until; rank++ {
		alloc := &structs.Allocation{
			ID: structs.AllocID(job.ID, 0, 1, rank), JobID: job.ID, JobName: job.Name, Attempt: 1, Rank: rank,
			Spec: job.SpecOf(alternative, rank, size), Name: members[rank].Name, Ports: members[rank].Ports, Devices: members[rank].Devices,
		}
		built, err := launch.Build(launch.Input{
			Job: job, Members: members, Gang: shared, Alloc: alloc,
			Node: plannedNode(snapshot, job, alloc, members[rank].NodeID),
		})
		if err != nil {
			return nil, err
		}
		preview := api.RankPlan{
			Rank: rank, Name: members[rank].Name, Node: members[rank].NodeName, Command: built.Command, Hold: built.Hold,
			Env: built.Env, Ports: members[rank].Ports,
		}
		if len(built.PathFirst) > 0 {
			preview.Env["PATH"] = strings.Join(append(slices.Clone(built.PathFirst), cmp.Or(built.Env["PATH"], "$PATH")), ":")
		}
		for _, name := range launch.BaseNames { // what the node or the image has
			if preview.Env[name] == "$"+name {
				delete(preview.Env, name)
			}
		}
		for _, file := range built.Files {
			planned := api.RankFile{Path: file.Path}
			if only != nil {
				planned.Content = file.Content
			}
			preview.Files = append(preview.Files, planned)
		}
		ranks = append(ranks, preview)
	}
	return ranks, nil
}

// plannedNode is what can be told of a rank's node before the start: what its
// record says goes the same way as there; the rest is as somewhere.
func plannedNode(snapshot *state.Snapshot, job *structs.Job, alloc *structs.Allocation, id string) launch.NodeFacts {
	somewhere := launch.Somewhere(job)
	node := snapshot.Node(id)
	if id == "" || node == nil {
		return somewhere
	}
	facts := launch.OfNode(job, &alloc.Spec, node.Attributes)
	facts.TaskDir, facts.LocalDir, facts.SecretsDir = somewhere.TaskDir, somewhere.LocalDir, somewhere.SecretsDir
	facts.AgentPath, facts.Base, facts.CodeDir = somewhere.AgentPath, somewhere.Base, somewhere.CodeDir
	return facts
}

// knownLater says what of a launch only its node can tell, at the start.
func knownLater(job *structs.Job, placed bool) []structs.Reason {
	later := []structs.Reason{*structs.NewReason("launch.later_task")}
	if !placed {
		later = append(later, *structs.NewReason("launch.later_node"))
	}
	if slices.ContainsFunc(job.Resources, func(spec structs.Resources) bool { return len(spec.Devices) > 0 }) {
		later = append(later, *structs.NewReason("launch.later_devices"))
	}
	if len(job.Algorithms)+len(job.Datasets)+len(job.Models)+len(job.Volumes)+len(job.Mounts) > 0 || job.Output != "" {
		later = append(later, *structs.NewReason("launch.later_data"))
	}
	return later
}

// trialID is the id of a job that is only tried.
func trialID() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}
