package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	containertypes "github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	imagetypes "github.com/docker/docker/api/types/image"
	mounttypes "github.com/docker/docker/api/types/mount"
	networktypes "github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"

	"nomadlike/plugins/driver"
)

// errNotFound is returned for an image, container or network that the engine
// does not have.
var errNotFound = errors.New("not found")

// engine speaks to the container engine. It is the only place that knows the
// client library; what it says and hears is in types of this package. Every
// call is bounded by its context only. Starts and removals wait for their
// gates outside of this type: for how long is the caller's choice.
type engine struct {
	api *client.Client
	// Two gates, so that removals which the engine does not finish keep no
	// task from starting.
	starts, removals gate
}

func newEngine(endpoint string) (*engine, error) {
	api, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("prepare client of the container engine: %w", err)
	}
	return &engine{api: api, starts: newGate(), removals: newGate()}, nil
}

func (e *engine) close() { e.api.Close() }

// told translates an error.
func told(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w: %w", act, errNotFound, err)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("%s: %w: %w", act, driver.ErrUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", act, err)
	}
}

func (e *engine) ping(ctx context.Context) error {
	_, err := e.api.Ping(ctx)
	return told("ping engine", err)
}

// silent calls an engine that let the time of ctx pass unavailable.
func silent(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
	}
	return err
}

// aboutPatience is how long an engine may think about itself. One that hangs is
// as good as none, and a start that waits for it must not wait for ever.
const aboutPatience = 30 * time.Second

func (e *engine) info(ctx context.Context) (engineInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, aboutPatience)
	defer cancel()
	version, err := e.api.ServerVersion(ctx)
	if err != nil {
		return engineInfo{}, silent(ctx, told("ask engine for its version", err))
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return engineInfo{}, silent(ctx, told("ask engine about itself", err))
	}
	out := engineInfo{
		Version: version.Version, APIVersion: version.APIVersion, Kernel: info.KernelVersion, Arch: version.Arch,
		CgroupVersion: info.CgroupVersion, CgroupDriver: info.CgroupDriver, Storage: info.Driver, RootDir: info.DockerRootDir,
		Security: info.SecurityOptions, CDIDirs: info.CDISpecDirs, LiveRestore: info.LiveRestoreEnabled,
	}
	for _, component := range version.Components {
		text := component.Version
		// The commit of a distribution's build is its package's version.
		if commit := component.Details["GitCommit"]; strings.HasPrefix(commit, strings.SplitN(text, "~", 2)[0]) {
			text = commit
		}
		switch component.Name {
		case "containerd":
			out.Containerd = text
		case "runc":
			out.Runc = text
		}
	}
	for name := range info.Runtimes {
		out.Runtimes = append(out.Runtimes, name)
	}
	slices.Sort(out.Runtimes)
	return out, nil
}

