package httpapi

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Replica is what the API needs of the server in this process;
// *server.Server is one.
type Replica interface {
	// Consistent waits until this server's state holds everything that was
	// acknowledged before the call, and gives it. It fails with
	// CodeUnavailable without a leader.
	Consistent(ctx context.Context) (*state.Snapshot, error)
	// Submit puts a command into the log, through the leader, and waits until
	// this server's state has applied it. The error is the state's refusal,
	// CodeTimeout when the outcome is unknown, or CodeUnavailable when
	// nothing was done.
	Submit(ctx context.Context, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error)
	// SubmitGuarded is Submit of a command that is applied only while guard
	// stands.
	SubmitGuarded(ctx context.Context, guard structs.Guard, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error)
	// SubmitJob queues a job that server.Admit checked.
	SubmitJob(ctx context.Context, guard structs.Guard, user, key string, admitted *server.Admitted) (jobID string, index uint64, err error)
	// ForecastSnapshot shows the future of this server's state, at least as it was at index
	// knows. It is shared with all who ask.
	ForecastSnapshot(ctx context.Context, knows uint64, jobID string) (*server.ForecastSnapshot, error)
	// Preview lets ask compute with the futures of the newest forecast, when it is
	// the turn of the caller.
	Preview(ctx context.Context, who server.Asker, ask func(*forecast.Futures) error) error
	// Try gives ask a scheduler's board of its own with this server's newest state,
	// when it is the turn of the caller.
	Try(ctx context.Context, who server.Asker, ask func(*scheduler.Board)) error
	// Consult lets ask read a scheduler's board with this server's newest state.
	Consult(ctx context.Context, ask func(*scheduler.Board)) error
	// Admit lets a new agent in and gives its certificate.
	Admit(ctx context.Context, join server.Join) (certificatePEM []byte, err error)
}

// clockFunc reads the wall clock.
type clockFunc = func() time.Time

// handlers answers API requests on a server.
type handlers struct {
	replica    Replica
	store      *state.Store
	log        *slog.Logger
	now        clockFunc
	rand       io.Reader
	pool       *rpc.Pool
	members    Membership
	servers    Servers
	archives   Archives
	authority  Authority
	addr       string          // host:port of this agent
	spoolDir   string          // for snapshots on their way out
	stopping   <-chan struct{} // closed when the agent stops
	metrics    *metrics
	lapseGrace time.Duration // how long after its end a certificate is renewed
	survey     *survey
	keys       Keys // of the agent
	views      views
	self       func() api.AgentSelf
	health     func() api.Health
}

// jobObject is a job as the policy sees it.
func jobObject(job *structs.Job) auth.Object {
	return auth.Object{Kind: auth.ObjectJob, ID: job.ID, Project: job.Project, Owner: job.User, Access: auth.Access(job.Access)}
}

func nodeObject(node *structs.Node) auth.Object {
	return auth.Object{Kind: auth.ObjectNode, ID: node.ID, Node: node.ID}
}

// tokenObject's owner is whom the token speaks for.
func tokenObject(token *structs.Token) auth.Object {
	owner := token.User
	if owner == "" {
		owner = token.ID
	}
	return auth.Object{Kind: auth.ObjectToken, ID: token.ID, Owner: owner}
}

// Authenticate finds whom the secret of a token speaks for.
func (s *handlers) Authenticate(ctx context.Context, secret string, thorough bool) (front.Caller, error) {
	unknown := structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	if _, err := auth.ParseToken(secret); err != nil {
		return front.Caller{}, unknown.Because(err)
	}
	hash := auth.HashToken(secret)
	snapshot := s.store.Snapshot()
	token := snapshot.TokenByHash(hash)
	if token == nil && thorough {
		var err error
		if snapshot, err = s.replica.Consistent(ctx); err != nil {
			return front.Caller{}, err
		}
		token = snapshot.TokenByHash(hash)
	}
	if token == nil {
		return front.Caller{}, unknown
	}
	principal, refusal := auth.TokenPrincipal(token, s.now())
	if refusal != nil {
		return front.Caller{}, refusal
	}
	return front.Caller{Principal: principal, Token: token, Revoked: snapshot.WatchToken(token.ID)}, nil
}

