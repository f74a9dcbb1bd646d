package httpapi

import (
	"cmp"
	"io"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Bounds of what people may say.
const (
	reasonLengthMax = 1000 // bytes of the words of a stop
	labelLengthMax  = 100  // bytes of a token's name
	userLengthMax   = 64   // bytes of a user's name
	joinTTLDefault  = time.Hour
	joinTTLMax      = 30 * 24 * time.Hour
	joinUsesMax     = 10_000
	drainMax        = 30 * 24 * time.Hour
)

// propose puts a command of the caller into the log, with what it rests on. Every change that a
// person makes through the API is told here, for the log's reader.
func (s *handlers) propose(r *front.Request, kind structs.CommandKind, body any) (uint64, error) {
	_, index, err := s.replica.SubmitGuarded(r.Context(), r.Guard(), kind, r.Caller.Principal.ID, body)
	if err != nil {
		return 0, err
	}
	s.log.Info("changed by request", logkey.Method, r.Route.Name, logkey.User, r.Caller.Principal.ID,
		logkey.TokenID, r.Caller.Token.ID, "object", r.ID, logkey.Index, index)
	return index, nil
}

// change proposes a command and answers with its index.
func (s *handlers) change(r *front.Request, kind structs.CommandKind, body any) (*api.Changed, error) {
	index, err := s.propose(r, kind, body)
	if err != nil {
		return nil, err
	}
	return s.changed(r, index)
}

// reasonFits bounds what people say about their wishes.
func reasonFits(words string) error {
	if len(words) > reasonLengthMax {
		return structs.NewError(structs.CodeTooLarge, "agent.text_too_long", "field", "reason", "max", reasonLengthMax)
	}
	return nil
}

func (s *handlers) pauseJob(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Paused: true})
}

func (s *handlers) continueJob(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Continue: true})
}

func (s *handlers) throttleJob(r *front.Request, job *structs.Job, body *api.ThrottleRequest) (*api.Changed, error) {
	busy := cmp.Or(body.Busy, structs.ThrottleBusyDefault)
	if err := structs.ThrottleProblem(busy, body.Idle); err != nil {
		return nil, err
	}
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Busy: busy, Idle: body.Idle})
}

func (s *handlers) control(r *front.Request, order structs.JobControl) (*api.Changed, error) {
	if err := reasonFits(order.Reason); err != nil {
		return nil, err
	}
	order.JobID = r.ID
	return s.change(r, structs.CommandJobControl, order)
}

func (s *handlers) finishJob(r *front.Request, job *structs.Job, body *api.JobControlRequest) (*api.Changed, error) {
	if err := reasonFits(body.Reason); err != nil {
		return nil, err
	}
	return s.change(r, structs.CommandJobFinish, structs.JobFinish{JobID: job.ID, Subjob: body.Subjob, Reason: body.Reason})
}

func (s *handlers) stopJob(r *front.Request, job *structs.Job, body *api.JobStopRequest) (*api.Changed, error) {
	if err := reasonFits(body.Reason); err != nil {
		return nil, err
	}
	return s.change(r, structs.CommandJobStop, structs.JobStop{JobID: job.ID, Subjob: body.Subjob, Reason: body.Reason, Release: body.Release})
}

func (s *handlers) deleteJob(r *front.Request, job *structs.Job) (*api.Changed, error) {
	return s.change(r, structs.CommandJobDelete, structs.JobDelete{JobID: job.ID})
}

func (s *handlers) setPriority(r *front.Request, job *structs.Job, body *api.JobPriorityRequest) (*api.Changed, error) {
	priority := body.Priority
	if err := mayPrioritize(r, priority, r.Object); err != nil {
		return nil, err
	}
	return s.change(r, structs.CommandJobPriority, structs.JobPriority{JobID: job.ID, Priority: priority})
}

// mayPrioritize checks a priority and whether the caller may give it.
func mayPrioritize(r *front.Request, priority structs.Priority, object auth.Object) error {
	switch priority {
	case structs.PriorityNormal, structs.PriorityUrgent:
		return nil
	case structs.PriorityCritical:
		return r.May(auth.VerbPriorityTop, object)
	}
	return structs.NewError(structs.CodeInvalid, "agent.priority_unknown", "value", priority)
}

func (s *handlers) drainNode(r *front.Request, node *structs.Node, body *api.DrainRequest) (*api.Changed, error) {
	deadline := body.Deadline.Std()
	if deadline < 0 || deadline > drainMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", deadline)
	}
	change := structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeDraining}
	if deadline > 0 {
		change.DrainDeadline = structs.At(s.now().Add(deadline))
	}
	return s.change(r, structs.CommandNodeEligibility, change)
}

func (s *handlers) cordonNode(r *front.Request, node *structs.Node) (*api.Changed, error) {
	return s.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeCordoned})
}

func (s *handlers) uncordonNode(r *front.Request, node *structs.Node) (*api.Changed, error) {
	return s.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: node.ID, Eligibility: structs.NodeEligible})
}

