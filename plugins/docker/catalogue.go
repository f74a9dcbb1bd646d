package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// catalogue is what can be done with the images of an engine; it implements
// driver.Images.
type catalogue struct{ *imageStore }

// Images looks at the engine's images and moves them.
func (d *Driver) Images() driver.Images { return catalogue{d.images} }

// moves speaks to the engine.
func (c catalogue) moves() engineImages { return engineImages{c.engine} }

// List lists the images of the engine, but for what debug holds keep.
func (c catalogue) List(ctx context.Context, name string) ([]driver.Image, error) {
	if err := c.host.learn(ctx); err != nil {
		return nil, engineError(err)
	}
	var all []driver.Image
	if name == "" {
		found, err := c.moves().catalogued(ctx)
		if err != nil {
			return nil, engineError(err)
		}
		all = found
	} else {
		ref, err := parseRef(name)
		if err != nil {
			return nil, err
		}
		found, err := c.moves().catalogue(ctx, ref.String())
		switch {
		case errors.Is(err, errNotFound):
			return nil, nil
		case err != nil:
			return nil, engineError(err)
		}
		all = []driver.Image{found}
	}
	used, err := c.engine.imagesInUse(ctx)
	if err != nil {
		return nil, engineError(err)
	}
	held := func(image driver.Image) bool {
		return slices.ContainsFunc(image.Names, func(name string) bool { return strings.HasPrefix(name, heldImage) })
	}
	all = slices.DeleteFunc(all, held)
	for i := range all {
		use := c.uses.get(all[i].ID)
		all[i].InUse, all[i].Pulled, all[i].Private, all[i].Used = slices.Contains(used, all[i].ID), use.Pulled, use.Private, use.LastUse
	}
	return all, nil
}

// Pull fetches an image from its registry.
func (c catalogue) Pull(ctx context.Context, name string, login []byte, report func(driver.Progress)) (driver.Prepared, error) {
	if err := c.host.learn(ctx); err != nil {
		return driver.Prepared{}, engineError(err)
	}
	_, prepared, err := c.prepare(ctx, &driver.Container{Image: name, Pull: driver.PullAlways}, login, report)
	return prepared, err
}

// Push sends an image to a registry. Where the name is not the image's own it has it
// only while it is sent: tasks that want an image of the name wait until then, so that
// nobody puts another image in the place of the registry's by a push that is refused.
func (c catalogue) Push(ctx context.Context, name, to string, login []byte, own bool, report func(driver.Progress)) (driver.Prepared, error) {
	from, target, found, err := c.moved(ctx, name, to)
	if err != nil {
		return driver.Prepared{}, err
	}
	if only := c.config.Policy.RegistriesOnly; len(only) > 0 && !slices.Contains(only, target.domain) {
		return driver.Prepared{}, structs.NewError(structs.CodeForbidden, "docker.registry_refused", "registry", target.domain, "image", to)
	}
	who, err := loginOf(login, target.domain)
	if err != nil {
		return driver.Prepared{}, structs.NewError(structs.CodeInvalid, "docker.image_credentials", "registry", target.domain).Because(err)
	}
	if !own && !c.mayUse(found.ID, who) {
		return driver.Prepared{}, structs.NewError(structs.CodeForbidden, "docker.image_private", "image", name)
	}
	if who == nil && own {
		if who, err = c.config.credentials(target.domain); err != nil {
			return driver.Prepared{}, structs.NewError(structs.CodeInternal, "docker.credentials_broken", "registry", target.domain, "cause", err)
		}
	}
	if from.String() != target.String() {
		leave, err := c.lend(ctx, found.ID, target)
		if err != nil {
			return driver.Prepared{}, err
		}
		defer leave()
	}
	progress := newPullProgress(to)
	last := time.Now()
	digest, err := c.moves().push(ctx, target.String(), who, func(line layerProgress) {
		progress.sent(line)
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			report(progress.sum())
		}
	})
	switch {
	case err == nil:
		report(progress.sum())
		return driver.Prepared{Image: to, ID: found.ID, Digest: digest, Bytes: found.Bytes}, nil
	case ctx.Err() != nil:
		return driver.Prepared{}, fmt.Errorf("push %s: %w", to, ctx.Err())
	}
	return driver.Prepared{}, pushRefusal(err, to, target.domain)
}

