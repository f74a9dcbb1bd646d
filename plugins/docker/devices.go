package docker

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// The ways in which a container gets devices, in order of choice.
const (
	wayCDI     = "cdi"     // the engine applies a CDI specification of the node
	wayRequest = "request" // the engine's own support of the vendor (--gpus)
	wayRuntime = "runtime" // the vendor's OCI runtime
	wayRaw     = "raw"     // device nodes and libraries, one by one
)

// engineFacts are what the ways to devices depend on. They are found once per
// connection to the engine and shown in the fingerprint.
type engineFacts struct {
	CDIKinds []string // of CDI specifications that the engine reads, as "nvidia.com/gpu"
	Drivers  []string // device drivers of the engine's own, as "nvidia"
	Runtimes []string // names of OCI runtimes
}

// devicePlan is what devices change in a container.
type devicePlan struct {
	Ways     []string // one for each reservation
	Requests []deviceRequest
	Runtime  string
	Nodes    []driver.Device
	Mounts   []driver.Mount
	// EngineEnv is seen by the engine's hooks and runtimes, and by nobody in
	// the container. It has an entry for every variable with which an image
	// could speak to them.
	EngineEnv []string
	// TaskEnv is put over the task's environment.
	TaskEnv []string
}

// none is the word by which vendors' hooks are told to give no device.
const none = "void"

