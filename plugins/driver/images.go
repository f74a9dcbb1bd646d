package driver

import (
	"context"
	"time"
)

// ImageKeeper is an optional interface: a driver whose tasks run in images.
type ImageKeeper interface {
	// Images is what can be done with the images that there are.
	Images() Images
}

// Images looks at images and moves them. Errors are *structs.Error. Any goroutine may
// use it.
type Images interface {
	// List lists the images that are here, or only the one of a name; none of a name
	// that is not here.
	List(ctx context.Context, name string) ([]Image, error)
	// Pull fetches an image from its registry, whatever is here under the name. login is
	// as TaskSpec.ImageCredentials; nil: what the driver has is used.
	Pull(ctx context.Context, name string, login []byte, report func(Progress)) (Prepared, error)
	// Push sends an image to a registry, under a name of that registry, which is not left
	// behind as a name here. Without login what the driver has is used only where own
	// says so: whoever orders it must not have the node's rights by that.
	Push(ctx context.Context, name, to string, login []byte, own bool, report func(Progress)) (Prepared, error)
	// Tag has an image be called something else, too, which may have been another one's name.
	Tag(ctx context.Context, name, to string) (Prepared, error)
	// Remove takes a name away, and the image with its last one. It is refused while a
	// container uses the image.
	Remove(ctx context.Context, name string) error
}

// Image is an image that is here.
type Image struct {
	Names   []string // "registry.lab:5000/train:1"; none of one that has lost them
	Digests []string // "registry.lab:5000/train@sha256:…"
	ID      string   // of its content, "sha256:…"
	Bytes   int64
	Created time.Time
	Labels  map[string]string // whoever's made the image
	InUse   bool              // by a container
	Pulled  bool              // by this driver
	Private bool              // it is for those whose credentials its registry takes
	Used    time.Time         // last, by a task; zero: not that is known
}