func (s *handlers) listTokens(r *front.Request) (*api.TokenList, error) {
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	tokens, next, refusal := s.store.Snapshot().ListTokens(paging)
	if refusal != nil {
		return nil, refusal
	}
	out := api.TokenList{Tokens: values(tokens), Next: next}
	for i := range out.Tokens {
		out.Tokens[i] = front.WithoutHash(out.Tokens[i])
	}
	return &out, nil
}

func (s *handlers) readToken(r *front.Request, token *structs.Token) (*structs.Token, error) {
	if token == nil {
		return nil, auth.NotFound(auth.ObjectToken, r.ID)
	}
	return answer(front.WithoutHash(*token))
}

func (s *handlers) deleteToken(r *front.Request, token *structs.Token) (*api.Changed, error) {
	if token == nil {
		return nil, auth.NotFound(auth.ObjectToken, r.ID)
	}
	return s.change(r, structs.CommandTokenDelete, structs.TokenDelete{ID: token.ID})
}

func (s *handlers) createToken(r *front.Request, body *api.TokenRequest) (*api.NewToken, error) {
	if err := checkTokenRequest(body); err != nil {
		return nil, err
	}
	kind := auth.TokenUser
	if auth.UserRole(body.Role) == auth.RoleAdmin {
		kind = auth.TokenManagement
	}
	secret, token, err := s.newToken(kind, *body, r.Caller.Principal.ID)
	if err != nil {
		return nil, err
	}
	index, err := s.propose(r, structs.CommandTokenPut, structs.TokenPut{Token: token})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return &api.NewToken{Token: front.WithoutHash(token), Secret: secret}, nil
}

func checkTokenRequest(body *api.TokenRequest) error {
	role := auth.UserRole(body.Role)
	wide := role == auth.RoleAdmin || role == auth.RoleOperator
	switch {
	case !role.Valid():
		return structs.NewError(structs.CodeInvalid, "agent.role_unknown", "role", body.Role)
	case wide && body.Project != "":
		return structs.NewError(structs.CodeInvalid, "agent.role_no_project", "role", body.Role)
	case !wide && body.Project == "":
		return structs.NewError(structs.CodeInvalid, "agent.role_project", "role", body.Role)
	case body.TTL < 0:
		return structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", body.TTL)
	case !structs.PlainText(body.Name, labelLengthMax):
		return structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "name", "max", labelLengthMax)
	case !structs.PlainText(body.User, userLengthMax):
		return structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "user", "max", userLengthMax)
	}
	if body.Project != "" {
		if id := structs.NameProblem(body.Project); id != "" {
			return structs.NewError(structs.CodeInvalid, id)
		}
	}
	return nil
}

func (s *handlers) newToken(kind auth.TokenKind, body api.TokenRequest, by string) (string, structs.Token, error) {
	return NewToken(s.rand, s.now(), kind, body, by)
}

// NewToken draws a secret and makes its record, in the name of by.
func NewToken(random io.Reader, now time.Time, kind auth.TokenKind, body api.TokenRequest, by string) (string, structs.Token, error) {
	secret, err := auth.GenerateToken(kind, random)
	if err != nil {
		return "", structs.Token{}, err
	}
	id, err := auth.NewTokenID(random)
	if err != nil {
		return "", structs.Token{}, err
	}
	token := structs.Token{
		ID: id, Name: body.Name, Hash: auth.HashToken(secret), Role: body.Role, Project: body.Project, User: body.User,
		CreatedAt: structs.At(now), CreatedBy: by,
	}
	if body.TTL > 0 {
		token.ExpiresAt = structs.At(now.Add(body.TTL.Std()))
	}
	return secret, token, nil
}

// bootstrapToken makes the first management token for whoever holds the
// setup secret; the log lets exactly one through.
func (s *handlers) bootstrapToken(r *front.Request, body *api.BootstrapRequest) (*api.NewToken, error) {
	given := body.Secret
	snapshot, err := s.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	cluster := snapshot.Cluster()
	if cluster == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.no_cluster")
	}
	if cluster.Bootstrapped || !auth.TokenMatches(cluster.SetupHash, given) {
		return nil, structs.NewError(structs.CodeUnauthorized, "agent.setup_wrong")
	}
	secret, token, err := s.newToken(auth.TokenManagement, api.TokenRequest{Name: "bootstrap", Role: string(auth.RoleAdmin), User: "admin"}, "setup")
	if err != nil {
		return nil, err
	}
	_, index, err := s.replica.Submit(r.Context(), structs.CommandTokenBootstrap, "setup",
		structs.TokenBootstrap{SetupHash: auth.HashToken(given), Token: token})
	if err != nil {
		return nil, err
	}
	if err := s.authority.SetupDone(); err != nil {
		s.log.Warn("setup secret is left", logkey.Error, err)
	}
	s.log.Warn("first management token was made", logkey.TokenID, token.ID, logkey.Addr, front.PeerKey(r.RemoteAddr))
	r.SetIndex(index)
	return &api.NewToken{Token: front.WithoutHash(token), Secret: secret}, nil
}
