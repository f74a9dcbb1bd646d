package auth

// Verb is what somebody wants to do.
type Verb string

// The verbs. A request that does two things asks for both.
const (
	VerbList    Verb = "list"   // see that a collection exists; its items are asked for one by one
	VerbRead    Verb = "read"   // see an object
	VerbSubmit  Verb = "submit" // make a job of one's own
	VerbStop    Verb = "stop"
	VerbControl Verb = "control" // pause, continue, throttle, finish early
	VerbDelete  Verb = "delete"
	VerbWrite   Verb = "write" // make or change

	VerbLogs          Verb = "logs"
	VerbEnv           Verb = "env"  // see a job's environment and which secrets it uses; read-only shares neither
	VerbExec          Verb = "exec" // run in, attach to, forward a port into a running task
	VerbClone         Verb = "clone"
	VerbDevEnv        Verb = "dev-env"           // make a development environment from a job
	VerbTensorBoard   Verb = "tensorboard"       // open one on a job's output
	VerbTimeLimit     Verb = "time-limit"        // change it
	VerbAnnotate      Verb = "annotate"          // change a job's tags and note
	VerbConsent       Verb = "consent"           // agree, or not, that it is stopped for a VIP job
	VerbPriority      Verb = "priority"          // change it to normal or urgent
	VerbPriorityTop   Verb = "priority-critical" // give the highest priority
	VerbVIP           Verb = "vip"               // make a job that chooses its machines, and may end what runs there
	VerbMove          Verb = "move"              // give a queued job another place
	VerbPublish       Verb = "publish"           // commit a result of the current attempt
	VerbReveal        Verb = "reveal"            // read the value of a secret
	VerbWhatIf        Verb = "what_if"           // ask what changes would do to the queue
	VerbMembers       Verb = "members"           // change a project's members and description
	VerbProfile       Verb = "profile"           // change what an account says of its person
	VerbCeilings      Verb = "ceilings"          // change what a pool, or the cluster, allows at most
	VerbDrain         Verb = "drain"             // drain, cordon, clear devices, move to a pool
	VerbReport        Verb = "report"            // a node's own status
	VerbHealth        Verb = "health"            // is the agent alive
	VerbLogin         Verb = "login"             // log in, set up, join, fetch the CA
	VerbOperatorRead  Verb = "operator-read"     // members, Raft peers, configuration, metrics
	VerbOperatorWrite Verb = "operator-write"    // change members and Raft peers, configuration
	VerbSnapshot      Verb = "snapshot"          // save or restore the whole state
	VerbAudit         Verb = "audit"             // read the record of who did what
	VerbSelf          Verb = "self"              // read or revoke the very token that is used
	VerbExtend        Verb = "extend"            // put off the end of the very token that is used
	VerbNotify        Verb = "notify"            // choose what whoever uses the token is told, and read it
	VerbWall          Verb = "wall"              // see the nodes and cards that there are, without their work
	VerbShare         Verb = "share"             // make a link that shows it to whoever has the link
)

// grant is a set of relations between a principal and an object in which a
// rule allows its verb.
type grant uint16

// Relations. Between any principal and any object holds exactly one.
const (
	relOwn      grant = 1 << iota // user's own object
	relSharedRW                   // another's in the same project, access read-write
	relSharedRO                   // the same, access read-only
	relPrivate                    // the same, not shared; or a collection of the project
	relForeign                    // in a project that the principal does not belong to
	relGlobal                     // outside all projects, not the principal's own
	relSelf                       // the node itself, or on it; the allocation's own job
	relStale                      // the allocation's own job, in another attempt
)

// Sums of relations as the rules use them.
const (
	no     grant = 0
	own          = relOwn
	sharew       = relOwn | relSharedRW
	sharer       = relOwn | relSharedRW | relSharedRO
	proj         = relOwn | relSharedRW | relSharedRO | relPrivate
	global       = relGlobal | relOwn
	listed       = proj | relGlobal
	every        = proj | relForeign | relGlobal | relSelf | relStale
	self         = relSelf
	past         = relSelf | relStale
)

// rule grants one verb on one kind of object to each sort of principal.
type rule struct {
	kind ObjectKind
	verb Verb

	anonymous, viewer, user, projectAdmin, operator, admin, node, server, alloc, guest, board grant
}

