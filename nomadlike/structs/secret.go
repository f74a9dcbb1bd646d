package structs

import (
	"strconv"
	"strings"
)

// Secret is a value that tasks are given and nobody reads back: of a project, or of
// one user. The value is sealed before it enters the log; its record holds no byte of
// it in the clear. Written through the API; Apply fixes when and by whom.
type Secret struct {
	Project string `json:"project,omitempty"` // "" of a user's own
	User    string `json:"user,omitempty"`    // whose own it is; "" of a project's
	Name    string `json:"name"`
	Version uint64 `json:"version"` // from 1; each value has its own

	Key    string `json:"key"`    // id of the data key that it is sealed with
	Sealed []byte `json:"sealed"` // AES-256-GCM, bound to scope, name and version

	CreatedAt   UnixNano `json:"created_at,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"` // of a project's secret: whose it is
	UpdatedAt   UnixNano `json:"updated_at,omitempty"`
	UpdatedBy   string   `json:"updated_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// Bounds of secrets.
const (
	SecretNameMax   = 64       // bytes
	SecretSizeMax   = 64 << 10 // bytes of a value
	SecretsPerScope = 200      // of one project, and of one user
	SecretsMax      = 20_000   // of the cluster
	SecretUsesMax   = 64       // of one job
	SealedOverhead  = 64       // bytes that sealing adds at most
)

// SecretRef names one secret: who has it, and its name.
type SecretRef struct {
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Name    string `json:"name"`
}

// ID spells the reference in one word: project/NAME, or ~user/NAME.
func (r SecretRef) ID() string {
	if r.User != "" {
		return "~" + r.User + "/" + r.Name
	}
	return r.Project + "/" + r.Name
}

// ParseSecretID reads what SecretRef.ID spells.
func ParseSecretID(id string) (ref SecretRef, ok bool) {
	scope, name, ok := strings.Cut(id, "/")
	if user, own := strings.CutPrefix(scope, "~"); own {
		return SecretRef{User: user, Name: name}, ok && user != ""
	}
	return SecretRef{Project: scope, Name: name}, ok && scope != ""
}

// Ref names the secret.
func (s *Secret) Ref() SecretRef { return SecretRef{Project: s.Project, User: s.User, Name: s.Name} }

// Binding is what a sealed value is bound to: the same bytes under another name, in
// another scope or as another version cannot be opened.
func (s *Secret) Binding() []byte {
	binding := []byte("nomadlike secret\x00")
	for _, part := range []string{s.Project, s.User, s.Name, strconv.FormatUint(s.Version, 10)} {
		binding = append(append(binding, part...), 0)
	}
	return binding
}

// SecretNameProblem reports why name may not name a secret, as the message id of the
// reason, or "" when it may: letters, digits and _, not beginning with a digit, as
// variables of an environment are named.
func SecretNameProblem(name string) string {
	switch {
	case name == "":
		return "name.empty"
	case len(name) > SecretNameMax:
		return "secret.name_too_long"
	case nameEnd(name) != len(name):
		return "secret.name_characters"
	}
	return ""
}

// SecretUse is one secret of a job: its task is given it as a variable of its
// environment, or as a file of its secrets directory; or the node signs in with it to
// the registry of the task's image, and the task does not get it. The job file says it
// as secret("NAME").
type SecretUse struct {
	Name  string `json:"name"`
	Var   string `json:"var,omitempty"`              // the variable; "" for a file called Name, and for Image
	Image bool   `json:"image,omitempty" since:"29"` // image_credentials
	// User is whose own secret it is, "" for the project's. Set at admission: the
	// submitter's own where there is one of that name, else the project's.
	User string `json:"user,omitempty"`
}

// Ref names the secret of a job in a project.
func (u SecretUse) Ref(project string) SecretRef {
	if u.User != "" {
		return SecretRef{User: u.User, Name: u.Name}
	}
	return SecretRef{Project: project, Name: u.Name}
}

// SecretKey is a data key of the cluster, sealed with a key of the servers that is
// never in the log: whoever has a snapshot alone can open nothing.
type SecretKey struct {
	ID        string   `json:"id"`
	ServerKey string   `json:"server_key"` // fingerprint of the servers' key
	Sealed    []byte   `json:"sealed"`
	CreatedAt UnixNano `json:"created_at,omitempty"`
}

// Binding is what a sealed data key is bound to.
func (k *SecretKey) Binding() []byte { return []byte("nomadlike data key\x00" + k.ID + "\x00") }

// SecretKeysMax bounds the data keys: the current one, and those that a rotation has
// not made free yet.
const SecretKeysMax = 16

// SecretKeyring is the one record of the data keys. The last one seals, all open.
type SecretKeyring struct {
	Keys        []SecretKey `json:"keys"`
	ModifyIndex uint64      `json:"modify_index,omitempty"`
}

// Current is the data key that seals; nil without one.
func (k *SecretKeyring) Current() *SecretKey {
	if k == nil || len(k.Keys) == 0 {
		return nil
	}
	return &k.Keys[len(k.Keys)-1]
}

// Key returns a data key by its id; nil when there is none.
func (k *SecretKeyring) Key(id string) *SecretKey {
	if k == nil {
		return nil
	}
	for i := range k.Keys {
		if k.Keys[i].ID == id {
			return &k.Keys[i]
		}
	}
	return nil
}

// SecretSet makes a secret or gives it another value. It is refused unless the
// record has the version before: the value is sealed for exactly one.
type SecretSet struct {
	Secret Secret `json:"secret"`
}

// SecretDelete removes a secret.
type SecretDelete struct {
	Ref SecretRef `json:"ref"`
}

// SecretKeyAdd makes a data key the one that seals. It is refused unless Before is
// the id of the present one.
type SecretKeyAdd struct {
	Key    SecretKey `json:"key"`
	Before string    `json:"before,omitempty"`
}

// SecretsReseal replaces sealed values by the same ones under another data key.
// Those whose record has another version by then are left alone. With Forget the
// data keys that seal nothing any more, but for the current one, are forgotten.
type SecretsReseal struct {
	Secrets []SecretSealed `json:"secrets,omitempty"`
	Forget  bool           `json:"forget,omitempty"`
}

// SecretSealed is one value that was sealed anew.
type SecretSealed struct {
	Ref     SecretRef `json:"ref"`
	Version uint64    `json:"version"`
	Key     string    `json:"key"`
	Sealed  []byte    `json:"sealed"`
}

// SecretsRequest asks a server for the secrets of an allocation. Only the node that
// runs it is answered.
type SecretsRequest struct {
	AllocID string `json:"alloc_id"`
}

// SecretsReply carries them, in the order of the job's Task.Secrets.
type SecretsReply struct {
	Values []SecretValue `json:"values"`
}

// SecretValue is a value in the clear, between a server and the node that needs it.
// It prints as nothing.
type SecretValue struct {
	Use     SecretUse   `json:"use"`
	Version uint64      `json:"version"`
	Value   SecretBytes `json:"value"`
}

// SecretBytes is a value that prints as ***, whatever prints it.
type SecretBytes []byte

// String hides the value.
func (SecretBytes) String() string { return "***" }

// GoString hides the value.
func (SecretBytes) GoString() string { return "***" }

// ServerKeyOffer brings a server a key of the servers that it may lack. It is never
// asked for: a server brings it to the address at which it knows the other.
type ServerKeyOffer struct {
	Key SecretBytes `json:"key"`
}

// ServerKeyKept says that a server has stored an offered key.
type ServerKeyKept struct{}
