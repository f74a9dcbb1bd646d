package structs

// ImageAct is what is done with an image on a node.
type ImageAct string

// The acts.
const (
	ImagePull   ImageAct = "pull"   // fetch it from its registry
	ImagePush   ImageAct = "push"   // send it to a registry under another name, or its own
	ImageTag    ImageAct = "tag"    // give it another name
	ImageRemove ImageAct = "remove" // take its name away, and itself with the last one
	ImageSave   ImageAct = "save"   // make it of a container; by CommitOrder
)

// ImagesAsk asks a node for its images.
type ImagesAsk struct {
	Name string `json:"name,omitempty"` // only the one of this name
	Work bool   `json:"work,omitempty"` // only what is done with them
}

// NodeImages are the images that a node holds, and what is being done with them. The
// engine is asked at the moment: nothing of it is stored.
type NodeImages struct {
	Images []NodeImage `json:"images,omitempty"` // at most NodeImagesMax, those used last first
	Left   int         `json:"left,omitempty"`   // of them that are left out
	Work   []ImageWork `json:"work,omitempty"`   // newest last
}

// NodeImage is an image on a node.
type NodeImage struct {
	Names     []string `json:"names,omitempty"` // as ImageName spells them
	ID        string   `json:"id"`              // of its content, "sha256:…"
	Digests   []string `json:"digests,omitempty"`
	Bytes     int64    `json:"bytes"`
	CreatedAt UnixNano `json:"created_at,omitempty"`
	ImageTraits
	InUse   bool     `json:"in_use,omitempty"`  // by a container
	Pulled  bool     `json:"pulled,omitempty"`  // by the agent, which removes it when the disk is full
	Private bool     `json:"private,omitempty"` // it came with the credentials of a job, and is for those who have them
	UsedAt  UnixNano `json:"used_at,omitempty"` // last, by a job
}

// ImageOrder has a node do something with an image. A server has authorised the user.
type ImageOrder struct {
	Act   ImageAct    `json:"act"`
	Image string      `json:"image"`
	To    string      `json:"to,omitempty"` // of push and tag
	By    string      `json:"by"`
	Login SecretBytes `json:"login,omitempty"` // to the registry, as image_credentials has it
	Own   bool        `json:"own,omitempty"`   // without Login, by what the node has
}

// ImageWork is how far a node is with an order. Orders for the same at the same time are
// one work.
type ImageWork struct {
	Act       ImageAct `json:"act"`
	Image     string   `json:"image"`
	To        string   `json:"to,omitempty"`
	By        string   `json:"by"`
	StartedAt UnixNano `json:"started_at"`
	EndedAt   UnixNano `json:"ended_at,omitempty"`
	Step      string   `json:"step,omitempty"` // resolve | pull | extract | push
	Done      int64    `json:"done,omitempty"`
	Total     int64    `json:"total,omitempty"`
	ID        string   `json:"id,omitempty"`     // of what came, or was sent
	Digest    string   `json:"digest,omitempty"` // under which its registry has it
	Bytes     int64    `json:"bytes,omitempty"`
	Err       *Error   `json:"err,omitempty"`
}
