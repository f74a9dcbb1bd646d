package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// heldImages is what a driver has, whose pulls wait until they are let go.
type heldImages struct {
	driver.Driver
	images []driver.Image
	gate   chan error

	mu     sync.Mutex
	pulled []string
	login  string
}

func (h *heldImages) Images() driver.Images { return h }

func (h *heldImages) List(_ context.Context, name string) ([]driver.Image, error) {
	if name == "broken" {
		return nil, errors.New("the engine is gone")
	}
	return h.images, nil
}

func (h *heldImages) Pull(ctx context.Context, name string, login []byte, report func(driver.Progress)) (driver.Prepared, error) {
	h.mu.Lock()
	h.pulled, h.login = append(h.pulled, name), string(login)
	h.mu.Unlock()
	report(driver.Progress{Step: "pull", Done: 1, Total: 2})
	select {
	case err := <-h.gate:
		return driver.Prepared{ID: "sha256:1", Digest: "sha256:2", Bytes: 3}, err
	case <-ctx.Done():
		return driver.Prepared{}, ctx.Err()
	}
}

func (h *heldImages) Push(_ context.Context, _, to string, _ []byte, own bool, _ func(driver.Progress)) (driver.Prepared, error) {
	return driver.Prepared{ID: fmt.Sprint(to, own)}, nil
}

func (h *heldImages) Tag(_ context.Context, _, _ string) (driver.Prepared, error) {
	return driver.Prepared{ID: "sha256:1"}, nil
}

func (h *heldImages) Remove(_ context.Context, name string) error {
	return structs.NewError(structs.CodeConflict, "docker.image_used", "image", name)
}

// running answers orders until the test ends.
func running(t *testing.T, h *heldImages) *Images {
	images := NewImages(map[string]driver.Driver{structs.DriverDocker: h}, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		images.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return images
}

// A pull goes on when whoever ordered it has gone; the same order is the same work; a
// few go at once, and more are refused; what has ended is told for a while.
func TestImageOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldImages{gate: make(chan error)}
		images := running(t, h)
		order := func(name string) (*structs.ImageWork, error) {
			ctx, gone := context.WithCancel(t.Context())
			defer gone()
			login := structs.SecretBytes("robot:secret")
			defer clear(login)
			return images.Order(ctx, &structs.ImageOrder{Act: structs.ImagePull, Image: name, By: "ada", Login: login})
		}
		for i := range imageWorkAtOnce {
			if work, err := order(fmt.Sprintf("lab/i%d", i)); err != nil || work.EndedAt != 0 {
				t.Fatalf("begun %+v, %v", work, err)
			}
		}
		synctest.Wait()
		if _, err := order("lab/i0"); err != nil || len(h.pulled) != imageWorkAtOnce || h.login != "robot:secret" {
			t.Errorf("the same again: %v, pulled %q with %q", err, h.pulled, h.login)
		}
		if _, err := order("lab/more"); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("one too many: %v", err)
		}
		known, err := images.List(t.Context(), &structs.ImagesAsk{Work: true})
		if err != nil || len(known.Work) != imageWorkAtOnce || known.Work[0].Done != 1 || known.Work[0].EndedAt != 0 {
			t.Errorf("under way is %+v, %v", known, err)
		}
		h.gate <- nil
		h.gate <- structs.NewError(structs.CodeForbidden, "docker.image_denied", "image", "x").Because(errors.New("robot:secret"))
		synctest.Wait()
		var ended []string
		known, _ = images.List(t.Context(), &structs.ImagesAsk{Work: true})
		for _, work := range known.Work {
			if work.EndedAt != 0 {
				ended = append(ended, work.Digest+fmt.Sprint(work.Err != nil))
				if work.Err != nil && (work.Err.ID != "docker.image_denied" || strings.Contains(fmt.Sprintf("%+v", work.Err), "secret")) {
					t.Errorf("it failed with %+v", work.Err)
				}
			}
		}
		if len(ended) != 2 {
			t.Errorf("ended are %q", ended)
		}
		for range imageWorkAtOnce - 2 {
			h.gate <- nil
		}
		for i := range 2 * imageWorkKept {
			if _, err := order(fmt.Sprintf("lab/n%d", i)); err != nil {
				t.Fatal(err)
			}
			h.gate <- nil
			synctest.Wait()
		}
		if known, _ := images.List(t.Context(), &structs.ImagesAsk{Work: true}); len(known.Work) != imageWorkKept {
			t.Errorf("%d are remembered", len(known.Work))
		}
	})
}

// What takes a moment is done before the answer, and a refusal is the answer.
func TestImageOrdersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images := running(t, &heldImages{})
		if work, err := images.Order(t.Context(), &structs.ImageOrder{Act: structs.ImageTag, Image: "a", To: "b"}); err != nil || work.EndedAt == 0 || work.ID == "" {
			t.Errorf("named: %+v, %v", work, err)
		}
		for act, want := range map[structs.ImageAct]string{structs.ImageRemove: "docker.image_used", "run": "client.image_act"} {
			_, err := images.Order(t.Context(), &structs.ImageOrder{Act: act, Image: "a"})
			if told := new(structs.Error); !errors.As(err, &told) || told.ID != want {
				t.Errorf("%s: %v", act, err)
			}
		}
		bare := NewImages(nil, time.Now, slog.New(slog.DiscardHandler))
		if _, err := bare.Order(t.Context(), &structs.ImageOrder{Act: structs.ImagePull, Image: "a"}); structs.CodeOf(err) != structs.CodeConflict {
			t.Errorf("a node without an engine: %v", err)
		}
		if known, err := bare.List(t.Context(), &structs.ImagesAsk{}); err != nil || len(known.Images) != 0 {
			t.Errorf("its images: %+v, %v", known, err)
		}
	})
}

// A node tells a bounded number of images, those used last first, and nothing of hostile
// names and labels.
func TestImagesAreBounded(t *testing.T) {
	h := &heldImages{}
	for i := range structs.NodeImagesMax + 5 {
		h.images = append(h.images, driver.Image{ID: fmt.Sprintf("sha256:%06d", i), Created: time.Unix(int64(i), 0)})
	}
	h.images[3].Used = time.Unix(1_800_000_000, 0)
	h.images[3].Names = append([]string{"evil\x1b[2J", "docker.io/library/ubuntu:22.04"}, strings.Split(strings.Repeat("lab/x:1 ", 100), " ")...)
	h.images[3].Labels = map[string]string{structs.LabelImageScope: "training,\x00"}
	images := NewImages(map[string]driver.Driver{structs.DriverDocker: h}, time.Now, slog.New(slog.DiscardHandler))
	known, err := images.List(t.Context(), &structs.ImagesAsk{})
	if err != nil || len(known.Images) != structs.NodeImagesMax || known.Left != 5 {
		t.Fatalf("%d images, %d left, %v", len(known.Images), known.Left, err)
	}
	first := known.Images[0]
	if first.ID != "sha256:000003" || len(first.Names) != structs.ImageNamesMax || first.Names[len(first.Names)-1] != "ubuntu:22.04" || fmt.Sprint(first.Scope) != "[training]" {
		t.Errorf("the first is %+v", first)
	}
	if _, err := images.List(t.Context(), &structs.ImagesAsk{Name: "broken"}); structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("an engine that is gone: %v", err)
	}
}
