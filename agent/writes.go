package agent

import (
	"cmp"
	"time"

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
func (s *site) propose(r *request, kind structs.CommandKind, body any) (uint64, error) {
	_, index, err := s.replica.SubmitGuarded(r.Context(), r.guard(), kind, r.caller.principal.ID, body)
	if err != nil {
		return 0, err
	}
	s.log.Info("changed by request", logkey.Method, r.route.Name, logkey.User, r.caller.principal.ID,
		logkey.TokenID, r.caller.token.ID, "object", r.id, logkey.Index, index)
	return index, nil
}

// change proposes a command and answers with its index.
func (s *site) change(r *request, kind structs.CommandKind, body any) error {
	index, err := s.propose(r, kind, body)
	if err != nil {
		return err
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

func (s *site) pauseJob(r *request) error {
	body := r.body.(*api.JobControlRequest)
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Paused: true})
}

func (s *site) continueJob(r *request) error {
	body := r.body.(*api.JobControlRequest)
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Continue: true})
}

func (s *site) throttleJob(r *request) error {
	body := r.body.(*api.ThrottleRequest)
	busy := cmp.Or(body.Busy, structs.ThrottleBusyDefault)
	if err := structs.ThrottleProblem(busy, body.Idle); err != nil {
		return err
	}
	return s.control(r, structs.JobControl{Subjob: body.Subjob, Reason: body.Reason, Busy: busy, Idle: body.Idle})
}

func (s *site) control(r *request, order structs.JobControl) error {
	if err := reasonFits(order.Reason); err != nil {
		return err
	}
	order.JobID = r.id
	return s.change(r, structs.CommandJobControl, order)
}

func (s *site) finishJob(r *request) error {
	body := r.body.(*api.JobControlRequest)
	if err := reasonFits(body.Reason); err != nil {
		return err
	}
	return s.change(r, structs.CommandJobFinish, structs.JobFinish{JobID: r.id, Subjob: body.Subjob, Reason: body.Reason})
}

func (s *site) stopJob(r *request) error {
	body := r.body.(*api.JobStopRequest)
	if err := reasonFits(body.Reason); err != nil {
		return err
	}
	return s.change(r, structs.CommandJobStop, structs.JobStop{JobID: r.id, Subjob: body.Subjob, Reason: body.Reason, Release: body.Release})
}

func (s *site) deleteJob(r *request) error {
	return s.change(r, structs.CommandJobDelete, structs.JobDelete{JobID: r.id})
}

func (s *site) setPriority(r *request) error {
	priority := r.body.(*api.JobPriorityRequest).Priority
	if err := mayPrioritize(r, priority, r.object); err != nil {
		return err
	}
	return s.change(r, structs.CommandJobPriority, structs.JobPriority{JobID: r.id, Priority: priority})
}

// mayPrioritize checks a priority and whether the caller may give it.
func mayPrioritize(r *request, priority structs.Priority, object auth.Object) error {
	switch priority {
	case structs.PriorityNormal, structs.PriorityUrgent:
		return nil
	case structs.PriorityCritical:
		return r.may(auth.VerbPriorityTop, object)
	}
	return structs.NewError(structs.CodeInvalid, "agent.priority_unknown", "value", priority)
}

func (s *site) drainNode(r *request) error {
	deadline := r.body.(*api.DrainRequest).Deadline.Std()
	if deadline < 0 || deadline > drainMax {
		return structs.NewError(structs.CodeInvalid, "agent.ttl", "ttl", deadline)
	}
	change := structs.NodeEligibilityChange{NodeID: r.id, Eligibility: structs.NodeDraining}
	if deadline > 0 {
		change.DrainDeadline = structs.At(s.now().Add(deadline))
	}
	return s.change(r, structs.CommandNodeEligibility, change)
}

func (s *site) cordonNode(r *request) error {
	return s.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: r.id, Eligibility: structs.NodeCordoned})
}

func (s *site) uncordonNode(r *request) error {
	return s.change(r, structs.CommandNodeEligibility, structs.NodeEligibilityChange{NodeID: r.id, Eligibility: structs.NodeEligible})
}

// withoutHash is a token as people may see it.
func withoutHash(token structs.Token) structs.Token {
	token.Hash = nil
	return token
}

func (s *site) listTokens(r *request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	paging, err := page(r)
	if err != nil {
		return err
	}
	tokens, next, refusal := s.store.Snapshot().ListTokens(paging)
	if refusal != nil {
		return refusal
	}
	out := api.TokenList{Tokens: values(tokens), Next: next}
	for i := range out.Tokens {
		out.Tokens[i] = withoutHash(out.Tokens[i])
	}
	return r.reply(out)
}

func (s *site) readToken(r *request) error {
	token, ok := r.found.(*structs.Token)
	if !ok {
		return auth.NotFound(auth.ObjectToken, r.id)
	}
	return r.reply(withoutHash(*token))
}

func (s *site) deleteToken(r *request) error {
	if _, ok := r.found.(*structs.Token); !ok {
		return auth.NotFound(auth.ObjectToken, r.id)
	}
	return s.change(r, structs.CommandTokenDelete, structs.TokenDelete{ID: r.id})
}

func (s *site) createToken(r *request) error {
	body := r.body.(*api.TokenRequest)
	if err := checkTokenRequest(body); err != nil {
		return err
	}
	kind := auth.TokenUser
	if auth.UserRole(body.Role) == auth.RoleAdmin {
		kind = auth.TokenManagement
	}
	secret, token, err := s.newToken(kind, *body, r.caller.principal.ID)
	if err != nil {
		return err
	}
	index, err := s.propose(r, structs.CommandTokenPut, structs.TokenPut{Token: token})
	if err != nil {
		return err
	}
	r.setIndex(index)
	return r.reply(api.NewToken{Token: withoutHash(token), Secret: secret})
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

// newToken draws a secret and makes its record.
func (s *site) newToken(kind auth.TokenKind, body api.TokenRequest, by string) (string, structs.Token, error) {
	secret, err := auth.GenerateToken(kind, s.rand)
	if err != nil {
		return "", structs.Token{}, err
	}
	id, err := auth.NewTokenID(s.rand)
	if err != nil {
		return "", structs.Token{}, err
	}
	now := s.now()
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
func (s *site) bootstrapToken(r *request) error {
	given := r.body.(*api.BootstrapRequest).Secret
	snapshot, err := s.replica.Consistent(r.Context())
	if err != nil {
		return err
	}
	cluster := snapshot.Cluster()
	if cluster == nil {
		return structs.NewError(structs.CodeUnavailable, "agent.no_cluster")
	}
	if cluster.Bootstrapped || !auth.TokenMatches(cluster.SetupHash, given) {
		return structs.NewError(structs.CodeUnauthorized, "agent.setup_wrong")
	}
	secret, token, err := s.newToken(auth.TokenManagement, api.TokenRequest{Name: "bootstrap", Role: string(auth.RoleAdmin), User: "admin"}, "setup")
	if err != nil {
		return err
	}
	_, index, err := s.replica.Submit(r.Context(), structs.CommandTokenBootstrap, "setup",
		structs.TokenBootstrap{SetupHash: auth.HashToken(given), Token: token})
	if err != nil {
		return err
	}
	if s.identity.founder {
		if err := s.identity.setupDone(); err != nil {
			s.log.Warn("setup secret is left", logkey.Error, err)
		}
	}
	s.log.Warn("first management token was made", logkey.TokenID, token.ID, logkey.Addr, peerKey(r.RemoteAddr))
	r.setIndex(index)
	return r.reply(api.NewToken{Token: withoutHash(token), Secret: secret})
}