// rules is the whole policy; what is not here is refused. It mirrors the
// matrix that testdata/matrix.golden spells out relation by relation.
// (Constants only, so the linker lays it out and process start pays nothing.)
//
//	kind, verb, anonymous, viewer, user, project admin, operator, admin, node, server, alloc, guest, board
var rules = [...]rule{
	{ObjectJob, VerbList, no, listed, listed, listed, every, every, no, no, no, no, no},
	{ObjectJob, VerbRead, no, sharer, sharer, proj, every, every, self, no, past, self, no},
	{ObjectJob, VerbLogs, no, sharer, sharer, proj, no, every, self, no, past, no, no},
	{ObjectJob, VerbEnv, no, own, sharew, proj, no, every, self, no, past, no, no},
	{ObjectJob, VerbSubmit, no, no, own, own, no, own, no, no, no, no, no},
	{ObjectJob, VerbClone, no, no, sharer, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbDevEnv, no, no, sharer, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbTensorBoard, no, no, sharer, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbStop, no, no, sharew, proj, every, every, no, no, no, no, no},
	{ObjectJob, VerbControl, no, no, sharew, proj, every, every, no, no, no, no, no},
	{ObjectJob, VerbDelete, no, no, sharew, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbTimeLimit, no, no, sharew, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbAnnotate, no, no, sharew, proj, every, every, no, no, no, no, no},
	{ObjectJob, VerbConsent, no, no, sharew, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbPriority, no, no, sharew, proj, every, every, no, no, no, no, no},
	{ObjectJob, VerbPriorityTop, no, no, no, no, no, every, no, no, no, no, no},
	{ObjectJob, VerbVIP, no, no, no, no, own, own, no, no, no, no, no},
	{ObjectJob, VerbMove, no, no, no, no, every, every, no, no, no, no, no},
	{ObjectJob, VerbExec, no, no, own, proj, no, every, no, no, no, no, no},
	{ObjectJob, VerbPublish, no, no, no, no, no, no, no, no, self, no, no},
	{ObjectJob, VerbShare, no, no, own, proj, no, every, no, no, no, no, no},

	{ObjectData, VerbList, no, listed, listed, listed, every, every, no, no, no, no, no},
	{ObjectData, VerbRead, no, sharer, sharer, proj, no, every, self, no, self, no, no},
	{ObjectData, VerbWrite, no, no, sharew, proj, no, every, no, no, no, no, no},
	{ObjectData, VerbDelete, no, no, own, proj, no, every, no, no, no, no, no}, // and who else may use it

	{ObjectSecret, VerbList, no, no, listed, listed, no, every, no, no, no, no, no},
	{ObjectSecret, VerbRead, no, no, sharer, proj, no, every, no, no, no, no, no}, // its name, never its value
	{ObjectSecret, VerbWrite, no, no, own, proj, no, every, no, no, no, no, no},
	{ObjectSecret, VerbDelete, no, no, own, proj, no, every, no, no, no, no, no},
	{ObjectSecret, VerbReveal, no, no, no, no, no, no, self, no, self, no, no},

	{ObjectTemplate, VerbList, no, listed, listed, listed, no, every, no, no, no, no, no},
	{ObjectTemplate, VerbRead, no, sharer, sharer, proj, no, every, no, no, no, no, no},
	{ObjectTemplate, VerbWrite, no, no, own, proj, no, every, no, no, no, no, no},
	{ObjectTemplate, VerbDelete, no, no, own, proj, no, every, no, no, no, no, no},

	{ObjectProject, VerbList, no, listed, listed, listed, every, every, no, no, no, no, no},
	{ObjectProject, VerbRead, no, proj, proj, proj, every, every, no, no, no, no, no},
	{ObjectProject, VerbMembers, no, no, no, proj, no, every, no, no, no, no, no},
	{ObjectProject, VerbWrite, no, no, no, no, no, every, no, no, no, no, no},

	{ObjectNode, VerbList, no, global, global, global, global, global, no, no, no, no, no},
	{ObjectNode, VerbWall, no, global, global, global, global, global, no, no, no, no, global},
	{ObjectNode, VerbRead, no, global, global, global, global, global, self, no, no, no, no},
	{ObjectNode, VerbDrain, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectNode, VerbDelete, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectNode, VerbReport, no, no, no, no, no, no, self, no, no, no, no},
	{ObjectNode, VerbShare, no, no, no, no, global, global, no, no, no, no, no},

	{ObjectPool, VerbList, no, global, global, global, global, global, no, no, no, no, no},
	{ObjectPool, VerbRead, no, global, global, global, global, global, no, no, no, no, no},
	{ObjectPool, VerbWrite, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectPool, VerbDelete, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectPool, VerbCeilings, no, no, no, no, no, global, no, no, no, no, no},

	{ObjectQueue, VerbList, no, global, global, global, global, global, no, no, no, no, no},
	{ObjectQueue, VerbWhatIf, no, no, global, global, global, global, no, no, no, no, no},
	{ObjectEvent, VerbList, no, global, global, global, global, global, no, no, no, no, no},

	{ObjectCluster, VerbHealth, every, every, every, every, every, every, every, every, every, every, every},
	{ObjectCluster, VerbLogin, every, every, every, every, every, every, every, every, every, every, every},
	{ObjectCluster, VerbOperatorRead, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectCluster, VerbOperatorWrite, no, no, no, no, no, global, no, no, no, no, no},
	{ObjectCluster, VerbSnapshot, no, no, no, no, no, global, no, no, no, no, no},
	{ObjectCluster, VerbRead, no, global, global, global, global, global, no, no, no, no, no}, // what is set for all
	{ObjectCluster, VerbCeilings, no, no, no, no, no, global, no, no, no, no, no},
	{ObjectCluster, VerbAudit, no, no, no, no, global, global, no, no, no, no, no},

	{ObjectToken, VerbSelf, no, own, own, own, own, own, no, no, no, global, global},
	{ObjectToken, VerbExtend, no, own, own, own, own, own, no, no, no, no, no},
	{ObjectToken, VerbNotify, no, own, own, own, own, own, no, no, no, no, no},
	{ObjectToken, VerbList, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectToken, VerbRead, no, own, own, own, global, global, no, no, no, no, no},
	{ObjectToken, VerbWrite, no, no, no, no, no, global, no, no, no, no, no},
	{ObjectToken, VerbDelete, no, own, own, own, own, global, no, no, no, no, no},

	{ObjectJoinToken, VerbList, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectJoinToken, VerbRead, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectJoinToken, VerbWrite, no, no, no, no, no, global, no, no, no, no, no},
	{ObjectJoinToken, VerbDelete, no, no, no, no, no, global, no, no, no, no, no},

	{ObjectService, VerbList, no, listed, listed, listed, every, every, no, no, no, no, no},
	{ObjectService, VerbRead, no, proj, proj, proj, every, every, no, no, no, no, no}, // its tokens are for those who may write it
	{ObjectService, VerbWrite, no, no, no, proj, no, every, no, no, no, no, no},

	{ObjectUser, VerbList, no, no, no, no, global, global, no, no, no, no, no},
	{ObjectUser, VerbRead, no, own, own, own, global, global, no, no, no, no, no},
	{ObjectUser, VerbProfile, no, own, own, own, own, global, no, no, no, no, no},
	{ObjectUser, VerbWrite, no, no, no, no, no, global, no, no, no, no, no},
}

