package structs

// CommitOrder asks a node to keep the container of a running task as an image.
// A server has authorised the user, and has put the name below that of the
// job's project.
type CommitOrder struct {
	AllocID string `json:"alloc_id"`
	Attempt uint64 `json:"attempt"`
	Image   string `json:"image"`             // the whole name, with its tag
	Author  string `json:"author"`            // who asked
	Comment string `json:"comment,omitempty"` // in the person's words
}

// Committed is the image that was made. It lies on that node only.
type Committed struct {
	Image string `json:"image"`
	ID    string `json:"id"` // of its content, "sha256:…"
	Bytes int64  `json:"bytes"`
}

// CommitPrefix begins the names of all images that are made of containers; the
// job's project follows, so that nobody replaces an image of others.
const CommitPrefix = "nomadlike"

// Limits of what is said about such an image.
const (
	CommitNameMax    = 128
	CommitCommentMax = 512
)
