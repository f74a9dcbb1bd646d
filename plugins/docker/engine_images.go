package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"nomadlike/plugins/driver"
)

// engineImages speaks to the engine about images that nobody runs.
type engineImages struct{ *engine }

// catalogued lists the images that the engine has, with their labels, as the contract
// has them; what is known of their use is not in it.
func (e engineImages) catalogued(ctx context.Context) ([]driver.Image, error) {
	found, err := e.api.ImageList(ctx, imagetypes.ListOptions{})
	if err != nil {
		return nil, told("list images", err)
	}
	all := make([]driver.Image, 0, len(found))
	for _, i := range found {
		all = append(all, driver.Image{
			ID: i.ID, Names: named(i.RepoTags), Digests: named(i.RepoDigests), Bytes: i.Size, Created: time.Unix(i.Created, 0), Labels: i.Labels,
		})
	}
	return all, nil
}

// catalogue looks at one image.
func (e engineImages) catalogue(ctx context.Context, ref string) (driver.Image, error) {
	found, err := e.api.ImageInspect(ctx, ref)
	if err != nil {
		return driver.Image{}, told("look at image", err)
	}
	out := driver.Image{ID: found.ID, Names: named(found.RepoTags), Digests: named(found.RepoDigests), Bytes: found.Size}
	if at := nanoseconds(found.Created); at != 0 {
		out.Created = time.Unix(0, at)
	}
	if found.Config != nil {
		out.Labels = found.Config.Labels
	}
	return out, nil
}

// named leaves out what older engines have in the place of no name.
func named(names []string) (kept []string) {
	for _, name := range names {
		if name != "<none>:<none>" && name != "<none>@<none>" {
			kept = append(kept, name)
		}
	}
	return kept
}

// tag has an image be called something else, too.
func (e engineImages) tag(ctx context.Context, id, name string) error {
	return told("name image", e.api.ImageTag(ctx, id, name))
}

// errInUse is returned for an image that a container uses.
var errInUse = errors.New("in use")

// untag takes a name of an image away, and the image with its last one.
func (e engineImages) untag(ctx context.Context, name string) error {
	err := e.removeImage(ctx, name)
	if errdefs.IsConflict(err) {
		return fmt.Errorf("%w: %w", errInUse, err)
	}
	return err
}

// encoded is a login as the engine's API takes it; "" of none, which pulls take.
func encoded(login *credentials) (string, error) {
	if login == nil {
		return "", nil
	}
	auth, err := registry.EncodeAuthConfig(registry.AuthConfig{Username: login.username, Password: login.password, IdentityToken: login.token})
	if err != nil {
		return "", errors.New("the credentials cannot be encoded")
	}
	return auth, nil
}

// anonymous is who has no login, for pushes: the engine wants one.
const anonymous = "e30=" // {}

// push sends an image to its registry, reports every line that the engine sends, and
// returns the digest under which the registry has it.
func (e engineImages) push(ctx context.Context, name string, login *credentials, report func(layerProgress)) (string, error) {
	auth, err := encoded(login)
	if err != nil {
		return "", fmt.Errorf("push image: %w", err)
	}
	if auth == "" {
		auth = anonymous
	}
	stream, err := e.api.ImagePush(ctx, name, imagetypes.PushOptions{RegistryAuth: auth})
	if err != nil {
		return "", told("push image", err)
	}
	defer stream.Close()
	digest := ""
	for decoder := json.NewDecoder(stream); ; {
		var line struct {
			ID             string `json:"id"`
			Status         string `json:"status"`
			Error          string `json:"error"`
			ProgressDetail struct {
				Current int64 `json:"current"`
				Total   int64 `json:"total"`
			} `json:"progressDetail"`
			Aux struct {
				Digest string `json:"Digest"`
			} `json:"aux"`
		}
		switch err := decoder.Decode(&line); {
		case errors.Is(err, io.EOF):
			return digest, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("push image: %w", ctx.Err())
		case err != nil:
			return "", told("push image", err)
		case line.Error != "":
			return "", fmt.Errorf("push image: %s", line.Error)
		}
		if line.Aux.Digest != "" {
			digest = line.Aux.Digest
		}
		report(layerProgress{Layer: line.ID, Status: line.Status, Done: line.ProgressDetail.Current, Total: line.ProgressDetail.Total})
	}
}
