package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// imageStore is the images of an engine: it finds and pulls them for tasks, and
// removes those that the rules let go. Its methods may be called from any
// goroutine.
type imageStore struct {
	config *Config
	engine *engine
	host   *host
	uses   *useLog // when images were used last
	pulls  pulls
	pushes pulls  // of images that have a name only while they are sent
	proofs proofs // of who may have private images
	log    *slog.Logger
}

// prepare finds the image or pulls it, as the job asks. One image is pulled
// once at a time. An image that came with the credentials of a job is not there for
// others until the registry has let them have it, too.
func (s *imageStore) prepare(ctx context.Context, wanted *driver.Container, secret []byte, report func(driver.Progress)) (image, driver.Prepared, error) {
	ref, err := parseRef(wanted.Image)
	if err != nil {
		return image{}, driver.Prepared{}, err
	}
	if only := s.config.Policy.RegistriesOnly; len(only) > 0 && ref.id == "" && !slices.Contains(only, ref.domain) {
		return image{}, driver.Prepared{}, structs.NewError(structs.CodeForbidden, "docker.registry_refused", "registry", ref.domain, "image", wanted.Image)
	}
	login, err := loginOf(secret, ref.domain)
	if err != nil {
		return image{}, driver.Prepared{}, structs.NewError(structs.CodeInvalid, "docker.image_credentials", "registry", ref.domain).Because(err)
	}
	if err := s.pushes.idle(ctx, ref.String()); err != nil {
		return image{}, driver.Prepared{}, err
	}
	prepared := driver.Prepared{Image: wanted.Image}
	if wanted.Pull != driver.PullAlways || ref.id != "" {
		found, err := s.engine.image(ctx, ref.String())
		switch {
		case err == nil && s.mayUse(found.ID, login):
			return s.use(ref, found, prepared)
		case err == nil && (wanted.Pull == driver.PullNever || ref.id != ""):
			return image{}, driver.Prepared{}, structs.NewError(structs.CodeForbidden, "docker.image_private", "image", wanted.Image)
		case err == nil: // the registry says whether this one may have it
		case !errors.Is(err, errNotFound):
			return image{}, driver.Prepared{}, engineError(err)
		case wanted.Pull == driver.PullNever || ref.id != "":
			return image{}, driver.Prepared{}, structs.NewError(structs.CodeInvalid, "docker.image_absent", "image", wanted.Image)
		}
	}
	release, err := s.pulls.enter(ctx, ref.String())
	if err != nil {
		return image{}, driver.Prepared{}, err
	}
	defer release()
	if wanted.Pull != driver.PullAlways {
		if found, err := s.engine.image(ctx, ref.String()); err == nil && s.mayUse(found.ID, login) {
			return s.use(ref, found, prepared) // somebody else has pulled it meanwhile
		}
	}
	before, _ := s.engine.image(ctx, ref.String())
	if err := s.pull(ctx, ref, wanted.Image, login, report); err != nil {
		return image{}, driver.Prepared{}, err
	}
	found, err := s.engine.image(ctx, ref.String())
	if err != nil {
		return image{}, driver.Prepared{}, engineError(err)
	}
	prepared.Pulled = found.ID != before.ID
	s.uses.pulled(found.ID, prepared.Pulled, login != nil)
	if login != nil {
		s.proofs.add(found.ID, login)
	}
	return s.use(ref, found, prepared)
}

// mayUse reports whether a task may run on an image that is here without asking the
// registry: everybody may where it did not come by a job's credentials, and whoever has
// the same as once opened it.
func (s *imageStore) mayUse(id string, login *credentials) bool {
	return !s.uses.get(id).Private || login != nil && s.proofs.has(id, login)
}

// use notes that a task is about to run on an image.
func (s *imageStore) use(ref imageRef, found image, prepared driver.Prepared) (image, driver.Prepared, error) {
	prepared.ID, prepared.Bytes, prepared.Digest = found.ID, found.Bytes, digestOf(ref, found.Digests)
	if err := s.uses.used(found.ID, time.Now()); err != nil {
		s.log.Warn("use of an image is not recorded", logkey.Error, err)
	}
	return found, prepared, nil
}