// Allowed decides whether p may do verb on object. Whatever no rule grants
// is refused. A refusal hides an object that p may not read, so that probing
// for names says nothing.
func Allowed(p Principal, verb Verb, object Object) Decision {
	if !p.wellFormed() {
		return Decision{Hide: object.Kind.inProject(), Reason: ReasonMalformed}
	}
	if p.Cluster != "" { // either of the two roles is enough
		member := p
		member.Cluster = ""
		wide := Allowed(Principal{Kind: p.Kind, ID: p.ID, Role: p.Cluster}, verb, object)
		if wide.Allow {
			return wide
		}
		decision := Allowed(member, verb, object)
		decision.Hide = decision.Hide && wide.Hide
		return decision
	}
	found, ok := ruleFor(object.Kind, verb)
	if !ok {
		return Decision{Hide: object.Kind.inProject(), Reason: ReasonUnknown}
	}
	if p.Service && !programMay(object.Kind, verb) {
		return Decision{Hide: hides(p, relate(p, object), object), Reason: ReasonPerson}
	}
	granted := found.grantFor(p)
	relation := relate(p, object)
	everybody := object.Everybody && p.Kind == KindUser
	if granted&relation != 0 || everybody && verb == VerbRead && granted != no {
		return Decision{Allow: true}
	}
	if p.Kind == KindAnonymous {
		return Decision{Reason: ReasonLogin}
	}
	return Decision{Hide: hides(p, relation, object) && !everybody, Reason: reasonFor(p, granted, relation)}
}

