package importer

import (
	"path"
	"strings"

	"nomadlike/nomadlike/structs"
)

// array has the script find the number of its subjob where Slurm has that of a task.
func (s *slurm) array() {
	if s.ask.array == nil {
		return
	}
	const name, id = "SLURM_ARRAY_TASK_ID", "$NOMADLIKE_ARRAY_ID"
	if !shells[s.script.program] {
		s.job.inner("task", "").set("env", table([][2]string{{name, id}}), s.given["array"].origin)
		return
	}
	s.script.preamble = append(s.script.preamble, "export "+name+"="+id)
}

// input has the script read the file that it was to read.
func (s *slurm) input() {
	given, ok := s.given["input"]
	switch {
	case !ok:
	case !shells[s.script.program] || strings.ContainsAny(given.value, "%$"):
		s.say(lost, given.origin, "import.slurm.input")
	default:
		s.script.preamble = append(s.script.preamble, "exec <"+structs.JoinCommand([]string{given.value}))
		s.say(check, given.origin, "import.slurm.input_read")
	}
}

// exports sets the variables that the script names.
func (s *slurm) exports() {
	given, ok := s.given["export"]
	if !ok {
		return
	}
	var pairs [][2]string
	seen := make(map[string]bool)
	for _, part := range strings.Split(given.value, ",") {
		name, value, set := strings.Cut(part, "=")
		switch {
		case part == "" || part == "ALL" || part == "NONE" || part == "NIL":
		case !set || !isWord(name) || seen[name] || structs.ModePyTorch.Reserves(name) || strings.Contains(value, "$"):
			s.say(lost, given.origin, "import.slurm.export_name", "name", name)
		default:
			seen[name] = true
			pairs = append(pairs, [2]string{name, value})
		}
	}
	if len(pairs) > 0 {
		task := s.job.inner("task", "")
		if task.has("env") {
			s.say(lost, given.origin, "import.slurm.export_name", "name", pairs[0][0])
			return
		}
		task.set("env", table(pairs), given.origin)
		return
	}
	s.say(changed, given.origin, "import.slurm.export_all")
}

// place says where the task starts, and in what image.
func (s *slurm) place() {
	task := s.job.inner("task", "")
	if given, ok := s.given["container-image"]; ok {
		s.image(task, given)
	}
	docker := task.has("image")
	if given, ok := s.given["container-mounts"]; ok {
		s.mounts(given, docker)
	}
	if given, ok := s.given["container-workdir"]; ok {
		switch {
		case !docker || !path.IsAbs(given.value) || strings.Contains(given.value, "$") || task.has("dir"):
			s.say(lost, given.origin, "import.slurm.container_dir")
		default:
			s.ask.dir = path.Clean(given.value)
			task.set("dir", literal(s.ask.dir), given.origin)
		}
	}
	if !task.has("dir") {
		s.job.set("workdir", literal("."))
		s.say(check, origin{}, "import.slurm.workdir")
	}
}

// image takes the image of a container, in the words of the plugin.
func (s *slurm) image(task *block, given directive) {
	image := strings.TrimPrefix(given.value, "docker://")
	image = strings.Replace(image, "#", "/", 1)
	if image == "" || strings.ContainsAny(image, "$ @") || strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") || strings.HasSuffix(image, ".sqsh") || strings.HasPrefix(image, "-") {
		s.say(lost, given.origin, "import.slurm.image_file")
		return
	}
	task.set("driver", literal(structs.DriverDocker), given.origin)
	task.set("image", literal(image), given.origin)
	s.say(check, given.origin, "import.slurm.image")
}

func (s *slurm) mounts(given directive, docker bool) {
	seen := make(map[string]bool)
	for _, one := range strings.Split(given.value, ",") {
		parts := strings.Split(one, ":")
		source := parts[0]
		target := source
		if len(parts) > 1 {
			target = parts[1]
		}
		if one == "" || strings.Contains(one, "$") || !path.IsAbs(source) || !path.IsAbs(target) || !docker || seen[path.Clean(target)] {
			s.say(lost, given.origin, "import.slurm.mount_lost", "mount", one)
			continue
		}
		target = path.Clean(target)
		seen[target] = true
		mount := s.job.inner("mount", target)
		mount.set("source", literal(path.Clean(source)), given.origin)
		if len(parts) > 2 && strings.Contains(parts[2], "ro") {
			mount.set("read_only", "true", given.origin)
		}
		s.say(check, given.origin, "import.slurm.mount", "source", source)
	}
}
