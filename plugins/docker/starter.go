package docker

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
)

// starter makes the container of a task: from its spec, by what the engine can
// do, out of an image, with mounts that are safe. What runs is the task's own
// business.
type starter struct {
	config  *Config
	engine  *engine
	host    *host
	images  *imageStore
	network sync.Mutex // serialises making the private network
}

// launch takes a task from its spec to a running command.
func (s *starter) launch(ctx context.Context, t *task, spec *driver.TaskSpec, lease string) error {
	if err := s.host.learn(ctx); err != nil {
		return engineError(err)
	}
	image, prepared, err := s.images.prepare(ctx, spec.Container, spec.ImageCredentials, func(driver.Progress) {})
	if err != nil {
		return err
	}
	now, mounter := s.host.newest()
	if concern := runtimeConcern(now.info.Runc); concern != "" && s.config.Policy.SafeRuntimeOnly {
		return structs.NewError(structs.CodeUnavailable, "docker.runtime_unsafe", "concern", concern)
	}
	mounts, release, err := mounter.stage(t.id, spec.TaskDir, spec.Mounts)
	defer release()
	if err != nil {
		return err
	}
	in := inputs{
		Config: s.config, Spec: spec, Image: &image, Facts: now.facts, Limits: now.limits, Mounts: mounts,
		Name: containerName(spec.ID), Door: filepath.Join(t.dir(), taskinit.DoorDir),
	}
	if in.Hosts, err = s.writeHosts(t, spec); err != nil {
		return err
	}
	out, err := settings(in)
	if err != nil {
		return err
	}
	rotation := spec.LogRotation.WithDefaults()
	t.record = record{
		Version: recordVersion, TaskID: t.id, Image: prepared, Ways: out.Ways,
		LogDir: spec.LogDir, LogFiles: rotation.MaxFiles, LogBytes: rotation.MaxBytes,
		Lease: lease, Masked: maskedSecrets(spec.Mask),
	}
	t.masking.mask = &mask{list: spec.Mask} // nobody else has the task yet
	if err := t.keeper.start(&t.record, &out.Task, t.masking.mask); err != nil {
		return fmt.Errorf("start keeper of task %s: %w", t.id, err)
	}
	news, err := t.keeper.listen()
	if err != nil {
		return fmt.Errorf("reach keeper of task %s: %w", t.id, err)
	}
	if err := s.makeContainer(ctx, t, spec, &out.Container); err != nil {
		news.Close()
		return err
	}
	if err := t.awaitStart(ctx, news); err != nil {
		news.Close()
		return err
	}
	t.news = news
	return nil
}

// containerName is made of the task's id, for people, and some letters that
// no other container has.
func containerName(id driver.TaskID) string {
	return "nomadlike-" + string(id) + "-" + strings.ToLower(rand.Text()[:8])
}

// hostsOfNodeMax bounds how much of the node's own hosts file a task gets.
const hostsOfNodeMax = 1 << 20

// loopbackHosts is what every hosts file begins with when the node's is not
// the task's.
const loopbackHosts = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

// writeHosts makes the task's /etc/hosts, unless a network of the engine's
// resolves the names. The names of the ranks come first: nothing that the
// node calls the same may hide them. On the node's own network the node's
// names follow, as the engine would give them.
func (s *starter) writeHosts(t *task, spec *driver.TaskSpec) (string, error) {
	network := orText(spec.Container.Network, s.config.Network)
	if len(spec.Hosts) == 0 || network == driver.NetworkPrivate {
		return "", nil
	}
	text := strings.Join(spec.Hosts, "\n") + "\n"
	others := []byte(loopbackHosts)
	if network == driver.NetworkHost {
		if file, err := os.Open("/etc/hosts"); err == nil {
			others, err = io.ReadAll(io.LimitReader(file, hostsOfNodeMax))
			file.Close()
			if err != nil || len(others) == 0 {
				others = []byte(loopbackHosts)
			}
		}
	}
	path := filepath.Join(t.dir(), "hosts")
	if err := os.WriteFile(path, append([]byte(text), others...), 0o644); err != nil {
		return "", fmt.Errorf("write hosts of task %s: %w", t.id, err)
	}
	return path, nil
}

// makeContainer makes and starts the container, and records it before the
// start.
func (s *starter) makeContainer(ctx context.Context, t *task, spec *driver.TaskSpec, c *container) error {
	if c.Network == s.config.PrivateNetwork {
		s.network.Lock()
		err := s.engine.ensureNetwork(ctx, c.Network)
		s.network.Unlock()
		if err != nil {
			return engineError(err)
		}
	}
	if err := s.engine.starts.enter(ctx); err != nil {
		return fmt.Errorf("start task %s: %w", t.id, err)
	}
	defer s.engine.starts.leave()
	id, err := s.engine.create(ctx, c)
	if err != nil {
		return startRefusal(err, c)
	}
	t.record.ContainerID = id
	if err := t.writeRecord(); err != nil {
		return err
	}
	if err := s.giveTaskDir(ctx, id, spec, c.User); err != nil {
		return err
	}
	if err := s.engine.start(ctx, id); err != nil {
		return startRefusal(err, c)
	}
	return nil
}

// giveTaskDir hands the task's directory over to the user of the image when
// the job has named none: else the command could not write where it stands. Nothing
// runs in the directory yet, and its parents are the agent's.
func (s *starter) giveTaskDir(ctx context.Context, container string, spec *driver.TaskSpec, user string) error {
	name, group, _ := strings.Cut(user, ":")
	if spec.User != "" || name == "" {
		return nil
	}
	uid, uidErr := strconv.ParseUint(name, 10, 31)
	gid, gidErr := strconv.ParseUint(group, 10, 31)
	if uidErr == nil && group == "" {
		gid, gidErr = 0, nil // as the engine takes it
	}
	if uidErr != nil || gidErr != nil {
		passwd, err := s.engine.readFile(ctx, container, "/etc/passwd", passwdMax)
		if err != nil {
			return engineError(err)
		}
		var ok bool
		if uid, gid, ok = findUser(passwd, name); !ok {
			return nil // the engine will say that there is no such user
		}
	}
	if uid == 0 {
		return nil
	}
	var paths []string
	err := filepath.WalkDir(spec.TaskDir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return fmt.Errorf("give task directory: %w", err)
	}
	for _, path := range slices.Backward(paths) { // the directory itself at last
		if err := os.Lchown(path, int(uid), int(gid)); err != nil {
			return fmt.Errorf("give task directory: %w", err)
		}
	}
	return nil
}
