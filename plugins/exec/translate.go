package exec

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec/supervisor"
)

// translator says to a supervisor, and to cgroups, what the client said to the
// driver. It starts and keeps nothing.
type translator struct {
	config   *Config
	root     bool
	isolator *isolator
	cgroups  *cgroupTree
}

// wire says to a supervisor what the client said to the driver.
func (t *translator) wire(spec *driver.TaskSpec, l level) (*supervisor.Spec, error) {
	credential, err := resolveUser(spec.User, t.root)
	if err != nil {
		return nil, err
	}
	if credential != nil {
		credential.Groups = append(credential.Groups, deviceGroups(spec)...)
	}
	if !l.isolated && t.config.Isolation == IsolationRequired {
		return nil, fmt.Errorf("isolate task %s: %s: %w", spec.ID, l.reason, driver.ErrUnsupported)
	}
	limits, err := t.ulimits(spec)
	if err != nil {
		return nil, err
	}
	rotation := spec.LogRotation.WithDefaults()
	wire := &supervisor.Spec{
		TaskID:     string(spec.ID),
		Marker:     string(spec.ID) + ":" + rand.Text(),
		Command:    spec.Command,
		Env:        make([]string, 0, len(spec.Env)+2),
		Dir:        spec.Dir,
		Credential: credential,
		Hold:       spec.Hold,
		Hostname:   spec.Hostname,
		LogDir:     spec.LogDir,
		LogFiles:   rotation.MaxFiles,
		LogBytes:   rotation.MaxBytes,
		GraceMS:    spec.KillGrace.Milliseconds(),
		Limits:     limits,
	}
	for _, mask := range spec.Mask {
		wire.Mask = append(wire.Mask, tasklog.Masked{Name: mask.Name, Text: mask.Text})
	}
	if wire.Dir == "" {
		wire.Dir = spec.TaskDir
	}
	if len(spec.Hosts) > 0 {
		wire.Hosts = strings.Join(spec.Hosts, "\n") + "\n" + othersOfNode()
	}
	if l.isolated {
		wire.Isolation = t.isolator.view(spec, l)
		if credential != nil && allotted(spec.User) {
			wire.Passwd = withUser(t.config.Root, credential, spec)
		}
	}
	for _, entry := range spec.WithSearchPath(deviceEnv(spec)) {
		if !strings.HasPrefix(entry, supervisor.MarkerEnv+"=") {
			wire.Env = append(wire.Env, entry)
		}
	}
	wire.Env = append(wire.Env, supervisor.MarkerEnv+"="+wire.Marker)
	return wire, nil
}

// bounds returns what a task's cgroups hold it to. Which devices it may open is
// said where it is isolated and cgroups have rules for that.
func (t *translator) bounds(spec *driver.TaskSpec, l level) (*cgroups.Resources, error) {
	bounds := t.cgroups.bounds(spec.Resources, t.config.PIDsMax)
	if !l.isolated || !t.cgroups.ruleDevices() {
		return bounds, nil
	}
	rules, err := deviceRules(spec)
	if err != nil {
		return nil, err
	}
	bounds.Devices, bounds.SkipDevices = rules, false
	return bounds, nil
}

// deviceEnv is the task's environment with what its devices need, which wins.
func deviceEnv(spec *driver.TaskSpec) []string {
	devices := make(map[string]string)
	for _, reservation := range spec.Reservations {
		maps.Copy(devices, reservation.Env)
	}
	env := slices.DeleteFunc(slices.Clone(spec.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, taken := devices[name]
		return taken
	})
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		env = append(env, name+"="+devices[name])
	}
	return env
}

// hostsOfNodeMax bounds how much of the node's own hosts file a task gets.
const hostsOfNodeMax = 256 << 10

// othersOfNode is what the hosts file of a task holds behind the names of its
// ranks: the node's own, so that localhost and the machines that only this file
// knows are found in the task too.
func othersOfNode() string {
	const loopback = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	file, err := os.Open("/etc/hosts")
	if err != nil {
		return loopback
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, hostsOfNodeMax+1))
	if err != nil || len(text) == 0 || len(text) > hostsOfNodeMax {
		return loopback
	}
	return string(text)
}