// create makes a container and returns its id.
func (e *engine) create(ctx context.Context, c *container) (string, error) {
	config := &containertypes.Config{
		Image: c.Image, Entrypoint: c.Entrypoint, Env: c.Env, User: c.User, Hostname: c.Hostname,
		WorkingDir: "/", Labels: c.Labels, StopTimeout: &c.StopSeconds, StopSignal: "SIGTERM",
		Healthcheck: &containertypes.HealthConfig{Test: []string{"NONE"}},
	}
	host := &containertypes.HostConfig{
		NetworkMode: containertypes.NetworkMode(c.Network), ReadonlyRootfs: c.ReadOnlyRoot, ShmSize: c.Shm,
		Privileged: c.Privileged, CapDrop: []string{"ALL"}, CapAdd: c.CapAdd, SecurityOpt: c.Security,
		IpcMode: containertypes.IpcMode(c.IPC), UTSMode: containertypes.UTSMode(c.UTS),
		UsernsMode: containertypes.UsernsMode(c.UserNS), ExtraHosts: c.ExtraHosts, Sysctls: c.Sysctls,
		VolumesFrom: c.VolumesFrom, Runtime: c.Runtime,
		// The task's output goes to the keeper; here is only what the init
		// itself complains about.
		LogConfig: containertypes.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "64k", "max-file": "1"}},
		Resources: containertypes.Resources{NanoCPUs: c.NanoCPUs, PidsLimit: &c.PIDs, CgroupParent: c.CgroupParent},
	}
	if c.Privileged {
		host.CapDrop = nil
	}
	if c.Memory > 0 {
		host.Memory, host.MemorySwap = c.Memory, c.Memory // no swap
	}
	for _, u := range c.Ulimits {
		host.Ulimits = append(host.Ulimits, &containertypes.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, m := range c.Mounts {
		host.Mounts = append(host.Mounts, mounttypes.Mount{Type: mounttypes.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	for _, d := range c.Devices {
		host.Devices = append(host.Devices, containertypes.DeviceMapping{PathOnHost: d.HostPath, PathInContainer: d.TaskPath, CgroupPermissions: d.Access})
	}
	for _, r := range c.Requests {
		request := containertypes.DeviceRequest{Driver: r.Driver, DeviceIDs: r.IDs}
		if len(r.Capabilities) > 0 {
			request.Capabilities = [][]string{r.Capabilities}
		}
		host.DeviceRequests = append(host.DeviceRequests, request)
	}
	networks := &networktypes.NetworkingConfig{}
	if len(c.Aliases) > 0 {
		networks.EndpointsConfig = map[string]*networktypes.EndpointSettings{c.Network: {Aliases: c.Aliases}}
	}
	made, err := e.api.ContainerCreate(ctx, config, host, networks, nil, c.Name)
	return made.ID, told("make container", err)
}

func (e *engine) start(ctx context.Context, id string) error {
	return told("start container", e.api.ContainerStart(ctx, id, containertypes.StartOptions{}))
}

func (e *engine) inspect(ctx context.Context, id string) (containerState, error) {
	found, err := e.api.ContainerInspect(ctx, id)
	if err != nil {
		return containerState{}, told("look at container", err)
	}
	state := containerState{ID: found.ID}
	if found.Config != nil {
		state.Labels = found.Config.Labels
	}
	if s := found.State; s != nil {
		state.Running, state.Paused, state.Created = s.Running, s.Paused, s.Status == "created"
		state.PID, state.ExitCode, state.OOMKilled, state.Error = s.Pid, s.ExitCode, s.OOMKilled, s.Error
		state.StartedNS, state.FinishedNS = nanoseconds(s.StartedAt), nanoseconds(s.FinishedAt)
	}
	return state, nil
}

// layer is where the engine keeps what a container writes into its own files; "" when
// its storage has no such directory.
func (e *engine) layer(ctx context.Context, id string) (string, error) {
	found, err := e.api.ContainerInspect(ctx, id)
	if err != nil {
		return "", told("look at container", err)
	}
	if found.ContainerJSONBase == nil {
		return "", nil
	}
	return found.GraphDriver.Data["UpperDir"], nil
}

func nanoseconds(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 {
		return 0
	}
	return at.UnixNano()
}

// complaints returns the end of what the init wrote.
func (e *engine) complaints(ctx context.Context, id string) string {
	stream, err := e.api.ContainerLogs(ctx, id, containertypes.LogsOptions{ShowStderr: true, Tail: "3"})
	if err != nil {
		return ""
	}
	defer stream.Close()
	const headerBytes, textMax = 8, 1 << 10
	body, _ := io.ReadAll(io.LimitReader(stream, textMax))
	var text strings.Builder
	for len(body) > headerBytes {
		size := int(body[4])<<24 | int(body[5])<<16 | int(body[6])<<8 | int(body[7])
		end := min(headerBytes+max(size, 0), len(body))
		text.Write(body[headerBytes:end])
		body = body[end:]
	}
	return strings.TrimSpace(text.String())
}

func (e *engine) pause(ctx context.Context, id string) error {
	return told("pause container", e.api.ContainerPause(ctx, id))
}

func (e *engine) unpause(ctx context.Context, id string) error {
	return told("continue container", e.api.ContainerUnpause(ctx, id))
}

// kill sends a signal to the container's init.
func (e *engine) kill(ctx context.Context, id, signal string) error {
	return told("kill container", e.api.ContainerKill(ctx, id, signal))
}

// eventPatience is how long after a signal the engine may remember it: it does
// so when containerd has answered, which takes its time on a busy node.
const eventPatience = 4 * time.Second

// signalled reports whether somebody had the engine send a signal to a
// container since then.
func (e *engine) signalled(ctx context.Context, id string, since time.Time) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, failed := e.api.Events(ctx, eventtypes.ListOptions{
		Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()), Until: fmt.Sprint(time.Now().Add(eventPatience).Unix()),
		Filters: filters.NewArgs(filters.Arg("container", id), filters.Arg("event", "kill")),
	})
	select {
	case <-messages:
		return true, nil
	case err := <-failed:
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, told("ask engine for events", err)
	}
}

// awaitEnd waits until a container does not run.
func (e *engine) awaitEnd(ctx context.Context, id string) error {
	ended, failed := e.api.ContainerWait(ctx, id, containertypes.WaitConditionNotRunning)
	select {
	case <-ended:
		return nil
	case err := <-failed:
		return told("wait for container", err)
	}
}

// remove removes a container, killing it when it runs. One that is not there
// is fine.
func (e *engine) remove(ctx context.Context, id string) error {
	err := told("remove container", e.api.ContainerRemove(ctx, id, containertypes.RemoveOptions{Force: true, RemoveVolumes: true}))
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// list returns all containers, running or not, with the given labels.
func (e *engine) list(ctx context.Context, labels map[string]string) ([]containerState, error) {
	wanted := filters.NewArgs()
	for name, value := range labels {
		wanted.Add("label", name+"="+value)
	}
	found, err := e.api.ContainerList(ctx, containertypes.ListOptions{All: true, Filters: wanted})
	if err != nil {
		return nil, told("list containers", err)
	}
	var states []containerState
	for _, c := range found {
		states = append(states, containerState{
			ID: c.ID, Labels: c.Labels, Running: c.State == "running" || c.State == "paused", Paused: c.State == "paused",
			Created: c.State == "created", StartedNS: time.Unix(c.Created, 0).UnixNano(),
		})
	}
	return states, nil
}

// image looks at an image by name or id.
func (e *engine) image(ctx context.Context, ref string) (image, error) {
	found, err := e.api.ImageInspect(ctx, ref)
	if err != nil {
		return image{}, told("look at image", err)
	}
	out := image{ID: found.ID, Tags: found.RepoTags, Digests: found.RepoDigests, Bytes: found.Size}
	if c := found.Config; c != nil {
		out.Env, out.Entrypoint, out.Cmd = c.Env, c.Entrypoint, c.Cmd
		out.User, out.WorkingDir, out.Labels = c.User, c.WorkingDir, c.Labels
	}
	return out, nil
}

func (e *engine) images(ctx context.Context) ([]image, error) {
	found, err := e.api.ImageList(ctx, imagetypes.ListOptions{})
	if err != nil {
		return nil, told("list images", err)
	}
	var all []image
	for _, i := range found {
		all = append(all, image{ID: i.ID, Tags: i.RepoTags, Digests: i.RepoDigests, Bytes: i.Size})
	}
	return all, nil
}

// imagesInUse returns the ids of the images of all containers.
func (e *engine) imagesInUse(ctx context.Context) ([]string, error) {
	found, err := e.api.ContainerList(ctx, containertypes.ListOptions{All: true})
	if err != nil {
		return nil, told("list containers", err)
	}
	var ids []string
	for _, c := range found {
		ids = append(ids, c.ImageID)
	}
	return ids, nil
}

// removeImage removes an image by id with all its names, or one of its names.
func (e *engine) removeImage(ctx context.Context, ref string) error {
	_, err := e.api.ImageRemove(ctx, ref, imagetypes.RemoveOptions{PruneChildren: true})
	return told("remove image", err)
}

// credentials log in to a registry. They print as nothing.
type credentials struct {
	username, password, token string
}

func (credentials) String() string   { return "***" }
func (credentials) GoString() string { return "***" }

// layerProgress is one line of a pull's report.
type layerProgress struct {
	Layer       string
	Status      string
	Done, Total int64
}

// pull fetches an image and reports every line that the engine sends.
func (e *engine) pull(ctx context.Context, ref string, login *credentials, report func(layerProgress)) error {
	options := imagetypes.PullOptions{}
	if login != nil {
		auth, err := registry.EncodeAuthConfig(registry.AuthConfig{
			Username: login.username, Password: login.password, IdentityToken: login.token,
		})
		if err != nil {
			return errors.New("pull image: credentials cannot be encoded")
		}
		options.RegistryAuth = auth
	}
	stream, err := e.api.ImagePull(ctx, ref, options)
	if err != nil {
		return told("pull image", err)
	}
	defer stream.Close()
	for decoder := json.NewDecoder(stream); ; {
		var line struct {
			ID             string `json:"id"`
			Status         string `json:"status"`
			Error          string `json:"error"`
			ProgressDetail struct {
				Current int64 `json:"current"`
				Total   int64 `json:"total"`
			} `json:"progressDetail"`
		}
		switch err := decoder.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("pull image: %w", ctx.Err())
		case err != nil:
			return told("pull image", err)
		case line.Error != "":
			return fmt.Errorf("pull image: %s", line.Error)
		}
		report(layerProgress{Layer: line.ID, Status: line.Status, Done: line.ProgressDetail.Current, Total: line.ProgressDetail.Total})
	}
}

// commit makes an image of a container with the configuration of base, the
// image that the container was made of.
func (e *engine) commit(ctx context.Context, id, ref string, base image, note driver.CommitNote) (string, error) {
	config := &containertypes.Config{
		Env: base.Env, Entrypoint: base.Entrypoint, Cmd: base.Cmd, User: base.User, WorkingDir: base.WorkingDir, Labels: base.Labels,
	}
	if config.Entrypoint == nil {
		config.Entrypoint = []string{} // nil would mean the container's own
	}
	var changes []string
	for _, name := range labelNames() {
		changes = append(changes, "LABEL "+name+"=") // so that nothing made of the image is taken for ours
	}
	made, err := e.api.ContainerCommit(ctx, id, containertypes.CommitOptions{
		Reference: ref, Author: note.Author, Comment: note.Comment, Pause: true, Config: config, Changes: changes,
	})
	return made.ID, told("commit container", err)
}

// ensureNetwork makes a bridge of that name when there is no network of it.
func (e *engine) ensureNetwork(ctx context.Context, name string) error {
	_, err := e.api.NetworkInspect(ctx, name, networktypes.InspectOptions{})
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return told("look at network", err)
	}
	_, err = e.api.NetworkCreate(ctx, name, networktypes.CreateOptions{Driver: "bridge"})
	if err != nil && !errdefs.IsConflict(err) && !errdefs.IsAlreadyExists(err) {
		return told("make network", err)
	}
	return nil
}
