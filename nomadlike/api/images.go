package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// ImageEntry is an image of the catalogue: what nodes hold under a name, joined with
// what administrators declare of it.
type ImageEntry struct {
	Name string `json:"name"`
	structs.ImageTraits
	From     string           `json:"from,omitempty"`   // whose word the traits are: declared | labels; empty where nobody says anything
	SetBy    string           `json:"set_by,omitempty"` // who declared them
	SetAt    structs.UnixNano `json:"set_at,omitempty"`
	ID       string           `json:"id,omitempty"`     // of the content that most nodes have
	Digest   string           `json:"digest,omitempty"` // under which its registry has that; empty where none has it
	Bytes    int64            `json:"bytes,omitempty"`
	Variants int              `json:"variants"` // contents that nodes have under the name: more than one is a tag that has moved
	Count    int              `json:"count"`    // nodes that have it
	InUse    bool             `json:"in_use"`   // by a container of one of them
	// Nodes are those that have it, by name; only where one image is asked for.
	Nodes []ImageOnNode `json:"nodes,omitempty"`
}

// ImageOnNode is what a node has under the name of an image.
type ImageOnNode struct {
	NodeID string           `json:"node_id"`
	Node   string           `json:"node"`
	Pool   string           `json:"pool"`
	ID     string           `json:"id"`
	Digest string           `json:"digest,omitempty"`
	Bytes  int64            `json:"bytes"`
	InUse  bool             `json:"in_use,omitempty"`
	UsedAt structs.UnixNano `json:"used_at,omitempty"`
}

// Whose word the traits of an image are.
const (
	ImageDeclared = "declared"
	ImageLabels   = "labels"
)

// ImagesMax bounds the images of one answer.
const ImagesMax = 2_000

// ImageList answers images.list, by name. Nodes are asked at the moment.
type ImageList struct {
	Images []ImageEntry `json:"images"`
	Left   int          `json:"left,omitempty"` // images that are left out: ask for fewer nodes
	Asked  int          `json:"asked"`          // nodes
	Away   []string     `json:"away"`           // of them, by name, those that did not answer in time
}

// ImageFilter narrows a list of images.
type ImageFilter struct {
	Image string // only this one, with the nodes that have it
	Node  string // id or name
	Pool  string
}

// ImageRequest declares an image. What it leaves out, or sets to null, stays as it was.
type ImageRequest struct {
	Name        string   `json:"name"`
	Scope       []string `json:"scope"`
	Devices     []string `json:"devices"`
	Driver      *string  `json:"driver_version,omitempty"`
	Description *string  `json:"description,omitempty"`
}

// ImageActRequest has a node do something with an image.
type ImageActRequest struct {
	Act    structs.ImageAct `json:"act"` // pull | push | tag | remove
	Image  string           `json:"image"`
	To     string           `json:"to,omitempty"`     // of push and tag: the other name
	Secret string           `json:"secret,omitempty"` // of the request's project, that signs in to the registry
	Mine   bool             `json:"mine,omitempty"`   // it is the caller's own
}

// ImageActed says what a node has begun, or done. Pulls and pushes go on by themselves:
// nodes.images tells how far they are.
type ImageActed struct {
	Index uint64            `json:"index"`
	Work  structs.ImageWork `json:"work"`
}

// The endpoints of image routes.
var (
	ImagesList = endpoint[None, ImageList](Route{
		Name: "images.list", Method: http.MethodGet, Pattern: "/v1/images", Verb: VerbList, Kind: ObjectNode, From: FromKind,
		Query: []Param{
			{"image", "string", "only the image of this name, with the nodes that have it"},
			{"node", "string", "only the node of this id or name"},
			{"pool", "string", "only nodes of this pool"},
		},
		Summary: "List the images that nodes hold, with what is declared of them",
	})
	ImagesPut = endpoint[ImageRequest, Changed](Route{
		Name: "images.put", Method: http.MethodPut, Pattern: "/v1/images", Verb: VerbDrain, Kind: ObjectNode, From: FromKind,
		Summary: "Declare what an image is for: jobs that do not fit are refused",
	})
	ImagesDelete = endpoint[None, Changed](Route{
		Name: "images.delete", Method: http.MethodDelete, Pattern: "/v1/images", Verb: VerbDrain, Kind: ObjectNode, From: FromKind,
		Query:   []Param{{"image", "string", "the name that was declared"}},
		Summary: "Take back what is declared of an image; nodes keep it",
	})
	NodesImages = endpoint[None, structs.NodeImages](Route{
		Name: "nodes.images", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/images", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
		Query:   []Param{{"work", "boolean", "only what is being done with them"}},
		Summary: "Read the images of one node, and how far pulls and pushes are",
	})
	NodesImage = endpoint[ImageActRequest, ImageActed](Route{
		Name: "nodes.image", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/images", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
		Summary: "Have a node pull, push, tag or remove an image",
	})
)

func imageRoutes() []Route {
	return []Route{
		ImagesList.route,
		ImagesPut.route,
		ImagesDelete.route,
		NodesImages.route,
		NodesImage.route,
	}
}

// Images lists the images that nodes hold.
func (c *Client) Images(ctx context.Context, filter ImageFilter) (*ImageList, error) {
	query := url.Values{}
	for name, value := range map[string]string{"image": filter.Image, "node": filter.Node, "pool": filter.Pool} {
		if value != "" {
			query.Set(name, value)
		}
	}
	list, _, err := read(ctx, c, ImagesList, "", query)
	return list, err
}

// DeclareImage says what an image is for.
func (c *Client) DeclareImage(ctx context.Context, request ImageRequest) (*Changed, error) {
	return change(ctx, c, ImagesPut, "", request)
}

// ForgetImage takes back what is declared of an image.
func (c *Client) ForgetImage(ctx context.Context, name string) (*Changed, error) {
	return send(ctx, c, ImagesDelete, call{path: ImagesDelete.path(""), query: url.Values{"image": {name}}})
}

// NodeImages reads the images of a node, or only what is being done with them.
func (c *Client) NodeImages(ctx context.Context, node string, work bool) (*structs.NodeImages, error) {
	query := url.Values{}
	if work {
		query.Set("work", "true")
	}
	images, _, err := read(ctx, c, NodesImages, node, query)
	return images, err
}

// ActOnImage has a node do something with an image.
func (c *Client) ActOnImage(ctx context.Context, node string, request ImageActRequest) (*ImageActed, error) {
	return change(ctx, c, NodesImage, node, request)
}