// speaksToHooks reports whether an image's variable could control the hooks and
// runtimes that the engine runs with the container's environment: choose
// devices, or load a library into them.
func speaksToHooks(name string) bool {
	for _, prefix := range []string{"NVIDIA_", "ASCEND_", "CAMBRICON_", "LD_", "GCONV_", "GLIBC_", "MALLOC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"CUDA_VERSION", "PYTHONPATH", "BASH_ENV", "ENV"}, name)
}

// neverFromImage reports whether a variable of an image is kept from the task
// too: it would name devices that are not the task's, or load code that the
// job did not ask for. The job itself may set them, but for what reservations
// set.
func neverFromImage(name string) bool {
	return name == "LD_PRELOAD" || name == "LD_AUDIT" || strings.HasPrefix(name, "NVIDIA_VISIBLE_") ||
		strings.HasPrefix(name, "NVIDIA_DRIVER_") || strings.HasPrefix(name, "NVIDIA_MIG_") ||
		strings.HasPrefix(name, "ASCEND_VISIBLE_") || strings.HasPrefix(name, "ASCEND_RUNTIME_") ||
		slices.Contains([]string{"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}, name)
}

// planDevices decides how a container gets what device plugins have reserved
// for it. imageEnv is the image's own environment, which never wins. Pure.
func planDevices(facts engineFacts, reservations []driver.Reservation, imageEnv []string) (devicePlan, error) {
	var plan devicePlan
	engineEnv := map[string]string{"NVIDIA_VISIBLE_DEVICES": none, "LD_PRELOAD": ""}
	for _, entry := range imageEnv {
		name, _, _ := strings.Cut(entry, "=")
		if _, ours := engineEnv[name]; !ours && speaksToHooks(name) {
			engineEnv[name] = ""
		}
	}
	taskEnv := make(map[string]string)
	for i := range reservations {
		r := &reservations[i]
		way, missing := chooseWay(facts, r)
		switch way {
		case "":
			return devicePlan{}, structs.NewError(structs.CodeUnavailable, "docker.no_device_way", "missing", strings.Join(missing, "; "))
		case wayCDI:
			plan.Requests = append(plan.Requests, deviceRequest{Driver: "cdi", IDs: r.CDI})
		case wayRequest:
			plan.Requests = append(plan.Requests, deviceRequest{Driver: r.Engine.Driver, IDs: r.Engine.IDs, Capabilities: capabilities(r.Engine)})
			if r.Engine.Driver == "nvidia" {
				join(engineEnv, "NVIDIA_VISIBLE_DEVICES", strings.Join(r.Engine.IDs, ","))
			}
		case wayRuntime:
			if plan.Runtime != "" && plan.Runtime != r.Engine.Runtime {
				return devicePlan{}, structs.NewError(structs.CodeInvalid, "docker.two_runtimes", "one", plan.Runtime, "other", r.Engine.Runtime)
			}
			plan.Runtime = r.Engine.Runtime
			for name, value := range r.Engine.Env {
				join(engineEnv, name, value)
			}
		case wayRaw:
			// Several devices share control nodes and libraries.
			for _, node := range r.Nodes {
				if !slices.Contains(plan.Nodes, node) {
					plan.Nodes = append(plan.Nodes, node)
				}
			}
			for _, mount := range r.Mounts {
				if !slices.Contains(plan.Mounts, mount) {
					plan.Mounts = append(plan.Mounts, mount)
				}
			}
		}
		for name, value := range r.Env {
			join(taskEnv, name, value)
		}
		plan.Ways = append(plan.Ways, way)
	}
	if slices.Contains(plan.Ways, wayRequest) || plan.Runtime == "nvidia" {
		// What the driver offers is ours to say too.
		if value, told := engineEnv["NVIDIA_DRIVER_CAPABILITIES"]; !told || value == "" {
			engineEnv["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
		}
	}
	plan.EngineEnv, plan.TaskEnv = entries(engineEnv), entries(taskEnv)
	return plan, nil
}

// capabilities of a device request; the engine wants at least one.
func capabilities(e *driver.EngineDevices) []string {
	if len(e.Capabilities) == 0 {
		return []string{"gpu"}
	}
	return e.Capabilities
}

// join sets a variable, or adds to a list that another reservation began.
func join(env map[string]string, name, value string) {
	before, told := env[name]
	switch {
	case !told || before == "" || before == none:
		env[name] = value
	case before != value && strings.HasSuffix(name, "_DEVICES"):
		env[name] = before + "," + value
	}
}

// chooseWay returns the first way that the node offers for a reservation, or
// what is missing for each.
func chooseWay(facts engineFacts, r *driver.Reservation) (way string, missing []string) {
	if len(r.CDI) > 0 {
		lacking := ""
		for _, name := range r.CDI {
			if kind, _, _ := strings.Cut(name, "="); !slices.Contains(facts.CDIKinds, kind) {
				lacking = kind
			}
		}
		if lacking == "" {
			return wayCDI, nil
		}
		missing = append(missing, "the engine has no CDI specification of "+lacking)
	}
	e := r.Engine
	if e != nil && e.Driver != "" && len(e.IDs) > 0 {
		if slices.Contains(facts.Drivers, e.Driver) {
			return wayRequest, nil
		}
		missing = append(missing, "the engine has no device driver "+e.Driver)
	}
	// A vendor without a device driver, such as Ascend, is served without its
	// runtime as long as the plugin names all that it takes.
	complete := len(r.Nodes) > 0 && len(r.Mounts) > 0
	if e != nil && e.Runtime != "" && (e.Driver != "" || !complete) {
		if slices.Contains(facts.Runtimes, e.Runtime) {
			return wayRuntime, nil
		}
		missing = append(missing, "the engine has no runtime "+e.Runtime)
	}
	if len(r.Nodes) > 0 {
		return wayRaw, nil
	}
	if len(r.CDI) == 0 && e == nil {
		return wayRaw, nil // nothing but variables and files
	}
	return "", append(missing, "the device plugin names no device nodes")
}

// entries returns an environment in order of names.
func entries(env map[string]string) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list
}

// describe shows a plan to people and golden files.
func (p *devicePlan) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ways     %s\n", strings.Join(p.Ways, " "))
	for _, r := range p.Requests {
		fmt.Fprintf(&b, "request  driver=%s ids=%s capabilities=%s\n", r.Driver, strings.Join(r.IDs, ","), strings.Join(r.Capabilities, ","))
	}
	if p.Runtime != "" {
		fmt.Fprintf(&b, "runtime  %s\n", p.Runtime)
	}
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "node     %s %s\n", n.HostPath, n.Access)
	}
	for _, m := range p.Mounts {
		fmt.Fprintf(&b, "mount    %s at %s read-only=%v\n", m.HostPath, m.TaskPath, m.ReadOnly)
	}
	for _, e := range p.EngineEnv {
		fmt.Fprintf(&b, "engine   %s\n", e)
	}
	for _, e := range p.TaskEnv {
		fmt.Fprintf(&b, "task     %s\n", e)
	}
	return b.String()
}
