package driver

import "context"

// Preparer is an optional interface: a driver that needs something before a
// task can start, such as its image. The client calls it while the allocation
// is preparing, so that no rank waits for another one's download. Start does
// what was not prepared.
type Preparer interface {
	// Prepare fetches what spec needs and tells report how far it is, from
	// one goroutine and not more often than a person can read. The error is a
	// *structs.Error. When ctx is cancelled the work stops; what is already
	// there is kept.
	Prepare(ctx context.Context, spec TaskSpec, report func(Progress)) (Prepared, error)
}

// Progress is how far a preparation is.
type Progress struct {
	Step  string `json:"step"`            // "resolve", "pull" or "extract"
	Item  string `json:"item,omitempty"`  // what is being fetched: the image's name
	Done  int64  `json:"done"`            // bytes
	Total int64  `json:"total,omitempty"` // bytes; 0: not known yet, it may grow
}

// Prepared reports what a task will run on.
type Prepared struct {
	Image  string `json:"image"`            // as the job names it
	ID     string `json:"id"`               // the image's content on this node, "sha256:…"
	Digest string `json:"digest,omitempty"` // under which its registry has it, "sha256:…"; "" for an image that has never been in one
	Pulled bool   `json:"pulled"`           // it was fetched now
	Bytes  int64  `json:"bytes"`            // the image's size
}

// Committer is an optional interface: a driver that can keep what a task has
// changed in its container as a new image.
type Committer interface {
	// Commit makes an image of a task's container, running or ended, under
	// the name given in ref ("name:tag"); processes are paused while it is
	// made. Nothing of the task's environment, mounts or identity goes into
	// it. The image stays on this node.
	Commit(ctx context.Context, id TaskID, ref string, note CommitNote) (Prepared, error)
}

// CommitNote says who made an image and why.
type CommitNote struct {
	Author  string `json:"author,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// StateSaver is an optional interface: a driver whose tasks have a file system of
// their own, which goes with them, and that can save what one left there.
type StateSaver interface {
	// SaveState saves what a task that has ended left in its own file system, and
	// returns the image with which a later task, whose container pulls nothing,
	// begins there. It is called before Destroy.
	SaveState(ctx context.Context, id TaskID) (image string, err error)
	// DropState removes what was saved of a task. It does nothing when nothing was.
	DropState(ctx context.Context, id TaskID) error
}
