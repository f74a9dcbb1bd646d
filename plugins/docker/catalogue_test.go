package docker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/docker/registrytest"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
)

// listed finds an image by name, as the driver lists it.
func listed(t *testing.T, d *docker.Driver, name string) *driver.Image {
	t.Helper()
	all, err := d.Images().List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if slices.Contains(all[i].Names, name) {
			return &all[i]
		}
	}
	return nil
}

// A container that was saved is listed, goes to a real registry with the credentials of
// who sends it, and comes from there to a node that never saw it.
func TestSavedImageThroughARegistry(t *testing.T) {
	needEngine(t)
	host := registrytest.Start(t, "robot", "canary-password")
	const base, kept, login = "nomadlike-test/sent:1", "nomadlike/lab/trained:1", "robot:canary-password\n"
	if err := importImage(base, links("bin", "lib", "lib64", "sbin"), []string{"ENV PATH=/usr/bin:/bin", "LABEL nomadlike.scope=training"}); err != nil {
		t.Fatal(err)
	}
	d, ctx := open(t), context.Background()
	spec := dressed(drivertest.Shell(t, "echo package > /installed; echo ready; sleep 1000"))
	spec.Container.Image = base
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	made, err := d.Commit(ctx, spec.ID, kept, driver.CommitNote{Author: "li"})
	if err != nil {
		t.Fatal(err)
	}
	found := listed(t, d, kept)
	if found == nil || found.ID != made.ID || found.Bytes == 0 || found.Labels["nomadlike.scope"] != "training" || found.InUse || found.Pulled {
		t.Fatalf("the saved image is listed as %+v", found)
	}
	if from := listed(t, d, base); from == nil || !from.InUse {
		t.Errorf("the image of the container is listed as %+v", from)
	}
	refused(t, d.Images().Remove(ctx, base), "docker.image_used")

	images, target := d.Images(), host+"/team/trained:1"
	var reports []driver.Progress
	report := func(p driver.Progress) { reports = append(reports, p) }
	for credentials, want := range map[string]string{"": "docker.push_denied", "robot:guess": "docker.push_denied", "no colon": "docker.image_credentials"} {
		_, err := images.Push(ctx, kept, target, []byte(credentials), false, report)
		refused(t, err, want)
		if listed(t, d, target) != nil {
			t.Errorf("the name stays after a push with %q", credentials)
		}
	}
	_, err = images.Push(ctx, "nomadlike/lab/absent:1", target, []byte(login), false, report)
	refused(t, err, "docker.image_none")
	_, err = images.Push(ctx, kept, host+"/team/trained@sha256:e6173d4dc55e76b87c4af8db8821b1feae4146dd47341e4d431118c7dd060a74", []byte(login), false, report)
	refused(t, err, "docker.image_name")
	reports = nil
	sent, err := images.Push(ctx, kept, target, []byte(login), false, report)
	if err != nil || !strings.HasPrefix(sent.Digest, "sha256:") || sent.ID != made.ID {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	if last := reports[len(reports)-1]; last.Step != "push" || last.Done != last.Total {
		t.Errorf("progress ends with %+v", last)
	}
	if listed(t, d, target) != nil {
		t.Error("the name under which it was sent stays")
	}

	// Another image that has the name here is not put aside.
	const other = "nomadlike-test/other:1"
	if err := importImage(other, links("bin"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := images.Tag(ctx, other, target); err != nil {
		t.Fatal(err)
	}
	_, err = images.Push(ctx, kept, target, []byte(login), false, report)
	refused(t, err, "docker.image_taken")
	if err := images.Remove(ctx, target); err != nil {
		t.Fatal(err)
	}
	if listed(t, d, other) == nil || listed(t, d, target) != nil {
		t.Error("the image went with one of its two names")
	}

	// As on another node: nothing of it is here any more.
	stop(t, d, spec.ID)
	if err := d.Destroy(ctx, spec.ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{kept, base} {
		if err := images.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, images.Remove(ctx, kept), "docker.image_none")
	_, err = images.Pull(ctx, target, nil, report)
	refused(t, err, "docker.image_denied")
	came, err := images.Pull(ctx, target, []byte(login), report)
	if err != nil || came.Digest != sent.Digest || !came.Pulled {
		t.Fatalf("pulled %+v, %v", came, err)
	}
	if found := listed(t, d, target); found == nil || !found.Private || !found.Pulled || found.Used.IsZero() {
		t.Errorf("what came with credentials is listed as %+v", found)
	}
	// What is another's on this node is not sent elsewhere with other rights.
	_, err = images.Push(ctx, target, host+"/eve/mine:1", []byte("robot:guess"), false, report)
	refused(t, err, "docker.image_private")
	out, result := run(t, d, "cat /installed", func(s *driver.TaskSpec) {
		s.Container.Image, s.Container.Pull, s.ImageCredentials, s.ID = target, driver.PullMissing, []byte(login), s.ID+"-2"
	})
	if out != "package\n" || result.Code != 0 {
		t.Errorf("the image that came runs %q, %+v", out, result)
	}
}

// While an image has a name that is not its own, tasks that want an image of the name
// wait for the end of that.
func TestNameOfAPushIsNobodysImage(t *testing.T) {
	needEngine(t)
	slow := newSlowRegistry(t)
	const base = "nomadlike-test/slow:1"
	if err := importImage(base, links("bin", "lib", "lib64", "sbin"), nil); err != nil {
		t.Fatal(err)
	}
	d, ctx := open(t), context.Background()
	target := slow.host + "/team/pytorch:1"
	pushed := make(chan error, 1)
	go func() {
		_, err := d.Images().Push(ctx, base, target, nil, false, func(driver.Progress) {})
		pushed <- err
	}()
	<-slow.asked // the engine is about to send
	if listed(t, d, target) == nil {
		t.Error("nothing has the name while it is sent: the test tries nothing")
	}
	prepared := make(chan error, 1)
	go func() {
		_, err := d.Prepare(ctx, using(t, target, driver.PullNever), func(driver.Progress) {})
		prepared <- err
	}()
	select {
	case err := <-prepared:
		t.Errorf("a task was given the image meanwhile: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	close(slow.refuse)
	refused(t, <-pushed, "docker.push_denied")
	refused(t, <-prepared, "docker.image_absent")
}
