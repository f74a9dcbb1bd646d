package docker_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// using returns a task of one image.
func using(t *testing.T, ref, pull string) driver.TaskSpec {
	spec := dressed(drivertest.Shell(t, "echo $VERSION"))
	spec.Container.Image, spec.Container.Pull = ref, pull
	return spec
}

func TestPull(t *testing.T) {
	needEngine(t)
	r := newRegistry(t)
	first := r.push(t, "lab/train", "1", 3<<20, "VERSION=one")
	ref := r.host + "/lab/train:1"
	d := open(t)
	ctx := context.Background()
	var reports []driver.Progress
	collect := func(p driver.Progress) { reports = append(reports, p) }

	_, err := d.Prepare(ctx, using(t, ref, driver.PullNever), collect)
	refused(t, err, "docker.image_absent")
	_, err = d.Prepare(ctx, using(t, r.host+"/lab/train:2", driver.PullMissing), collect)
	refused(t, err, "docker.image_unknown")
	_, err = d.Prepare(ctx, using(t, "Bad Name", driver.PullMissing), collect)
	refused(t, err, "driver.bad_spec")
	_, err = d.Prepare(ctx, using(t, "BadName", driver.PullMissing), collect)
	refused(t, err, "docker.image_name")

	reports = nil
	prepared, err := d.Prepare(ctx, using(t, ref, driver.PullMissing), collect)
	if err != nil {
		t.Fatal(err)
	}
	if prepared.Digest != first || !prepared.Pulled || !strings.HasPrefix(prepared.ID, "sha256:") || prepared.Bytes < 3<<20 {
		t.Errorf("prepared %+v, want digest %s", prepared, first)
	}
	last := reports[len(reports)-1]
	if reports[0].Step != "resolve" || last.Total < 3<<20 || last.Done != last.Total || last.Item != ref {
		t.Errorf("progress is %+v", reports)
	}
	// A newer image under the same name: missing keeps the old one, always
	// takes the new one, never keeps what is here.
	r.push(t, "lab/train", "1", 1<<10, "VERSION=two")
	version := func(pull string) string {
		spec := using(t, ref, pull)
		spec.ID = driver.TaskID(fmt.Sprintf("%s-%s", spec.ID, pull))
		drivertest.Start(t, d, spec)
		drivertest.Wait(t, d, spec.ID)
		return strings.TrimSpace(drivertest.Log(t, spec, tasklog.Stdout))
	}
	before := r.pulls()
	if got := version(driver.PullMissing); got != "one" || r.pulls() != before {
		t.Errorf("missing runs %s after %d pulls", got, r.pulls()-before)
	}
	if got := version(driver.PullAlways); got != "two" {
		t.Errorf("always runs %s", got)
	}
	if got := version(driver.PullNever); got != "two" {
		t.Errorf("never runs %s", got)
	}
	// By digest, the first one comes back.
	spec := using(t, r.host+"/lab/train@"+first, driver.PullMissing)
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	if got := drivertest.Log(t, spec, tasklog.Stdout); got != "one\n" {
		t.Errorf("the digest runs %s", got)
	}
	if details, err := d.Details(spec.ID); err != nil || details.Image.Digest != first {
		t.Errorf("details are %+v, %v", details, err)
	}
}