// whileValid gives a context for answers that stay open: it ends when the
// caller's token does, or when the agent stops. The second value ends the
// watch.
func (s *handlers) whileValid(r *front.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(s.awaitEnd(ctx, r.Caller.Token))
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}

// awaitEnd returns when the token is gone or over, the agent stops, or ctx
// ends; and why.
func (s *handlers) awaitEnd(ctx context.Context, token *structs.Token) error {
	revoked := structs.NewError(structs.CodeUnauthorized, "agent.token_revoked")
	var over <-chan time.Time
	if token.ExpiresAt != 0 {
		timer := time.NewTimer(token.ExpiresAt.Time().Sub(s.now()))
		defer timer.Stop()
		over = timer.C
	}
	for {
		snapshot := s.store.Snapshot()
		if snapshot.Token(token.ID) == nil {
			return revoked
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return structs.NewError(structs.CodeUnavailable, "agent.stopping")
		case <-over:
			return revoked
		case <-snapshot.WatchToken(token.ID):
		}
	}
}

// refresh makes the server's copy current, unless the caller asked for a
// stale answer.
func (s *handlers) refresh(r *front.Request) error {
	q := front.Query{R: r}
	if !r.Route.Mutates() && r.Route.Blocking && q.Bool("stale") {
		return q.Err
	}
	if q.Err != nil {
		return q.Err
	}
	_, err := s.replica.Consistent(r.Context())
	return err
}

// reading says how a blocking query knows that something changed.
type reading struct {
	version func(*state.Snapshot) uint64          // index of the newest change of what is read
	watch   func(*state.Snapshot) <-chan struct{} // closed at the next one
	also    func(*state.Snapshot) <-chan struct{} // the same; may be nil
}

// await gives the first state whose version is newer than index, or the
// newest one when ctx ends before.
func (how reading) await(ctx context.Context, store *state.Store, index uint64) *state.Snapshot {
	for {
		now := store.Snapshot()
		if how.version(now) > index || ctx.Err() != nil {
			return now
		}
		var also <-chan struct{}
		if how.also != nil {
			also = how.also(now)
		}
		select {
		case <-how.watch(now):
		case <-also:
		case <-ctx.Done():
		}
	}
}

// block waits, when the caller asked for it, until there is something newer
// than the index that the caller knows, and gives the state to answer from.
func (s *handlers) block(r *front.Request, how reading) (*state.Snapshot, error) {
	q := front.Query{R: r}
	index, wait := q.Uint("index"), q.Wait()
	if q.Err != nil {
		return nil, q.Err
	}
	valid, end := s.whileValid(r)
	defer end()
	ctx, cancel := context.WithTimeout(valid, wait)
	defer cancel()
	if index == 0 {
		cancel() // not asked to wait
	}
	snapshot := how.await(ctx, s.store, index)
	if valid.Err() != nil {
		return nil, context.Cause(valid)
	}
	r.SetIndex(max(how.version(snapshot), 1))
	return snapshot, nil
}

// everything makes a blocking query of any change of the whole state that one
// watch sees, or a second one: for lists whose items may leave them, which no
// item's index tells.
func everything(watch func(*state.Snapshot) <-chan struct{}, also ...func(*state.Snapshot) <-chan struct{}) reading {
	how := reading{version: (*state.Snapshot).Index, watch: watch}
	if len(also) > 0 {
		how.also = also[0]
	}
	return how
}

