package structs

// Guarded is a command that was allowed because of what stood in the state
// when it was asked for. It is applied only while that still stands.
type Guarded struct {
	Guard Guard       `json:"guard"`
	Kind  CommandKind `json:"kind"` // of Body; never CommandGuarded
	Body  []byte      `json:"body"`

	// Once, drawn by the proposer, makes the command count once however often it
	// is in the log: a server that cannot report whether its first try arrived tries
	// again, and between the two somebody else may have changed the same thing.
	// "" is any number of times; at most OnceMax bytes.
	Once string `json:"once,omitempty" since:"16"`
}

// OnceMax bounds Guarded.Once in bytes.
const OnceMax = 64

// Guard is what the decision to allow a command rested on. The check before the
// log and the entry in it are two moments: between them a token may be revoked,
// or an administrator may change the record that was compared with.
type Guard struct {
	// TokenID names the caller's token, which must still be there, and not be
	// over at the command's time; "" for whoever needs none.
	TokenID string `json:"token_id,omitempty"`
	Rests   []Rest `json:"rests,omitempty"`
}

// Rest is one record that was looked at.
type Rest struct {
	Kind  RestKind `json:"kind"`
	ID    string   `json:"id"`              // id, or name where records have names
	Index uint64   `json:"index,omitempty"` // its version: the log index that wrote it; 0: there was none
}

// RestKind says where a record stands. A kind that a server does not know is no
// kind that a decision may rest on: a new one needs a new ProtocolVersion.
type RestKind string

// The kinds of records that decisions rest on.
const (
	RestJob      RestKind = "job" // never changes, but may be deleted
	RestPool     RestKind = "pool"
	RestProject  RestKind = "project"
	RestToken    RestKind = "token"           // another than the caller's own
	RestUser     RestKind = "user"            // since protocol 22
	RestSecret   RestKind = "secret"          // since protocol 26; the id is of SecretRef.ID
	RestSettings RestKind = "settings"        // since protocol 31; the id is SettingsID
	RestService  RestKind = "service-account" // since protocol 34; the id is of ServiceAccount.ID
	RestData     RestKind = "data"            // since protocol 39; the id is of DataID.ID
	RestTemplate RestKind = "template"        // since protocol 50; the id is of TemplateRef.ID
)

// RestChanged is the id of the refusal of a guard of which a record has changed:
// whoever asks again is judged by the new one.
const RestChanged = "state.rest_changed"

// IsZero reports whether the guard guards nothing.
func (g Guard) IsZero() bool { return g.TokenID == "" && len(g.Rests) == 0 }
