package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// pod takes the template of a pod for the task. A second one changes what it says
// otherwise: the launcher of an MPIJob its command.
func (k *kube) pod(template *object) {
	template.says(needless, "import.kube.labels", "metadata")
	spec := template.inner("spec")
	if seconds, from, ok := spec.whole("terminationGracePeriodSeconds"); ok && seconds > 0 {
		k.job.set("stop_grace", span(time.Duration(seconds)*time.Second), from)
	}
	selector := spec.inner("nodeSelector")
	for _, key := range selector.keys {
		if strings.Contains(key, "pool") {
			if pool, from, ok := selector.text(key); ok {
				k.pool(pool, from)
			}
		}
	}
	selector.says(lost, "import.kube.selector", selector.keys...)
	spec.says(needless, "import.kube.restart", "restartPolicy")
	spec.says(needless, "import.kube.network", "hostNetwork", "dnsPolicy", "subdomain", "hostname", "schedulerName")
	spec.says(lost, "import.kube.selector", "affinity", "tolerations", "topologySpreadConstraints", "nodeName")
	spec.says(lost, "import.slurm.priority", "priorityClassName")
	spec.says(lost, "import.kube.init", "initContainers")
	spec.says(lost, "import.kube.pull", "imagePullSecrets")
	volumes := make(map[string]*object)
	for _, volume := range spec.list("volumes") {
		if name, _, ok := volume.text("name"); ok {
			volumes[name] = volume
		}
	}
	containers := spec.list("containers")
	chosen := 0
	for i, c := range containers {
		if name, _, _ := c.text("name"); slices.Contains([]string{"pytorch", "tensorflow", "mpi"}, name) {
			chosen = i
		}
	}
	for i, c := range containers {
		if i != chosen {
			k.say(lost, c.origin("name"), "import.kube.sidecar")
			continue
		}
		k.container(c, volumes)
	}
	for _, volume := range volumes {
		volume.says(lost, "import.kube.volume_unused", volume.keys...)
	}
	spec.rest()
	template.rest()
}

func (k *kube) container(c *object, volumes map[string]*object) {
	task := k.job.inner("task", "")
	c.used["name"] = true
	if image, from, ok := c.text("image"); ok {
		task.set("driver", literal(structs.DriverDocker), from)
		task.set("image", literal(image), from)
		k.say(check, from, "import.image")
	}
	if policy, from, ok := c.text("imagePullPolicy"); ok {
		pull, known := map[string]string{"Always": structs.PullAlways, "IfNotPresent": structs.PullMissing, "Never": structs.PullNever}[policy]
		if known {
			task.set("pull", literal(pull), from)
		} else {
			k.say(lost, from, "import.slurm.bad_value", "value", policy)
		}
	}
	if dir, from, ok := c.text("workingDir"); ok {
		if path.IsAbs(dir) {
			task.set("dir", literal(path.Clean(dir)), from)
		} else {
			k.say(lost, from, "import.slurm.bad_value", "value", dir)
		}
	}
	at := c.origin("command")
	if at.line == 0 {
		at = c.origin("args")
	}
	words := c.words("command")
	arguments := c.words("args")
	if len(words) == 0 && len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		task.set("options", table([][2]string{{structs.OptionEntrypoint, structs.OptionEntrypointImage}}), at)
	}
	if len(words) > 0 || task.has("options") {
		words = append(words, arguments...)
	} else if len(arguments) > 0 {
		k.refuse(at.line, "import.kube.no_command")
		c.used["args"] = true
		return
	}
	for i, word := range words {
		if strings.Contains(word, "$(") && len(words) > 0 && !(i > 0 && shells[path.Base(words[0])]) {
			k.say(check, at, "import.kube.expansion")
		}
	}
	if len(words) > 0 {
		task.set("command", k.commandOf(words), at)
	}
	k.env(c)
	k.amounts(c.inner("resources"))
	for _, mount := range c.list("volumeMounts") {
		k.mount(mount, volumes)
	}
	c.says(needless, "import.kube.network", "ports")
	c.says(lost, "import.kube.security", "securityContext")
	c.says(lost, "import.kube.probes", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
	c.rest()
}

// commandOf is a command in words as a job file has it: a script for a shell as a
// text of several lines.
func (k *kube) commandOf(words []string) string {
	command := structs.JoinCommand(words)
	if strings.Contains(command, "\n") {
		return heredoc(command)
	}
	return literal(command)
}

func (k *kube) env(c *object) {
	var pairs [][2]string
	seen := make(map[string]bool)
	from := c.origin("env")
	for _, one := range c.list("env") {
		name, at, _ := one.text("name")
		value, _, ok := one.text("value")
		switch {
		case ok && name == "" || !isWord(name) || seen[name]:
			k.say(lost, at, "import.slurm.export_name", "name", name)
		case !ok && one.at["valueFrom"] != nil:
			one.used["valueFrom"] = true
			k.say(lost, at, "import.kube.secret", "name", name)
		case structs.ModePyTorch.Reserves(name):
			k.say(lost, at, "import.slurm.export_name", "name", name)
		default:
			seen[name] = true
			pairs = append(pairs, [2]string{name, value})
		}
		one.rest()
	}
	if len(pairs) > 0 {
		k.job.inner("task", "").set("env", table(pairs), from)
	}
	c.says(lost, "import.kube.env_from", "envFrom")
}

