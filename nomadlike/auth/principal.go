package auth

import "nomadlike/nomadlike/structs"

// PrincipalKind is what sort of caller asks.
type PrincipalKind string

// The kinds of callers. The zero value is anonymous.
const (
	KindAnonymous PrincipalKind = ""
	KindUser      PrincipalKind = "user"   // a person or program with an API token
	KindNode      PrincipalKind = "node"   // a client agent, by its certificate
	KindServer    PrincipalKind = "server" // a server agent, by its certificate
	KindAlloc     PrincipalKind = "alloc"  // a running allocation, by its own identity
	KindGuest     PrincipalKind = "guest"  // whoever holds the share link of one job
	KindBoard     PrincipalKind = "board"  // whoever holds the share link of the wall of cards
)

// UserRole is the role of a principal of KindUser.
type UserRole string

// The roles of users. Operator and admin are of the whole cluster, the
// others of one project.
const (
	RoleViewer       UserRole = structs.RoleViewer
	RoleUser         UserRole = structs.RoleUser
	RoleProjectAdmin UserRole = structs.RoleProjectAdmin
	RoleOperator     UserRole = structs.RoleOperator
	RoleAdmin        UserRole = structs.RoleAdmin

	// RoleAccount is of tokens alone, and grants what their user may: Stand puts
	// the user's role in its place.
	RoleAccount UserRole = structs.RoleAccount
)

// Valid reports whether r is one of the roles above.
func (r UserRole) Valid() bool {
	return r.clusterWide() || r == RoleViewer || r == RoleUser || r == RoleProjectAdmin
}

func (r UserRole) clusterWide() bool { return r == RoleOperator || r == RoleAdmin }

// Principal is who asks. The zero value is an anonymous caller.
type Principal struct {
	Kind    PrincipalKind `json:"kind"`
	ID      string        `json:"id,omitempty"`      // user name; agent id; for an allocation and a guest the job's id; for a board its token's
	Role    UserRole      `json:"role,omitempty"`    // users only
	Project string        `json:"project,omitempty"` // users of one project; allocations; guests
	Cluster UserRole      `json:"cluster,omitempty"` // users of one project that also have a role in the whole cluster
	Attempt uint64        `json:"attempt,omitempty"` // allocations: the attempt they belong to
	// Unshared, of users of one project: what its members allow each other does not
	// count, because an administrator said so.
	Unshared bool `json:"unshared,omitempty"`
	// Service, of users: a service account, which makes neither tokens nor accounts and
	// decides about nobody's membership, whatever its role.
	Service bool `json:"service,omitempty"`
}

// SeesByOwner reports whether what p may do to a job depends on nothing of the job but
// its project, owner and access: of jobs that have these in common it may read all or
// none.
func (p Principal) SeesByOwner() bool { return p.Kind == KindUser }

// wellFormed refuses principals with missing or contradicting parts, which
// must never be read as "anything".
func (p Principal) wellFormed() bool {
	if p.Service && p.Kind != KindUser {
		return false
	}
	switch p.Kind {
	case KindAnonymous:
		return p == Principal{}
	case KindUser:
		both := p.Cluster == "" || p.Cluster.clusterWide() && p.Project != "" && !p.Service
		return p.ID != "" && p.Role.Valid() && p.Role.clusterWide() == (p.Project == "") && both && p.Attempt == 0
	case KindGuest:
		return p.ID != "" && p.Role == "" && p.Cluster == "" && p.Project != "" && p.Attempt == 0
	case KindNode, KindServer, KindBoard:
		return p.ID != "" && p.Role == "" && p.Cluster == "" && p.Project == "" && p.Attempt == 0
	case KindAlloc:
		return p.ID != "" && p.Role == "" && p.Cluster == "" && p.Project != "" && p.Attempt > 0
	}
	return false
}

// ObjectKind is the sort of thing that is acted upon.
type ObjectKind string