func TestPullOnce(t *testing.T) {
	needEngine(t)
	r := newRegistry(t)
	r.push(t, "lab/shared", "1", 1<<20)
	d := open(t)
	var all sync.WaitGroup
	spec := using(t, r.host+"/lab/shared:1", driver.PullMissing)
	for range 8 {
		all.Go(func() {
			if _, err := d.Prepare(context.Background(), spec, func(driver.Progress) {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.pulls(); n != 1 {
		t.Errorf("the image was pulled %d times", n)
	}
}

// TestCredentials logs in from a list and from a file of docker login, and
// looks for the password everywhere.
func TestCredentials(t *testing.T) {
	needEngine(t)
	r := newRegistry(t)
	r.username, r.password = "robot", "canary-password"
	r.push(t, "lab/secret", "1", 1<<10)
	dir := t.TempDir()
	passwordFile, authFile := dir+"/password", dir+"/config.json"
	auth := base64.StdEncoding.EncodeToString([]byte("robot:canary-password"))
	for path, text := range map[string]string{
		passwordFile: "canary-password\n", authFile: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, r.host, auth),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var logs bytes.Buffer
	var said []string
	for _, c := range []struct {
		name   string
		change func(*docker.Config)
		want   string
	}{
		{"none", func(*docker.Config) {}, "docker.image_denied"},
		{"wrong", func(c *docker.Config) {
			c.Registries = []docker.Registry{{Host: r.host, Username: "other", PasswordFile: passwordFile}}
		}, "docker.image_denied"},
		{"no file", func(c *docker.Config) {
			c.Registries = []docker.Registry{{Host: r.host, Username: "robot", PasswordFile: dir + "/none"}}
		}, "docker.credentials_broken"},
		{"list", func(c *docker.Config) {
			c.Registries = []docker.Registry{{Host: r.host, Username: "robot", PasswordFile: passwordFile}}
		}, ""},
		{"file", func(c *docker.Config) { c.AuthFile = authFile }, ""},
		{"registry not allowed", func(c *docker.Config) {
			c.AuthFile, c.Policy.RegistriesOnly = authFile, []string{"docker.io"}
		}, "docker.registry_refused"},
	} {
		d := open(t, c.change, func(c *docker.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		_, err := d.Prepare(context.Background(), using(t, r.host+"/lab/secret:1", driver.PullAlways), func(p driver.Progress) { said = append(said, fmt.Sprint(p)) })
		if c.want != "" {
			refused(t, err, c.want)
			said = append(said, fmt.Sprint(err))
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, secret := range []string{"canary-password", auth} {
		if strings.Contains(logs.String()+strings.Join(said, "\n"), secret) {
			t.Errorf("the password was told: %s %s", logs.String(), said)
		}
		err := filepath.WalkDir(world.dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || strings.Contains(path, "/overlay2/") {
				return nil
			}
			if body, err := os.ReadFile(path); err == nil && bytes.Contains(body, []byte(secret)) {
				t.Errorf("%s holds the password", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestCommit keeps what a task has installed, and nothing of the task.
func TestCommit(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const base, kept = "nomadlike-test/base:1", "nomadlike-test/kept:1"
	if err := importImage(base, links("bin", "lib", "lib64", "sbin"), []string{
		`ENTRYPOINT ["/bin/sh"]`, `CMD ["-c", "echo base"]`, "ENV PATH=/usr/bin:/bin", "LABEL own=label",
	}); err != nil {
		t.Fatal(err)
	}
	d := open(t)
	spec := dressed(drivertest.Shell(t, "echo package > /installed; echo ready; sleep 1000"))
	spec.Container.Image, spec.Env = base, []string{"SECRET=canary"}
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	made, err := d.Commit(context.Background(), spec.ID, kept, driver.CommitNote{Author: "li", Comment: "with package"})
	if err != nil {
		t.Fatal(err)
	}
	image, err := world.api.ImageInspect(context.Background(), kept)
	if err != nil || image.ID != made.ID || image.Author != "li" || image.Comment != "with package" {
		t.Fatalf("image is %+v, %v; made %+v", image, err, made)
	}
	text := fmt.Sprintf("%+v", image.Config)
	if strings.Contains(text, "canary") || strings.Contains(text, "task-init") || strings.Contains(text, ".nomadlike") {
		t.Errorf("the image's configuration is %s", text)
	}
	if fmt.Sprint(image.Config.Entrypoint) != "[/bin/sh]" || fmt.Sprint(image.Config.Cmd) != "[-c echo base]" || image.Config.Labels["own"] != "label" {
		t.Errorf("the image's configuration is %s", text)
	}
	for name, value := range image.Config.Labels {
		if strings.HasPrefix(name, "nomadlike.") && value != "" {
			t.Errorf("the image has the label %s=%s", name, value)
		}
	}
	out, result := run(t, d, "cat /installed; ls /.nomadlike", func(s *driver.TaskSpec) { s.Container.Image, s.ID = kept, s.ID+"-2" })
	if !strings.HasPrefix(out, "package\n") || result.Code != 0 {
		t.Errorf("the new image runs %q, %+v", out, result)
	}
	// Also of a task that has ended; and bad names are refused.
	stop(t, d, spec.ID)
	if _, err := d.Commit(context.Background(), spec.ID, kept+"-2", driver.CommitNote{}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "-x", "a b", "x@sha256:e6173d4dc55e76b87c4af8db8821b1feae4146dd47341e4d431118c7dd060a74"} {
		_, err := d.Commit(context.Background(), spec.ID, bad, driver.CommitNote{})
		refused(t, err, "docker.image_name")
	}
}

// TestCollectImages removes an old pulled image, and nothing else.
func TestCollectImages(t *testing.T) {
	needEngine(t)
	r := newRegistry(t)
	r.push(t, "gc/old", "1", 1<<10)
	r.push(t, "gc/busy", "1", 1<<11)
	r.push(t, "gc/pinned", "1", 1<<12)
	ref := func(name string) string { return r.host + "/gc/" + name + ":1" }
	rules := docker.GC{UnusedMax: 24 * time.Hour, Pinned: []string{ref("pinned")}}
	c := config(t)
	c.GC = rules
	d := open(t, func(fresh *docker.Config) { *fresh = c })
	ctx := context.Background()
	for _, name := range []string{"old", "pinned", "busy"} {
		if _, err := d.Prepare(ctx, using(t, ref(name), ""), func(driver.Progress) {}); err != nil {
			t.Fatal(err)
		}
	}
	spec := using(t, ref("busy"), "")
	if _, err := d.Start(ctx, spec); err != nil {
		t.Fatal(err)
	}
	drivertest.Wait(t, d, spec.ID)
	if err := d.CollectImages(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		_, err := world.api.ImageInspect(ctx, name)
		return err == nil
	}
	if !has(ref("old")) {
		t.Error("an image is removed before its time")
	}
	// The uses survive a restart of the agent.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, func(fresh *docker.Config) { *fresh = c })
	if err := d.Recover(ctx, driver.Handle{Version: 1, Driver: docker.Name, TaskID: spec.ID}); err != nil {
		t.Fatal(err)
	}
	if err := d.CollectImages(ctx, time.Now().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if has(ref("old")) || !has(ref("pinned")) || !has(ref("busy")) || !has(hostImage) {
		t.Errorf("left are old=%v pinned=%v busy=%v host=%v", has(ref("old")), has(ref("pinned")), has(ref("busy")), has(hostImage))
	}
	if err := d.Destroy(ctx, spec.ID); err != nil {
		t.Error(err)
	}
}
