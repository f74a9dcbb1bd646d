package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Bounds of what is done with images at the servers' word.
const (
	imageWorkAtOnce = 4  // pulls and pushes
	imageWorkKept   = 32 // of what has ended, for who asks how it went
	imageWorkMax    = 4 * time.Hour
	imageListMax    = 10 * time.Second // of a look at the engine
	imageActMax     = time.Minute      // of a removal, or a new name
)

// Images answers what servers ask about the images of a node, and does with them what
// they say. Pulls and pushes go on when whoever asked for them has gone. Any goroutine
// may use it.
type Images struct {
	keeper driver.Images // nil: no driver has any
	now    func() time.Time
	log    *slog.Logger
	begin  chan func(context.Context)

	mu struct {
		sync.Mutex
		work []*structs.ImageWork // oldest first
	}
}

// NewImages makes what answers about the images of drivers.
func NewImages(drivers map[string]driver.Driver, now func() time.Time, log *slog.Logger) *Images {
	i := &Images{now: now, log: log, begin: make(chan func(context.Context))}
	if keeper, ok := drivers[structs.DriverDocker].(driver.ImageKeeper); ok {
		i.keeper = keeper.Images()
	}
	return i
}

// Run does what is ordered until ctx is cancelled, and waits for it.
func (i *Images) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-i.begin:
			work.Go(func() { do(ctx) })
		}
	}
}

// List answers Node.Images.
func (i *Images) List(ctx context.Context, ask *structs.ImagesAsk) (*structs.NodeImages, error) {
	out := &structs.NodeImages{Work: i.known()}
	if ask.Work || i.keeper == nil {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, imageListMax)
	defer cancel()
	found, err := i.keeper.List(ctx, ask.Name)
	if err != nil {
		return nil, imageFailure(err, ask.Name)
	}
	slices.SortFunc(found, func(a, b driver.Image) int {
		return cmp.Or(b.Used.Compare(a.Used), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	out.Left = max(0, len(found)-structs.NodeImagesMax)
	for _, image := range found[:len(found)-out.Left] {
		out.Images = append(out.Images, shownImage(&image))
	}
	return out, nil
}

// shownImage is what a node tells of an image. Its labels are whoever's made it, and so
// may its names be.
func shownImage(image *driver.Image) structs.NodeImage {
	out := structs.NodeImage{
		ID: image.ID, Bytes: image.Bytes, ImageTraits: structs.TraitsOfLabels(image.Labels),
		InUse: image.InUse, Pulled: image.Pulled, Private: image.Private,
	}
	if !image.Created.IsZero() {
		out.CreatedAt = structs.At(image.Created)
	}
	if !image.Used.IsZero() {
		out.UsedAt = structs.At(image.Used)
	}
	spell := func(names []string) (kept []string) {
		for _, text := range names {
			if name, ok := structs.ParseImageName(text); ok && len(kept) < structs.ImageNamesMax {
				kept = append(kept, name.String())
			}
		}
		slices.Sort(kept)
		return kept
	}
	out.Names, out.Digests = spell(image.Names), spell(image.Digests)
	return out
}

// known lists what is done, and what was.
func (i *Images) known() []structs.ImageWork {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]structs.ImageWork, len(i.mu.work))
	for k, work := range i.mu.work {
		out[k] = *work
	}
	return out
}

// Order answers Node.Image: what takes a moment is done, and what takes longer is begun.
func (i *Images) Order(ctx context.Context, order *structs.ImageOrder) (*structs.ImageWork, error) {
	if i.keeper == nil {
		return nil, structs.NewError(structs.CodeConflict, "client.images_none")
	}
	i.log.Info("image is ordered", "act", string(order.Act), "image", order.Image, "to", order.To, logkey.User, order.By)
	switch order.Act {
	case structs.ImagePull, structs.ImagePush:
		return i.start(ctx, order)
	case structs.ImageTag, structs.ImageRemove:
	default:
		return nil, structs.NewError(structs.CodeInvalid, "client.image_act", "act", order.Act)
	}
	ctx, cancel := context.WithTimeout(ctx, imageActMax)
	defer cancel()
	work := workOf(order, structs.At(i.now()))
	if order.Act == structs.ImageRemove {
		if err := i.keeper.Remove(ctx, order.Image); err != nil {
			return nil, imageFailure(err, order.Image)
		}
	} else {
		made, err := i.keeper.Tag(ctx, order.Image, order.To)
		if err != nil {
			return nil, imageFailure(err, order.Image)
		}
		work.ID, work.Bytes = made.ID, made.Bytes
	}
	work.EndedAt = structs.At(i.now())
	return work, nil
}

func workOf(order *structs.ImageOrder, now structs.UnixNano) *structs.ImageWork {
	return &structs.ImageWork{Act: order.Act, Image: order.Image, To: order.To, By: order.By, StartedAt: now}
}

// start begins an order, unless the same is being done.
func (i *Images) start(ctx context.Context, order *structs.ImageOrder) (*structs.ImageWork, error) {
	work, fresh, err := i.take(order)
	if err != nil || !fresh {
		return work, err
	}
	copied := *work
	own := *order
	own.Login = slices.Clone(order.Login)
	do := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, imageWorkMax)
		defer cancel()
		made, err := i.do(ctx, &own, work)
		clear(own.Login)
		i.end(work, made, err)
	}
	select {
	case i.begin <- do:
		return &copied, nil
	case <-ctx.Done():
		clear(own.Login)
		i.end(work, driver.Prepared{}, ctx.Err())
		return nil, ctx.Err()
	}
}