// programMay reports whether a service account may do something at all: what makes
// another way in, or lets somebody in, is for people.
func programMay(kind ObjectKind, verb Verb) bool {
	switch kind {
	case ObjectToken:
		return verb != VerbWrite && verb != VerbExtend && verb != VerbNotify
	case ObjectJoinToken, ObjectUser, ObjectService:
		return verb == VerbRead || verb == VerbList
	case ObjectProject:
		return verb != VerbMembers && verb != VerbWrite
	}
	return verb != VerbShare
}

func ruleFor(kind ObjectKind, verb Verb) (rule, bool) {
	for _, r := range rules {
		if r.kind == kind && r.verb == verb {
			return r, true
		}
	}
	return rule{}, false
}

func (r rule) grantFor(p Principal) grant {
	switch p.Kind {
	case KindAnonymous:
		return r.anonymous
	case KindNode:
		return r.node
	case KindServer:
		return r.server
	case KindAlloc:
		return r.alloc
	case KindGuest:
		return r.guest
	case KindBoard:
		return r.board
	}
	switch p.Role {
	case RoleViewer:
		return r.viewer
	case RoleUser:
		return r.user
	case RoleProjectAdmin:
		return r.projectAdmin
	case RoleOperator:
		return r.operator
	case RoleAdmin:
		return r.admin
	}
	return no
}

// relate finds the one relation between p and object. Ids are compared
// whole: job "train" is nothing to job "train-2".
func relate(p Principal, object Object) grant {
	inProject := object.Kind.inProject()
	switch p.Kind {
	case KindUser:
		return relateUser(p, object)
	case KindNode:
		if object.Node == p.ID {
			return relSelf
		}
	case KindAlloc:
		if inProject && object.Project == p.Project && object.ID == p.ID {
			if object.Attempt != p.Attempt {
				return relStale
			}
			return relSelf
		}
	case KindGuest: // its one job, whatever becomes of the job's sharing inside the project
		if object.Kind == ObjectJob && object.Project == p.Project && object.ID == p.ID {
			return relSelf
		}
	}
	if inProject {
		return relForeign
	}
	return relGlobal
}

func relateUser(p Principal, object Object) grant {
	if !object.Kind.inProject() {
		if object.Owner == p.ID {
			return relOwn
		}
		return relGlobal
	}
	switch {
	case object.Project == "":
		return relGlobal // a collection over all projects: only VerbList rules know it
	case !p.Role.clusterWide() && object.Project != p.Project:
		return relForeign
	case object.Owner == p.ID:
		return relOwn
	case p.Unshared && (object.Kind == ObjectJob || object.Kind == ObjectData || object.Kind == ObjectTemplate):
		return relPrivate // whatever its owner allowed
	case object.Access == AccessReadWrite:
		return relSharedRW
	case object.Access == AccessReadOnly:
		return relSharedRO
	}
	return relPrivate
}

// hides reports whether a refusal must read "not found": for objects inside
// projects that the principal may not even read. Objects of the cluster are
// no secret, only closed.
func hides(p Principal, relation grant, object Object) bool {
	if !object.Kind.inProject() {
		return false
	}
	if (p.Kind == KindGuest || p.Kind == KindBoard || object.Kind == ObjectSecret || object.Kind == ObjectTemplate) && object == (Object{Kind: object.Kind}) {
		return false // a collection is no secret, only closed
	}
	for _, verb := range []Verb{VerbRead, VerbList} {
		if relation == relPrivate && verb == VerbList {
			continue // seeing the collection does not show another's private object
		}
		if r, ok := ruleFor(object.Kind, verb); ok && r.grantFor(p)&relation != 0 {
			return false
		}
	}
	return true
}

func reasonFor(p Principal, granted, relation grant) Reason {
	switch {
	case granted == no, relation == relGlobal && granted&relPrivate != 0: // of the cluster, by a role in a project
		return ReasonRole
	case relation == relForeign && p.Kind == KindUser:
		return ReasonProject
	case relation == relStale:
		return ReasonAttempt
	case p.Kind == KindUser && granted&relSharedRW == 0:
		return ReasonOwnerOnly
	case p.Kind == KindUser:
		return ReasonOwner
	}
	return ReasonScope
}

// Verbs lists what p may do to object, in the order of the policy, so that
// nothing is offered that would be refused.
func Verbs(p Principal, object Object) []Verb {
	var verbs []Verb
	for _, r := range rules {
		if r.kind == object.Kind && Allowed(p, r.verb, object).Allow {
			verbs = append(verbs, r.verb)
		}
	}
	return verbs
}