// The kinds of objects. An attempt, an allocation, a task and its logs are
// judged as their job.
const (
	ObjectJob       ObjectKind = "job"
	ObjectData      ObjectKind = "data" // dataset, model, algorithm, volume, output
	ObjectSecret    ObjectKind = "secret"
	ObjectTemplate  ObjectKind = "template" // a job file that is kept under a name
	ObjectProject   ObjectKind = "project"
	ObjectNode      ObjectKind = "node"
	ObjectPool      ObjectKind = "pool"
	ObjectQueue     ObjectKind = "queue"
	ObjectEvent     ObjectKind = "event" // the stream; each event is judged as its object
	ObjectCluster   ObjectKind = "cluster"
	ObjectToken     ObjectKind = "token"
	ObjectJoinToken ObjectKind = "join-token"
	ObjectUser      ObjectKind = "user"
	ObjectService   ObjectKind = "service-account" // of a project, or of the cluster
)

// inProject reports whether objects of this kind belong to a project.
func (k ObjectKind) inProject() bool {
	switch k {
	case ObjectJob, ObjectData, ObjectSecret, ObjectTemplate, ObjectProject, ObjectService:
		return true
	}
	return false
}

// Access is what others of the same project may do with an object. The zero
// value counts as AccessNone.
type Access string

// The access levels, as a job's `access` field spells them.
const (
	AccessReadWrite Access = "read-write"
	AccessReadOnly  Access = "read-only"
	AccessNone      Access = "none"
)

// Object is what is acted upon. For VerbList and VerbSubmit it stands for
// the collection: kind and project ("" for all, whose items are then judged
// one by one), and for a submission the owner-to-be.
// Project must be the object's own, never the one that a request names.
type Object struct {
	Kind    ObjectKind
	ID      string // for objects that an allocation may touch: its job's id
	Project string // of kinds inside a project
	Owner   string // user who made it; for a token, whom it speaks for
	Access  Access // for others of the project
	// Everybody reads it, wherever they act and whatever is shared there: data that is
	// published, or that another project lets be used.
	Everybody bool
	Node      string // node that it is, or runs on
	Attempt   uint64 // for VerbPublish: the current attempt
}

// Decision is the answer of Allowed.
type Decision struct {
	Allow  bool
	Hide   bool   // answer as if the object did not exist (404, not 403)
	Reason Reason // why not; "" when allowed
}

// Reason names why a request is refused.
type Reason string

// The reasons for a refusal.
const (
	ReasonLogin     Reason = "login"      // the caller showed no credentials
	ReasonMalformed Reason = "malformed"  // the principal's parts contradict each other
	ReasonProject   Reason = "project"    // the object is in another project
	ReasonOwner     Reason = "owner"      // its owner does not share it so far
	ReasonOwnerOnly Reason = "owner_only" // however it is shared
	ReasonRole      Reason = "role"       // the caller's role never may
	ReasonScope     Reason = "scope"      // not the node's or allocation's own
	ReasonAttempt   Reason = "attempt"    // the allocation's attempt is not the current one
	ReasonPerson    Reason = "person"     // no service account may, whatever its role
	ReasonUnknown   Reason = "unknown"    // no rule knows this verb on this kind
)

// Err is the refusal as people and programs see it, nil when allowed. A
// hidden object is "not found" in the very words of one that is not there.
func (d Decision) Err(verb Verb, object Object) *structs.Error {
	switch {
	case d.Allow:
		return nil
	case d.Reason == ReasonLogin:
		return structs.NewError(structs.CodeUnauthorized, "auth.login_required")
	case d.Hide:
		return NotFound(object.Kind, object.ID)
	default:
		return structs.NewError(structs.CodeForbidden, "auth.forbidden."+string(d.Reason),
			"verb", string(verb), "kind", string(object.Kind))
	}
}

// NotFound is the answer for an object that does not exist or that the
// caller may not know of. Both must read the same, so both come from here.
func NotFound(kind ObjectKind, id string) *structs.Error {
	return structs.NewError(structs.CodeNotFound, "auth.not_found", "kind", string(kind), "id", id)
}
