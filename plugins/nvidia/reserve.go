package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Nodes are the device nodes and files of this machine that tasks need.
type Nodes struct {
	Common []string // control nodes that are there, for instance /dev/nvidiactl
	// Caps are the capability nodes of MIG instances, by "<minor of the
	// card>/<GPU instance>[/<compute instance>]".
	Caps      map[string]string
	Libraries []device.Mount // of the driver, for containers
}

// libraryDirs are where the driver's libraries are looked for.
func libraryDirs() []string {
	return []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib64/nvidia", "usr/local/nvidia/lib64"}
}

// ReadNodes looks for device nodes and libraries below root. driver is the
// driver's version, which its libraries have in their names.
func ReadNodes(root, driver string) Nodes {
	nodes := Nodes{Caps: make(map[string]string)}
	for _, name := range []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"} {
		if _, err := os.Stat(filepath.Join(root, "dev", name)); err == nil {
			nodes.Common = append(nodes.Common, "/dev/"+name)
		}
	}
	nodes.readCaps(root)
	if driver != "" && !strings.ContainsAny(driver, "/*?[") {
		nodes.readLibraries(root, driver)
	}
	return nodes
}

// readCaps finds the capability nodes of MIG: the driver writes their numbers
// below /proc.
func (n *Nodes) readCaps(root string) {
	base := filepath.Join(root, "proc/driver/nvidia/capabilities")
	for _, pattern := range []string{"gpu*/mig/gi*/access", "gpu*/mig/gi*/ci*/access"} {
		files, err := filepath.Glob(filepath.Join(base, pattern))
		if err != nil {
			continue
		}
		for _, file := range files[:min(len(files), 4096)] {
			text, err := runtime.ReadFile(file, 4096)
			if err != nil {
				continue
			}
			minor, found := capMinor(string(text))
			rel, relErr := filepath.Rel(base, filepath.Dir(file))
			if !found || relErr != nil {
				continue
			}
			parts := strings.Split(rel, "/") // gpu0 mig gi7 [ci0]
			key := strings.TrimPrefix(parts[0], "gpu") + "/" + strings.TrimPrefix(parts[2], "gi")
			if len(parts) > 3 {
				key += "/" + strings.TrimPrefix(parts[3], "ci")
			}
			n.Caps[key] = fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor)
		}
	}
}

// capMinor reads "DeviceFileMinor: 12" of a capability's file.
func capMinor(text string) (int, bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "DeviceFileMinor" {
			minor, err := strconv.Atoi(strings.TrimSpace(value))
			return minor, err == nil && minor >= 0
		}
	}
	return 0, false
}

// readLibraries finds the driver's own libraries, and tools that people use in
// containers. Each appears in the container under its own path.
func (n *Nodes) readLibraries(root, driver string) {
	add := func(path string) {
		if len(n.Libraries) >= device.ReservationsMax || slices.ContainsFunc(n.Libraries, func(m device.Mount) bool { return m.TaskPath == path }) {
			return
		}
		n.Libraries = append(n.Libraries, device.Mount{HostPath: path, TaskPath: path, ReadOnly: true})
	}
	for _, dir := range libraryDirs() {
		files, err := filepath.Glob(filepath.Join(root, dir, "lib*.so."+driver))
		if err != nil {
			continue
		}
		for _, file := range files {
			if !isDriverLibrary(filepath.Base(file)) {
				continue
			}
			add("/" + filepath.Join(dir, filepath.Base(file)))
			// Programs look for the short name; it is a link on the host.
			short := strings.TrimSuffix(filepath.Base(file), driver) + "1"
			if _, err := os.Stat(filepath.Join(root, dir, short)); err == nil {
				add("/" + filepath.Join(dir, short))
			}
		}
	}
	for _, tool := range []string{"usr/bin/nvidia-smi", "usr/bin/nvidia-debugdump", "usr/bin/nvidia-cuda-mps-control", "usr/bin/nvidia-cuda-mps-server"} {
		if _, err := os.Stat(filepath.Join(root, tool)); err == nil {
			add("/" + tool)
		}
	}
}