// lend has an image be called something for a while. It is refused where another image has it.
func (c catalogue) lend(ctx context.Context, id string, target imageRef) (leave func(), err error) {
	release, err := c.pushes.enter(ctx, target.String())
	if err != nil {
		return nil, err
	}
	known, err := c.engine.image(ctx, target.String())
	switch {
	case err == nil && known.ID == id: // it had the name before
		return release, nil
	case err == nil:
		release()
		return nil, structs.NewError(structs.CodeConflict, "docker.image_taken", "image", target.String())
	case !errors.Is(err, errNotFound):
		release()
		return nil, engineError(err)
	}
	if err := c.moves().tag(ctx, id, target.String()); err != nil {
		release()
		return nil, engineError(err)
	}
	return func() {
		defer release()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aboutPatience)
		defer cancel()
		if err := c.moves().untag(ctx, target.String()); err != nil && !errors.Is(err, errNotFound) {
			c.log.Error("an image keeps the name under which it was sent", "image", target.String(), "error", err)
		}
	}, nil
}

// Tag has an image be called something else, too.
func (c catalogue) Tag(ctx context.Context, name, to string) (driver.Prepared, error) {
	_, target, found, err := c.moved(ctx, name, to)
	if err != nil {
		return driver.Prepared{}, err
	}
	if err := c.moves().tag(ctx, found.ID, target.String()); err != nil {
		return driver.Prepared{}, engineError(err)
	}
	return driver.Prepared{Image: to, ID: found.ID, Bytes: found.Bytes}, nil
}

// moved finds an image, and reads the other name that it is to have.
func (c catalogue) moved(ctx context.Context, name, to string) (from, target imageRef, found image, err error) {
	if from, err = parseRef(name); err != nil {
		return from, target, found, err
	}
	if target, err = parseRef(to); err == nil && target.tag == "" {
		err = structs.NewError(structs.CodeInvalid, "docker.image_name", "image", to)
	}
	if err != nil {
		return from, target, found, err
	}
	if found, err = c.engine.image(ctx, from.String()); errors.Is(err, errNotFound) {
		return from, target, found, structs.NewError(structs.CodeNotFound, "docker.image_none", "image", name)
	} else if err != nil {
		return from, target, found, engineError(err)
	}
	return from, target, found, nil
}

// Remove takes a name away, and the image with its last one.
func (c catalogue) Remove(ctx context.Context, name string) error {
	ref, err := parseRef(name)
	if err != nil {
		return err
	}
	found, err := c.engine.image(ctx, ref.String())
	switch {
	case errors.Is(err, errNotFound):
		return structs.NewError(structs.CodeNotFound, "docker.image_none", "image", name)
	case err != nil:
		return engineError(err)
	}
	used, err := c.engine.imagesInUse(ctx)
	if err != nil {
		return engineError(err)
	}
	if slices.Contains(used, found.ID) {
		return structs.NewError(structs.CodeConflict, "docker.image_used", "image", name)
	}
	names := []string{ref.String()}
	if ref.id != "" && len(found.Tags) > 0 {
		names = found.Tags // by its id the engine removes none that has several
	}
	for _, one := range names {
		switch err := c.moves().untag(ctx, one); {
		case errors.Is(err, errInUse):
			return structs.NewError(structs.CodeConflict, "docker.image_used", "image", name).Because(err)
		case err != nil && !errors.Is(err, errNotFound):
			return engineError(err)
		}
	}
	return nil
}

// pushRefusal finds what an engine means by an error of pushing.
func pushRefusal(err error, name, registry string) error {
	text := strings.ToLower(err.Error())
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case errors.Is(err, driver.ErrUnavailable):
		return engineError(err)
	case says("unauthorized", "authentication required", "no basic auth", "denied"):
		return structs.NewError(structs.CodeForbidden, "docker.push_denied", "image", name, "registry", registry).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "docker.push_failed", "image", name, "registry", registry, "cause", lastClause(err.Error())).Because(err)
}

// sent takes a line about a layer that is sent.
func (p *pullProgress) sent(line layerProgress) {
	known := p.layers[line.Layer]
	switch line.Status {
	case "Preparing", "Waiting":
		known.Status = "Waiting"
	case "Pushing":
		known.Status, known.Done, known.Total = "Downloading", line.Done, max(line.Total, line.Done, known.Total)
	case "Pushed", "Layer already exists":
		known.Status, known.Done = "", known.Total
	default:
		return // the line about the whole image
	}
	p.step = "push"
	p.layers[line.Layer] = known
}

// idle waits until nobody is busy with an image.
func (p *pulls) idle(ctx context.Context, ref string) error {
	p.mu.Lock()
	_, busy := p.mu.busy[ref]
	p.mu.Unlock()
	if !busy {
		return nil
	}
	release, err := p.enter(ctx, ref)
	if err == nil {
		release()
	}
	return err
}