// cardNames are the devices of Kubernetes.
var cardNames = map[string]string{
	"nvidia.com/gpu": "nvidia/gpu", "amd.com/gpu": "amd/gpu", "huawei.com/Ascend910": structs.DeviceKindAscend, "cambricon.com/mlu": "cambricon/mlu",
}

func (k *kube) amounts(o *object) {
	resources := k.job.inner("resources", "")
	limits, requests := o.inner("limits"), o.inner("requests")
	for _, part := range []*object{limits, requests} { // a limit counts before a request
		for _, key := range part.keys {
			text, from, ok := part.text(key)
			n, fine := quantity(text)
			switch {
			case !ok || !fine:
				k.say(lost, part.origin(key), "import.slurm.bad_value", "value", text)
			case key == "cpu":
				if !resources.has("cpu") && n >= structs.CPUMin && n <= structs.CPUMax {
					resources.set("cpu", strconv.FormatFloat(n, 'f', -1, 64), from)
				} else {
					k.say(needless, from, "import.kube.request")
				}
			case key == "memory":
				if k.memory == 0 && n >= float64(structs.MemoryMin) && n <= float64(structs.MemoryMax) {
					k.memory = int64(n)
					resources.set("memory", size(k.memory), from)
				} else {
					k.say(needless, from, "import.kube.request")
				}
			case key == "ephemeral-storage" && n >= float64(structs.DiskMin) && n <= float64(structs.DiskMax):
				resources.set("disk", size(int64(n)), from)
			case strings.HasPrefix(key, "rdma/"):
				resources.set("rdma", "true", from)
			case cardNames[key] != "" && n >= 1 && n <= structs.DeviceCountMax:
				resources.inner("device", cardNames[key]).set("count", number(int(n)), from)
			default:
				k.say(lost, from, "import.kube.resource")
			}
		}
	}
	if device := slices.IndexFunc(resources.blocks, func(b *block) bool { return b.name == "device" }); device >= 0 && !resources.has("cpu") {
		cards, _ := strconv.Atoi(resources.blocks[device].arguments[0].value)
		cpu := min(coresPerCard*cards, int(structs.CPUMax))
		resources.set("cpu", number(cpu))
		k.say(check, origin{}, "import.guess_cores", "cpu", cpu)
	}
	if k.memory == 0 {
		k.memory = 8 * structs.GiB
		resources.set("memory", size(k.memory))
		k.say(check, origin{}, "import.guess_memory", "memory", structs.FormatSize(k.memory))
	}
	o.rest()
}

// mount takes a volume to the place where the container has it.
func (k *kube) mount(m *object, volumes map[string]*object) {
	name, _, _ := m.text("name")
	target, from, _ := m.text("mountPath")
	only, _, _ := m.text("readOnly")
	volume := volumes[name]
	if volume == nil || !path.IsAbs(target) {
		k.say(lost, from, "import.kube.volume")
		m.rest()
		return
	}
	target = path.Clean(target)
	empty, host, claim := volume.inner("emptyDir"), volume.inner("hostPath"), volume.inner("persistentVolumeClaim")
	switch {
	case volume.used["emptyDir"]:
		medium, _, _ := empty.text("medium")
		limit, at, sized := empty.text("sizeLimit")
		n, ok := quantity(limit)
		switch {
		case target == "/dev/shm" && medium == "Memory" && sized && ok && n >= float64(structs.MemoryMin) && int64(n) <= k.memory:
			k.job.inner("resources", "").set("shared_memory", size(int64(n)), at)
		case target == "/dev/shm":
			k.say(check, from, "import.kube.shm")
		default:
			k.say(lost, from, "import.kube.empty")
		}
	case volume.used["hostPath"]:
		source, at, _ := host.text("path")
		host.says(needless, "import.kube.labels", "type")
		if !path.IsAbs(source) || slices.ContainsFunc(k.job.blocks, func(b *block) bool { return b.name == "mount" && b.label == target }) {
			k.say(lost, from, "import.kube.volume")
			break
		}
		block := k.job.inner("mount", target)
		block.set("source", literal(path.Clean(source)), at)
		if only == "true" {
			block.set("read_only", "true", from)
		}
		k.say(check, at, "import.slurm.mount", "source", source)
	case volume.used["persistentVolumeClaim"]:
		name, at, _ := claim.text("claimName")
		k.say(lost, at, "import.kube.claim", "name", nameOf(name), "target", target)
		claim.rest()
	default:
		volume.says(lost, "import.kube.volume", volume.keys...)
		k.say(lost, from, "import.kube.volume")
	}
	for _, key := range volume.keys {
		volume.used[key] = true
	}
	m.says(lost, "import.kube.volume", "subPath", "subPathExpr", "mountPropagation")
	m.rest()
}
