package structs

import "time"

// CodeRef names the code that was sent for the jobs of a project: one directory, by
// the digest of its manifest. That of two projects is never the same.
type CodeRef struct {
	Project string `json:"project"`
	Digest  string `json:"digest"`
}

// ID spells the reference in one word.
func (r CodeRef) ID() string { return r.Project + "/" + r.Digest }

// CodeTree is the record of code that more than half of the servers have on their
// disks; its bytes are never in the log. Apply fixes when and by whom.
type CodeTree struct {
	Project string `json:"project"`
	Digest  string `json:"digest"` // of its manifest
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"` // of all its files

	MadeAt      UnixNano `json:"made_at,omitempty"`
	MadeBy      string   `json:"made_by,omitempty"`
	SentAt      UnixNano `json:"sent_at,omitempty"` // when somebody last sent it, or would have
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// Ref names the code.
func (t *CodeTree) Ref() CodeRef { return CodeRef{Project: t.Project, Digest: t.Digest} }

// Bounds of the records of code.
const (
	CodeTreesPerProject = 10_000
	CodeTreesMax        = 100_000 // of the cluster
	CodeForgetMax       = 256     // that one command forgets

	CodeMaxDefault = 512 << 20 // bytes of code that travel with one job, unless its project says otherwise
	CodeMaxLeast   = 1 << 20   // bytes that a project may say
	CodeMaxMost    = 16 << 30  // likewise
)

// CodeGrace is how long code stays that no job names, after it was last sent.
const CodeGrace = Duration(24 * time.Hour)

// CodePut says that more than half of the servers have code on their disks. Of code
// that is known it says that somebody would send it again.
type CodePut struct {
	Tree CodeTree `json:"tree"`
	// Since is ProjectUsage.CodeSince, as whoever took the bytes knew it: of a project that
	// was deleted meanwhile they are not there.
	Since uint64 `json:"since,omitempty" since:"40"`
}

// CodeForget removes the records of code. What a job names by then, or what was sent
// less than CodeGrace ago, is left alone.
type CodeForget struct {
	Trees []CodeRef `json:"trees"`
}

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
// own, and gets the tree of that one's job; another server names the tree, or only a
// project, and gets whatever chunks of that are there, without a manifest before them.
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
	Lacks  bool   `json:"l,omitempty"` // instead of a chunk, to who named a project alone
}

// CodeTake has another server fetch code from the one that asks.
type CodeTake struct {
	Tree CodeRef `json:"tree"`
}

// CodeTaken says that a server has the code on its disk.
type CodeTaken struct{}
