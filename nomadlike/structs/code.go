package structs

// CodeRef names the code that was sent for the jobs of a project: one directory, by
// the digest of its manifest. That of two projects is never the same.
type CodeRef struct {
	Project string `json:"project"`
	Digest  string `json:"digest"`
}

// ID spells the reference in one word.
func (r CodeRef) ID() string { return r.Project + "/" + r.Digest }

// Bounds of a stream of code.
const (
	CodeAskMax  = 1_024     // chunks of one CodeAsk
	CodePartMax = 256 << 10 // bytes of one CodePart
)

// CodeChunk is a part of a file, by what it holds.
type CodeChunk struct {
	Digest string `json:"d"`
	Size   int64  `json:"s"`
}

// CodeAsk asks a server for code, on a stream: first of which tree, and so for its
// manifest; then for chunks, any number of times. A node names an allocation of its
// own, and gets the tree of that one's job; another server names the tree.
type CodeAsk struct {
	AllocID string      `json:"alloc_id,omitempty"`
	Tree    CodeRef     `json:"tree,omitzero"`
	Chunks  []CodeChunk `json:"chunks,omitempty"` // at most CodeAskMax
}

// CodePart is a piece of the answer, of at most CodePartMax bytes: of the manifest first,
// then of the chunks in the order in which they were asked for.
type CodePart struct {
	Digest string `json:"d,omitempty"` // of the tree; with the manifest's first piece
	Data   []byte `json:"b,omitempty"`
	End    bool   `json:"e,omitempty"` // of the manifest, or of a chunk
}