// page reads the paging parameters.
func page(r *front.Request) (state.Page, error) {
	q := front.Query{R: r}
	p := state.Page{After: q.Text("after"), Limit: q.Limit()}
	return p, q.Err
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func (s *handlers) changed(r *front.Request, index uint64) (*api.Changed, error) {
	r.SetIndex(index)
	return &api.Changed{Index: index}, nil
}

func (s *handlers) readSelf(r *front.Request) (*api.AgentSelf, error) { return answer(s.self()) }

// unlessStale does something here when the caller asks for what this server
// has, be there a leader or not.
func unlessStale(fresh, stale front.Handler) front.Handler {
	return func(r *front.Request) error {
		q := front.Query{R: r}
		asked := q.Bool("stale")
		switch {
		case q.Err != nil:
			return q.Err
		case asked:
			return stale(r)
		}
		return fresh(r)
	}
}

// ReadHealth answers agent.health. Whoever asks may be anybody, so it tells
// no more than what a load balancer needs.
func ReadHealth(health func() api.Health) func(*front.Request) (*api.Health, error) {
	return func(r *front.Request) (*api.Health, error) {
		now := health()
		if !now.Healthy {
			r.SetUnhealthy()
		}
		return &now, nil
	}
}

// table maps the endpoints to their handlers; the compiler compares the types of
// bodies, of found objects and of answers. onLeader wraps those that only the leader can do.
func (s *handlers) table(onLeader func(front.Handler) front.Handler) *front.Table {
	t := front.NewTable()
	leader := t.Through(onLeader)
	find := finders{s}
	jobs, allocs, nodes := front.About(t, find.job()), front.About(t, find.allocation()), front.About(t, find.node())
	tokens, caller := front.About(t, find.token()), front.About(t, find.caller())
	front.Read(t, api.JobsList, s.listJobs)
	front.WriteOf(jobs, api.JobsShare, s.shareJob)
	front.ReadOf(jobs, api.JobsShares, s.listJobShares)
	front.Write(t, api.WallShare, s.shareWall)
	front.Read(t, api.WallShares, s.listWallShares)
	front.WriteFrom(t, api.JobsSubmit, s.locateBody, s.submitJob)
	front.WriteFrom(t, api.JobsParse, s.locateBody, s.parseJob)
	front.WriteFrom(t, api.JobsFormat, s.locateBody, s.formatJob)
	front.WriteFrom(t, api.JobsValidate, s.locateBody, s.validateJob)
	front.WriteFrom(t, api.JobsPlan, s.locateBody, s.planJob)
	front.ReadOf(jobs, api.JobsRead, s.readJob)
	front.ReadOf(jobs, api.JobsSubjobs, s.listSubjobs)
	front.ReadOf(jobs, api.JobsAttempts, s.listAttempts)
	front.ReadOf(jobs, api.JobsAllocations, s.listAllocations)
	front.ReadOf(jobs, api.JobsEvents, s.listJobEvents)
	front.ReadOf(jobs, api.JobsFigures, s.jobUsage)
	front.ReadOf(jobs, api.JobsMetrics, s.readMetrics)
	front.ReadOf(jobs, api.JobsPast, s.jobHistory)
	front.ReadOf(jobs, api.JobsFiles, s.listFiles)
	front.StreamOf(jobs, api.JobsFileContent, s.readFile)
	front.WriteOf(jobs, api.JobsStop, s.stopJob)
	front.WriteOf(jobs, api.JobsPause, s.pauseJob)
	front.WriteOf(jobs, api.JobsContinue, s.continueJob)
	front.WriteOf(jobs, api.JobsThrottle, s.throttleJob)
	front.WriteOf(jobs, api.JobsFinish, s.finishJob)
	front.ReadOf(jobs, api.JobsDelete, s.deleteJob)
	front.WriteOf(jobs, api.JobsPriority, s.setPriority)
	front.WriteOf(jobs, api.JobsMove, s.moveJob)
	front.WriteOf(jobs, api.JobsTimeLimit, s.setTimeLimit)
	front.Read(t, api.PoolsList, s.listPools)
	front.Read(t, api.PoolsRead, s.readPool)
	front.Write(t, api.PoolsPut, s.putPool)
	front.Read(t, api.PoolsDelete, s.deletePool)
	front.Read(t, api.ProjectsList, s.listProjects)
	front.Read(t, api.ProjectsRead, s.readProject)
	front.Write(t, api.ProjectsPut, s.putProject)
	front.Read(t, api.ProjectsDelete, s.deleteProject)
	front.Read(t, api.QueueRead, s.readQueue)
	front.Read(t, api.QueueForecastRead, s.forecastQueue)
	front.Read(t, api.QueueTimeline, s.forecastTimeline)
	front.Read(t, api.QueueAccuracy, s.forecastAccuracy)
	front.Write(t, api.QueueWhatIf, s.whatIf)
	front.WriteFrom(t, api.JobsForecast, s.locateBody, s.forecastJob)
	front.ReadOf(jobs, api.JobsForecastRead, s.readForecast)
	front.Read(t, api.MachinesList, s.listMachines)
	front.WriteFrom(t, api.NodesAvailable, s.locateBody, s.listAvailable)
	front.Stream(t, api.EventsStream, s.streamEvents)
	front.ReadOf(allocs, api.AllocationsRead, s.readAllocation)
	front.StreamOf(allocs, api.AllocationsLogs, s.readLogs)
	front.StreamOf(allocs, api.AllocationsExec, s.exec)
	front.Read(t, api.NodesList, s.listNodes)
	front.ReadOf(nodes, api.NodesRead, s.readNode)
	front.Read(t, api.DevicesList, s.listDevices)
	front.ReadOf(nodes, api.NodesDevices, s.readDevices)
	front.ReadOf(nodes, api.NodesEvents, s.nodeEvents)
	front.ReadOf(nodes, api.NodesPast, s.readNodeHistory)
	front.WriteOf(allocs, api.AllocationsCommit, s.commitAllocation)
	front.WriteOf(nodes, api.NodesTreatDevice, s.treatDevice)
	front.ReadOf(nodes, api.NodesRemove, s.removeNode)
	front.WriteOf(nodes, api.NodesDrain, s.drainNode)
	front.ReadOf(nodes, api.NodesCordon, s.cordonNode)
	front.ReadOf(nodes, api.NodesUncordon, s.uncordonNode)
	front.Write(t, api.TokensBootstrap, s.bootstrapToken)
	front.Read(t, api.TokensList, s.listTokens)
	front.Write(t, api.TokensCreate, s.createToken)
	front.ReadOf(caller, api.TokensSelf, s.readToken)
	front.ReadOf(tokens, api.TokensRead, s.readToken)
	front.ReadOf(tokens, api.TokensDelete, s.deleteToken)
	front.Read(t, api.JoinTokensList, s.listJoinTokens)
	front.Write(t, api.JoinTokensCreate, s.createJoinToken)
	front.Read(t, api.JoinTokensDelete, s.deleteJoinToken)
	front.Read(t, api.ServersList, s.listMembers)
	front.Write(t, api.ServersJoin, s.joinMembers)
	front.Read(t, api.OperatorRaftPeers, s.listPeers)
	front.Read(leader, api.OperatorRaftRemovePeer, s.removePeer)
	front.Read(leader, api.OperatorRaftAddPeer, s.addPeer)
	front.Read(leader, api.OperatorKeys, s.readKeys)
	front.Read(leader, api.OperatorKeysRotate, s.rotateKeys)
	front.Read(leader, api.OperatorAutopilot, s.autopilot)
	front.Stream(t.Through(func(h front.Handler) front.Handler { return unlessStale(onLeader(h), h) }), api.OperatorSnapshotSave, s.saveSnapshot)
	front.Read(leader, api.OperatorSnapshotRestore, s.restoreSnapshot)
	front.Read(t, api.OperatorSnapshotInspect, s.inspectSnapshot)
	front.Read(t, api.AgentHealth, ReadHealth(s.health))
	front.Read(t, api.AgentSelfRead, s.readSelf)
	front.Write(t, api.AgentJoin, s.letIn)
	front.Write(t, api.AgentRenew, s.renewLapsed)
	front.Stream(t, api.MetricsText, s.metrics.handler())
	front.ReadOf(caller, api.OpenAPI, readOpenAPI())
	return t
}

// answer is a handler's answer.
func answer[T any](value T) (*T, error) { return &value, nil }