// isDriverLibrary leaves out what computing does not need.
func isDriverLibrary(name string) bool {
	for _, prefix := range []string{
		"libcuda.so", "libcudadebugger.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so", "libnvidia-nvvm",
		"libnvidia-opencl.so", "libnvidia-compiler.so", "libnvidia-cfg.so", "libnvidia-gpucomp.so", "libnvidia-pkcs11", "libnvcuvid.so", "libnvidia-encode.so",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// reserve says what a task needs to see the devices, which must be of the
// newest snapshot. It is pure.
func reserve(chosen []structs.Device, nodes *Nodes, s *Settings) device.Reservation {
	r := device.Reservation{Env: make(map[string]string)}
	var visible, cards []string
	open := func(path string) {
		if !slices.ContainsFunc(r.Nodes, func(n device.Node) bool { return n.HostPath == path }) {
			r.Nodes = append(r.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
		}
	}
	for _, path := range nodes.Common {
		open(path)
	}
	for _, d := range chosen {
		card := d.ID
		if d.Kind == device.KindNVIDIAShared {
			card = d.Attrs[device.AttrParent]
		}
		if !slices.Contains(visible, card) {
			visible = append(visible, card)
			r.CDI = append(r.CDI, "nvidia.com/gpu="+card)
		}
		if minor := d.Attrs[device.AttrMinor]; minor != "" {
			open("/dev/nvidia" + minor)
			if d.Kind == device.KindNVIDIAMIG {
				gpu, compute, _ := strings.Cut(d.Attrs[device.AttrInstance], "/")
				for _, key := range []string{minor + "/" + gpu, minor + "/" + gpu + "/" + compute} {
					if path := nodes.Caps[key]; path != "" {
						open(path)
					}
				}
			}
		}
		cards = append(cards, card)
	}
	cards = slices.Compact(cards)
	shareEnv(&r, chosen, visible, s)
	list := strings.Join(visible, ",")
	r.Env["CUDA_VISIBLE_DEVICES"] = list
	r.Env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
	// An image's own wish to see every card never wins; where the runtime is
	// used the driver of containers sets it anew from Container.
	r.Env["NVIDIA_VISIBLE_DEVICES"] = list
	r.Env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
	r.Mounts = append(r.Mounts, nodes.Libraries...)
	r.Container = &device.Container{
		Driver: "nvidia", IDs: cards, Capabilities: []string{"gpu"}, Runtime: "nvidia",
		Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": list, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
	}
	return r
}

// shareEnv adds what MPS needs: the daemon's pipes, and the limits that make the
// parts of a task parts. A card's number in the limit of memory is its place
// among those that the task sees.
func shareEnv(r *device.Reservation, chosen []structs.Device, visible []string, s *Settings) {
	percentage, limits := 100, make([]int64, len(visible))
	for place, card := range visible {
		held := 0
		for i := range chosen {
			d := &chosen[i]
			if d.Attrs[device.AttrSharing] != device.SharingMPS || d.Attrs[device.AttrParent] != card {
				continue
			}
			share := s.shareOf(&Card{UUID: card, Bus: d.PCIBus, Index: d.Index})
			if share == nil {
				continue
			}
			held += 100 / share.Parts
			limits[place] += d.Memory
			r.Env["CUDA_MPS_PIPE_DIRECTORY"] = share.PipeDir
			if !slices.ContainsFunc(r.Mounts, func(m device.Mount) bool { return m.TaskPath == share.PipeDir }) {
				r.Mounts = append(r.Mounts, device.Mount{HostPath: share.PipeDir, TaskPath: share.PipeDir})
			}
		}
		if held > 0 {
			percentage = min(percentage, held)
		}
	}
	if r.Env["CUDA_MPS_PIPE_DIRECTORY"] == "" {
		return
	}
	r.Env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = strconv.Itoa(percentage)
	var texts []string
	for place, limit := range limits {
		if limit > 0 {
			texts = append(texts, fmt.Sprintf("%d=%dM", place, limit>>20))
		}
	}
	r.Env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = strings.Join(texts, ",")
}
