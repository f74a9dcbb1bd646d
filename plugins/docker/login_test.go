package docker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
)

// A job's own credentials open an image for it and for nobody else: others on the node
// have to be let in by the registry, too, and who was let in once is not asked again.
func TestImageCredentials(t *testing.T) {
	needEngine(t)
	r := newRegistry(t)
	r.username, r.password = "robot", "canary-password"
	r.push(t, "lab/private", "1", 1<<10)
	ref := r.host + "/lab/private:1"
	state := stateDir(t)
	here := func(c *docker.Config) { c.StateDir = state }
	d := open(t, here)
	prepare := func(d *docker.Driver, image, pull, credentials string) (driver.Prepared, error) {
		spec := using(t, image, pull)
		spec.ImageCredentials = []byte(credentials)
		return d.Prepare(context.Background(), spec, func(driver.Progress) {})
	}
	for credentials, want := range map[string]string{
		"": "docker.image_denied", "robot:guess": "docker.image_denied", "no colon": "docker.image_credentials",
		`{"auths":{"elsewhere":{"auth":"cm9ib3Q6Y2FuYXJ5"}}}`: "docker.image_credentials", "{": "docker.image_credentials", "robot:a\nb": "docker.image_credentials",
	} {
		_, err := prepare(d, ref, driver.PullMissing, credentials)
		refused(t, err, want)
		if err != nil && credentials != "" && strings.Contains(fmt.Sprint(err), credentials) {
			t.Errorf("the refusal repeats %q: %v", credentials, err)
		}
	}
	mine := "robot:canary-password\n" // as a file ends
	prepared, err := prepare(d, ref, driver.PullMissing, mine)
	if err != nil || !prepared.Pulled {
		t.Fatalf("with the credentials: %+v, %v", prepared, err)
	}
	before := r.pulls()
	for _, again := range []string{mine, fmt.Sprintf(`{"auths":{%q:{"username":"robot","password":"canary-password"}}}`, r.host)} {
		if prepared, err := prepare(d, ref, driver.PullMissing, again); err != nil || prepared.Pulled {
			t.Errorf("again: %+v, %v", prepared, err)
		}
	}
	if _, err := prepare(d, prepared.ID, driver.PullNever, mine); err != nil {
		t.Errorf("by its id: %v", err)
	}
	if r.pulls() != before {
		t.Errorf("the registry was asked %d times by who was let in", r.pulls()-before)
	}
	for _, other := range []string{"", "robot:guess"} {
		_, err := prepare(d, ref, driver.PullMissing, other)
		refused(t, err, "docker.image_denied")
		_, err = prepare(d, ref, driver.PullNever, other)
		refused(t, err, "docker.image_private")
		_, err = prepare(d, prepared.ID, driver.PullMissing, other)
		refused(t, err, "docker.image_private")
	}

	// Also after a restart, which forgets who was let in and not that it is private.
	d = open(t, here)
	_, err = prepare(d, ref, driver.PullNever, mine)
	refused(t, err, "docker.image_private")
	if prepared, err := prepare(d, ref, driver.PullMissing, mine); err != nil || prepared.Pulled {
		t.Errorf("after a restart: %+v, %v", prepared, err)
	}

	// Where the node itself has credentials the image is everybody's, from then on.
	password := t.TempDir() + "/password"
	if err := os.WriteFile(password, []byte("canary-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	logged := open(t, here, func(c *docker.Config) {
		c.Registries = []docker.Registry{{Host: r.host, Username: "robot", PasswordFile: password}}
	})
	if _, err := prepare(logged, ref, driver.PullMissing, ""); err != nil {
		t.Errorf("with the node's own: %v", err)
	}
	if _, err := prepare(logged, ref, driver.PullNever, ""); err != nil {
		t.Errorf("and after that: %v", err)
	}
}
