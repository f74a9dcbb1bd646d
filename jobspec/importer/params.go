package importer

import (
	"path"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// isParams reports whether a file has a key and a value on each line, and words of
// the params files of training platforms among them.
func isParams(name string, src *source) bool {
	known := path.Ext(name) == ".params"
	for _, line := range src.lines {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || !isWord(key) {
			return false
		}
		known = known || strings.HasPrefix(key, "worker_")
	}
	return known
}

// paramModes are the modes of the kinds of jobs.
var paramModes = map[string]structs.Mode{
	"pytorchjob": structs.ModePyTorch, "tfjob": structs.ModeTensorFlow, "mpijob": structs.ModeMPI, "horovodjob": structs.ModeHorovod,
	"deepspeedjob": structs.ModeDeepSpeed, "mindsporejob": structs.ModeMindSpore,
}

// paramKeys are the keys that are known, with what is said of them; "" for those that
// become arguments.
var paramKeys = map[string]string{
	"name": "", "kind": "", "command": "", "worker_count": "", "worker_cpu": "", "worker_gpu": "", "worker_memory": "", "worker_shared_memory": "",
	"worker_image": "", "job_max_running_time_minutes": "", "envs": "", "tags": "", "workspace_id": "", "interactive": "", "ps_count": "",
	"priority": "import.params.priority", "data_sources": "import.params.data", "code_source": "import.params.code", "code_branch": "import.params.code",
	"code_commit": "import.params.code", "thirdparty_libs": "import.params.libs", "vpc_id": "import.params.cloud", "success_policy": "import.params.success",
}

// readParams reads a params file: a key, an equals sign and a value on each line.
func readParams(d *draft) {
	given := make(map[string]directive)
	for i, line := range d.src.lines {
		at := origin{line: i + 1, text: line}
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok {
			d.say(lost, at, "import.params.line")
			continue
		}
		said, known := paramKeys[key]
		switch {
		case !known:
			d.say(lost, at, "import.params.unknown", "key", key)
			continue
		case said != "":
			d.say(lost, at, said)
			continue
		}
		if before, twice := given[key]; twice {
			d.say(needless, before.origin, "import.slurm.overridden", "line", at.line)
		}
		given[key] = directive{at, key, strings.TrimSpace(value)}
	}
	p := params{d, given}
	p.general()
	p.resources()
	p.task()
}

type params struct {
	*draft
	given map[string]directive
}

// whole is a value that is a whole number from 1 on, 0 without.
func (p *params) whole(key string) (int, origin) {
	one, ok := p.given[key]
	if !ok {
		return 0, origin{}
	}
	n, ok := slurmCount(one.value)
	if !ok {
		if one.value != "0" {
			p.say(lost, one.origin, "import.slurm.bad_value", "value", one.value)
		} else {
			p.say(needless, one.origin, "import.slurm.needless")
		}
		return 0, origin{}
	}
	return n, one.origin
}

func (p *params) general() {
	if one, ok := p.given["name"]; ok && p.opts.Name == "" {
		p.name(one.value, one.origin)
	}
	if one, ok := p.given["workspace_id"]; ok {
		p.project(one.value, one.origin)
	}
	if one, ok := p.given["interactive"]; ok {
		if one.value == "false" || one.value == "" {
			p.say(needless, one.origin, "import.slurm.needless")
		} else {
			p.say(lost, one.origin, "import.params.interactive")
		}
	}
	nodes, from := p.whole("worker_count")
	if nodes > 0 {
		p.job.set("nodes", number(nodes), from)
	}
	if minutes, from := p.whole("job_max_running_time_minutes"); minutes > 0 {
		p.job.set("time_limit", span(time.Duration(minutes)*time.Minute), from)
	}
	if one, ok := p.given["tags"]; ok {
		p.job.set("tags", literals(strings.Split(one.value, ",")), one.origin)
	}
	servers, fromServers := p.whole("ps_count")
	if one, ok := p.given["kind"]; ok {
		mode, known := paramModes[strings.ToLower(one.value)]
		if !known {
			p.say(lost, one.origin, "import.params.kind", "kind", one.value)
			return
		}
		block := p.job.inner("distributed", string(mode))
		block.from = one.origin
		if mode == structs.ModeTensorFlow && servers > 0 {
			block.set("parameter_servers", number(servers), fromServers)
			servers = 0
		}
		if mode == structs.ModePyTorch {
			p.say(check, one.origin, "import.params.rewrite")
		}
	}
	if servers > 0 {
		p.say(lost, fromServers, "import.params.servers")
	}
}

func (p *params) resources() {
	resources := p.job.inner("resources", "")
	if one, ok := p.given["worker_cpu"]; ok {
		if cpu, err := strconv.ParseFloat(one.value, 64); err != nil || !(cpu >= structs.CPUMin && cpu <= structs.CPUMax) {
			p.say(lost, one.origin, "import.slurm.bad_value", "value", one.value)
		} else {
			resources.set("cpu", strconv.FormatFloat(cpu, 'f', -1, 64), one.origin)
		}
	}
	for _, key := range []string{"memory", "shared_memory"} {
		one, ok := p.given["worker_"+key]
		if !ok {
			continue
		}
		text := one.value
		if _, err := strconv.Atoi(text); err == nil {
			text += "G" // what it counts in
		}
		bytes, ok := slurmSize(text)
		if !ok || bytes < structs.MemoryMin {
			p.say(lost, one.origin, "import.slurm.bad_value", "value", one.value)
			continue
		}
		resources.set(key, size(bytes), one.origin)
		p.say(changed, one.origin, "import.params.memory")
	}
	if !resources.has("memory") {
		guess := 8 * structs.GiB
		resources.set("memory", size(guess))
		p.say(check, origin{}, "import.guess_memory", "memory", structs.FormatSize(guess))
	}
	if cards, from := p.whole("worker_gpu"); cards > 0 {
		resources.inner("device", "nvidia/gpu").set("count", number(cards), from)
	}
}

func (p *params) task() {
	task := p.job.inner("task", "")
	if one, ok := p.given["worker_image"]; ok {
		task.set("driver", literal(structs.DriverDocker), one.origin)
		task.set("image", literal(one.value), one.origin)
		p.say(check, one.origin, "import.image")
	}
	if one, ok := p.given["envs"]; ok {
		var pairs [][2]string
		seen := make(map[string]bool)
		for _, part := range strings.Split(one.value, ",") {
			name, value, set := strings.Cut(strings.TrimSpace(part), "=")
			if !set || !isWord(name) || seen[name] {
				p.say(lost, one.origin, "import.slurm.export_name", "name", name)
				continue
			}
			seen[name] = true
			pairs = append(pairs, [2]string{name, value})
		}
		if len(pairs) > 0 {
			task.set("env", table(pairs), one.origin)
		}
	}
	one, ok := p.given["command"]
	if !ok || one.value == "" {
		p.refuse(len(p.src.lines), "import.params.no_command")
		return
	}
	command, ok := plain(one.value)
	if !ok {
		command = shellCommand("bash", []string{"-c"}, one.value)
		p.say(changed, one.origin, "import.shell")
	}
	task.set("command", literal(command), one.origin)
}