// take notes an order as begun; fresh is false for what is being done already.
func (i *Images) take(order *structs.ImageOrder) (work *structs.ImageWork, fresh bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	busy := 0
	for _, known := range i.mu.work {
		if known.EndedAt != 0 {
			continue
		}
		if busy++; known.Act == order.Act && known.Image == order.Image && known.To == order.To {
			copied := *known
			return &copied, false, nil
		}
	}
	if busy >= imageWorkAtOnce {
		return nil, false, structs.NewError(structs.CodeUnavailable, "client.images_busy", "max", imageWorkAtOnce)
	}
	work = workOf(order, structs.At(i.now()))
	same := func(known *structs.ImageWork) bool {
		return known.EndedAt != 0 && known.Act == order.Act && known.Image == order.Image && known.To == order.To
	}
	i.mu.work = append(slices.DeleteFunc(i.mu.work, same), work) // how the last one of a kind went
	for over := len(i.mu.work) - imageWorkKept; over > 0; over-- {
		oldest := slices.IndexFunc(i.mu.work, func(known *structs.ImageWork) bool { return known.EndedAt != 0 })
		i.mu.work = slices.Delete(i.mu.work, oldest, oldest+1)
	}
	return work, true, nil
}

// do pulls or pushes.
func (i *Images) do(ctx context.Context, order *structs.ImageOrder, work *structs.ImageWork) (driver.Prepared, error) {
	report := func(p driver.Progress) {
		i.mu.Lock()
		defer i.mu.Unlock()
		work.Step, work.Done, work.Total = p.Step, p.Done, p.Total
	}
	if order.Act == structs.ImagePush {
		return i.keeper.Push(ctx, order.Image, cmp.Or(order.To, order.Image), order.Login, order.Own, report)
	}
	return i.keeper.Pull(ctx, order.Image, order.Login, report)
}

// end notes how an order went.
func (i *Images) end(work *structs.ImageWork, made driver.Prepared, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	work.EndedAt = structs.At(i.now())
	if err != nil {
		work.Err = imageFailure(err, work.Image)
		i.log.Warn("an order about an image failed", "act", string(work.Act), "image", work.Image, logkey.Error, err)
		return
	}
	work.ID, work.Digest, work.Bytes = made.ID, made.Digest, made.Bytes
}

// imageFailure is what a failure is told as.
func imageFailure(err error, image string) *structs.Error {
	var told *structs.Error
	if errors.As(err, &told) {
		return &structs.Error{Code: told.Code, ID: told.ID, Params: told.Params}
	}
	return structs.NewError(structs.CodeUnavailable, "client.image_failed", "image", image, "cause", err)
}