// pull fetches an image, with the job's credentials or else the node's, and says in
// the words of the catalogue what went wrong.
func (s *imageStore) pull(ctx context.Context, ref imageRef, name string, login *credentials, report func(driver.Progress)) (err error) {
	if login == nil {
		if login, err = s.config.credentials(ref.domain); err != nil {
			return structs.NewError(structs.CodeInternal, "docker.credentials_broken", "registry", ref.domain, "cause", err)
		}
	}
	report(driver.Progress{Step: "resolve", Item: name})
	progress := newPullProgress(name)
	last := time.Now()
	err = s.engine.pull(ctx, ref.String(), login, func(line layerProgress) {
		progress.add(line)
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			report(progress.sum())
		}
	})
	if err == nil {
		report(progress.sum())
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("pull %s: %w", name, ctx.Err())
	}
	return pullRefusal(err, name, ref.domain)
}

// run removes images now and then, as the rules say, until ctx ends.
func (s *imageStore) run(ctx context.Context) {
	timer := time.NewTimer(s.config.GC.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := s.collect(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Debug("images are not collected", logkey.Error, err)
		}
		timer.Reset(s.config.GC.Every)
	}
}

// collect looks at all images once and removes those that the rules
// let go at the given time.
func (s *imageStore) collect(ctx context.Context, now time.Time) error {
	images, disk, err := s.stored(ctx)
	if err != nil {
		return err
	}
	for _, r := range collect(images, disk, s.config.GC, now) {
		// By its names: an image with several cannot be removed by its id
		// without force, and force would take it from a container.
		names := r.Names
		if len(names) == 0 {
			names = []string{r.ID}
		}
		for _, name := range names {
			if err := s.engine.removeImage(ctx, name); err != nil && !errors.Is(err, errNotFound) {
				return err
			}
		}
		s.log.Info("image removed", "image", r.ID, "names", r.Names, "bytes", r.Bytes, logkey.Reason, r.Reason)
	}
	var ids []string
	for _, i := range images {
		ids = append(ids, i.ID)
	}
	return s.uses.retain(ids)
}

// stored gathers what collect decides about.
func (s *imageStore) stored(ctx context.Context) ([]storedImage, diskUse, error) {
	if err := s.host.learn(ctx); err != nil {
		return nil, diskUse{}, err
	}
	all, err := s.engine.images(ctx)
	if err != nil {
		return nil, diskUse{}, err
	}
	used, err := s.engine.imagesInUse(ctx)
	if err != nil {
		return nil, diskUse{}, err
	}
	var pinned []string
	for _, name := range s.config.GC.Pinned {
		if found, err := s.engine.image(ctx, name); err == nil {
			pinned = append(pinned, found.ID)
		}
	}
	var stored []storedImage
	for _, i := range all {
		use := s.uses.get(i.ID)
		names := slices.Clone(i.Tags)
		if len(names) == 0 {
			names = slices.Clone(i.Digests)
		}
		stored = append(stored, storedImage{
			ID: i.ID, Names: names, Bytes: i.Bytes, LastUse: use.LastUse, Pulled: use.Pulled,
			InUse: slices.Contains(used, i.ID), Excluded: slices.Contains(pinned, i.ID),
		})
	}
	now, _ := s.host.newest()
	return stored, diskOf(now.info.RootDir), nil
}

// diskOf reports how full the disk below a directory is.
func diskOf(dir string) diskUse {
	var stat syscall.Statfs_t
	if dir == "" || syscall.Statfs(dir, &stat) != nil {
		return diskUse{}
	}
	block := stat.Bsize
	return diskUse{Used: int64(stat.Blocks-stat.Bfree) * block, Total: int64(stat.Blocks-stat.Bfree+stat.Bavail) * block}
}
