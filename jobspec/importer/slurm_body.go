package importer

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// body makes the task of the script: where it runs (on every node, or on rank 0
// alone, as Slurm does), by what its processes find each other, and what of its
// lines had to be changed for that.
func (s *slurm) body() {
	script, problem := newScript(s.src.text)
	s.script = script
	s.removeDirectives()
	b := &slurmBody{slurm: s, script: script}
	switch {
	case problem != "":
		s.say(check, origin{line: 1}, "import.slurm.unreadable", "problem", problem)
		b.once = s.ask.nodes > 1
	case script.file == nil: // of another language
		b.once = s.ask.nodes > 1
	case len(script.file.Stmts) == 0:
		s.refuse(len(s.src.lines), "import.slurm.no_command")
		return
	default:
		b.decide()
		b.steps()
		b.programs()
		b.master()
	}
	b.variables()
	s.array()
	s.input()
	s.exports()
	b.modes()
	s.place()
	s.command(b)
}

// removeDirectives takes what Slurm reads out of the script, and its first line.
func (s *slurm) removeDirectives() {
	at := 0
	for i, line := range s.src.lines {
		end := min(at+len(line)+1, len(s.src.text))
		trimmed := strings.TrimSpace(line)
		switch {
		case i == 0 && strings.HasPrefix(line, "#!"), strings.HasPrefix(line, slurmMark):
			s.script.replace(at, end, "")
		case trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			return
		}
		at = end
	}
}

// slurmBody is what is decided of a script's commands.
type slurmBody struct {
	*slurm
	script   *script
	all      []step
	mode     string // of the distributed block, "" without one
	launcher string
	rewrite  string
	procs    int  // of each node, 0: as many as cards
	once     bool // the script runs on rank 0 alone
	modules  bool // it needs what a login shell sets up
}

var (
	torchWords     = regexp.MustCompile(`\b(torchrun|torch\.distributed\.(run|launch)|accelerate launch|accelerate\.commands\.launch)\b`)
	mpiWords       = regexp.MustCompile(`(?i)horovod|hvd|mpi4py`)
	mpiPrograms    = []string{"mpirun", "mpiexec", "orterun", "prterun", "horovodrun"}
	slurmPrograms  = []string{"sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "sstat", "sbcast", "salloc", "sattach", "sgather", "sprio", "scrontab"}
	slurmWord      = regexp.MustCompile(`\b(sbatch|squeue|scancel|sacct|sinfo|scontrol|srun)\b`)
	modulePrograms = []string{"module", "ml"}
)

// decide chooses the mode by what the script starts.
func (b *slurmBody) decide() {
	var host, torch, mpi, deepspeed, remote bool
	for _, c := range b.script.commands {
		if s, ok := stepOf(c); ok {
			b.all = append(b.all, s)
			host = host || s.host != "" && !b.looksUp(&s)
			continue
		}
		if len(c.words) > 0 {
			base := path.Base(c.words[0].text)
			mpi = mpi || slices.Contains(mpiPrograms, base)
			deepspeed = deepspeed || base == "deepspeed"
			remote = remote || slices.Contains([]string{"ssh", "pdsh", "clush", "parallel-ssh"}, base)
		}
	}
	torch = torchWords.MatchString(withoutComments(b.script.result()))
	gang := b.gangOf()
	nodes, tasks := b.ask.nodes, b.ask.tasks
	switch {
	case nodes > 1 && host || nodes > 1 && remote && gang == "":
		b.mode, b.once = "mpi", true
	case gang == "mpi":
		b.mode, b.once, b.procs = "mpi", true, tasks
	case gang != "" && torch, gang == "python":
		b.mode = "pytorch"
		if tasks > 1 && !torch {
			b.procs = tasks
		}
	case gang == "deepspeed" && nodes > 1:
		b.mode, b.launcher = "deepspeed", "no_ssh"
		b.say(check, origin{}, "import.slurm.deepspeed_srun")
	case gang != "" && nodes > 1:
		b.mode = "pytorch"
	case mpi && (nodes > 1 || tasks > 1):
		b.mode, b.once, b.procs = "mpi", true, tasks
	case deepspeed && nodes > 1:
		b.mode, b.launcher, b.once = "deepspeed", "pdsh", true
	case torch:
		b.mode = "pytorch"
		if nodes > 1 {
			b.say(check, origin{}, "import.slurm.torch_no_srun")
		}
	case nodes > 1:
		b.mode, b.once = "mpi", true
		b.say(check, origin{}, "import.slurm.first_node")
	}
	if b.mode == "mpi" && gang == "" && !mpi {
		b.rewrite = structs.RewriteNone
	}
	if nodes > 1 && !b.once {
		b.say(check, origin{}, "import.slurm.everywhere")
	}
}

// gangOf is what the steps that fan out start: python, mpi, deepspeed, other, or
// "" when there is none.
func (b *slurmBody) gangOf() string {
	found := ""
	for i := range b.all {
		s := &b.all[i]
		if s.host != "" || s.pty || b.looksUp(s) || b.single(s) || s.program >= len(s.command.words) {
			continue
		}
		sort := b.sortOf(s)
		if sort == "mpi" {
			return sort
		}
		if found == "" || found == "other" {
			found = sort
		}
	}
	return found
}

// single reports whether a step runs one task, wherever.
func (b *slurmBody) single(s *step) bool {
	if b.ask.nodes == 1 && b.ask.tasks == 1 {
		return true
	}
	return s.tasks == "1" || s.tasks == "" && s.nodes == "1" && (b.ask.tasks == 1 || s.perNode == "1")
}

func (b *slurmBody) sortOf(s *step) string {
	at, base := s.runs()
	words := s.command.words
	if at >= len(words) {
		return "other"
	}
	_, torch := torchLauncher(words, at)
	_, accelerate := accelerateLauncher(words, at)
	many := b.ask.tasks > 1 && s.perNode != "1"
	switch {
	case torch || accelerate:
		return "other"
	case s.mpi && (!isPython(base) || mpiWords.MatchString(b.script.text)):
		return "mpi"
	case isPython(base):
		return "python"
	case base == "deepspeed":
		return "deepspeed"
	case torchWords.MatchString(b.script.text) && (!words[at].literal || shells[base] || strings.HasSuffix(base, ".sh")):
		return "other"
	case many:
		return "mpi"
	case !words[at].literal, shells[base], strings.HasSuffix(base, ".sh"), base == "singularity", base == "apptainer":
		return "other"
	default:
		return "mpi"
	}
}

// looksUp reports whether a step only asks a node for its address or name.
func (b *slurmBody) looksUp(s *step) bool {
	_, base := s.runs()
	return s.command.inside && (base == "hostname" || base == "ip")
}

// steps changes each srun into what it is here.
func (b *slurmBody) steps() {
	for i := range b.all {
		b.step(&b.all[i])
	}
	for _, c := range b.script.commands { // launchers that no srun starts
		if _, ok := stepOf(c); !ok && len(c.words) > 0 && b.mode == "pytorch" {
			b.launch(c.words, 0, c.line)
		}
	}
}

func (b *slurmBody) step(s *step) {
	words := s.command.words
	at := origin{line: s.command.line, text: firstLine(b.lineOf(s.command.line))}
	b.container(s, at)
	if len(s.others) > 0 {
		b.say(needless, at, "import.slurm.step_options", "options", strings.Join(s.others, " "))
	}
	if s.program >= len(words) {
		b.say(lost, at, "import.slurm.step_nothing")
		return
	}
	from, to := words[s.first].from, words[s.program].from
	switch {
	case s.pty:
		b.script.replace(from, from, ": ")
		b.say(lost, at, "import.slurm.pty")
	case b.looksUp(s) && b.mode == "pytorch":
		b.script.replace(from, words[len(words)-1].to, `echo "$MASTER_ADDR"`)
		b.say(changed, at, "import.slurm.address")
	case b.looksUp(s) && s.host != "":
		b.script.replace(from, words[len(words)-1].to, "echo "+s.host)
		b.say(changed, at, "import.slurm.address")
	case b.once && s.host != "":
		b.script.replace(from, to, "ssh "+s.host+" ")
		b.say(check, at, "import.slurm.host_step")
	case b.single(s) || s.nodes == "1" && b.once && b.procs == 0:
		guard := ""
		if b.ask.nodes > 1 && !b.once && !s.command.inside {
			guard = `[ "$NOMADLIKE_RANK" != 0 ] || `
			b.say(check, at, "import.slurm.single_guarded")
		} else {
			b.say(changed, at, "import.slurm.step_plain")
		}
		b.script.replace(from, to, guard)
		b.launch(words, s.program, s.command.line)
	case b.mode == "mpi":
		b.script.replace(from, to, "mpirun -np "+b.processes(s)+" --bind-to none ")
		b.say(changed, at, "import.slurm.step_mpirun")
	default:
		b.script.replace(from, to, "")
		b.say(changed, at, "import.slurm.step_everywhere")
		b.under(s, at)
	}
}

// processes is how many processes a step has, as a word of a shell.
func (b *slurmBody) processes(s *step) string {
	if s.tasks != "" {
		return s.tasks
	}
	nodes := b.ask.nodes
	if n, ok := slurmCount(s.nodes); ok {
		nodes = n
	}
	tasks := b.ask.tasks
	if n, ok := slurmCount(s.perNode); ok {
		tasks = n
	}
	return number(nodes * tasks)
}

// under puts the launcher of torch in front of a Python program that Slurm started
// once for each card.
func (b *slurmBody) under(s *step, at origin) {
	words := s.command.words
	first, base := s.runs()
	if b.launch(words, first, s.command.line) || !isPython(base) {
		if !isPython(base) && b.ask.tasks > 1 && !torchWords.MatchString(b.script.text) {
			b.say(check, at, "import.slurm.tasks_unknown", "tasks", b.ask.tasks)
		}
		return
	}
	if b.ask.tasks == 1 || s.perNode == "1" {
		b.rewrite = structs.RewriteNone
		return
	}
	for i := first + 1; i < len(words); i++ {
		text := words[i].text
		if text == "-c" {
			b.say(lost, at, "import.slurm.python_inline")
			return
		}
		if text == "-m" || !strings.HasPrefix(text, "-") {
			b.script.replace(words[i].from, words[i].from, "-m torch.distributed.run --nproc_per_node="+number(b.ask.tasks)+" ")
			b.say(changed, at, "import.slurm.python_torch", "tasks", b.ask.tasks)
			return
		}
		if text == "-W" || text == "-X" {
			i++
		}
	}
}

// rendezvous are the options of torch's launchers that the system sets.
var rendezvous = strings.Fields("nnodes node_rank master_addr master_port rdzv_id rdzv_backend rdzv_endpoint rdzv_conf")

// launch takes the options out of a launcher that say where ranks meet: they come
// from the environment.
func (b *slurmBody) launch(words []word, at, line int) bool {
	if at >= len(words) {
		return false
	}
	from := origin{line: line, text: firstLine(b.lineOf(line))}
	if options, ok := torchLauncher(words, at); ok {
		var gone []string
		for i := options; i < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
			name, _, joined := strings.Cut(strings.TrimLeft(words[i].text, "-"), "=")
			if !slices.Contains(rendezvous, strings.ReplaceAll(name, "-", "_")) {
				if !joined && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") && takesValue(name) {
					i++
				}
				continue
			}
			start := i
			if !joined && i+1 < len(words) {
				i++
			}
			end := words[i].to
			if i+1 < len(words) {
				end = words[i+1].from
			}
			b.script.replace(words[start].from, end, "")
			gone = append(gone, "--"+name)
		}
		if len(gone) > 0 {
			b.say(changed, from, "import.slurm.rendezvous", "options", strings.Join(gone, " "))
		}
		return true
	}
	options, ok := accelerateLauncher(words, at)
	if !ok {
		return false
	}
	values := map[string]string{"machine_rank": `"$NOMADLIKE_RANK"`, "main_process_ip": `"$MASTER_ADDR"`, "main_process_port": `"$MASTER_PORT"`}
	for i := options; i < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(words[i].text, "-"), "=")
		value, ours := values[strings.ReplaceAll(name, "-", "_")]
		if !joined && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") && (ours || takesValue(name)) {
			i++
			if ours {
				b.script.replace(words[i].from, words[i].to, value)
			}
		} else if joined && ours {
			b.script.replace(words[i].from, words[i].to, "--"+name+"="+value)
		}
		if ours {
			b.say(changed, from, "import.slurm.rendezvous_value", "option", "--"+name, "value", value)
		}
	}
	return true
}

// takesValue reports whether an option of a launcher takes a value: all do but
// those that switch something.
func takesValue(name string) bool {
	name = strings.ReplaceAll(name, "-", "_")
	return !slices.Contains(strings.Fields("m standalone no_python module use_env run_path multi_gpu mixed_precision_off tpu cpu use_deepspeed use_fsdp use_megatron_lm quiet debug same_network help h"), name)
}

// master leaves the address and the port of rank 0 to what the system sets.
func (b *slurmBody) master() {
	if b.mode != "pytorch" && b.mode != "deepspeed" {
		return
	}
	for _, at := range assigns(b.script.file) {
		name := at.Name.Value
		if (name != "MASTER_ADDR" && name != "MASTER_PORT") || at.Value == nil {
			continue
		}
		from, to := int(at.Value.Pos().Offset()), int(at.Value.End().Offset())
		line := int(at.Pos().Line())
		b.script.replace(from, to, "$"+name)
		b.say(changed, origin{line, firstLine(b.lineOf(line))}, "import.slurm.master", "name", name)
	}
}

// programs names what a script calls that is not there, or that its user has to
// look at.
func (b *slurmBody) programs() {
	told := make(map[int]bool)
	for _, c := range b.script.commands {
		if _, step := stepOf(c); step {
			told[c.line] = true
		}
		for i, w := range c.words {
			if i > 0 && !strings.Contains(c.words[0].text, "=") && !slices.Contains([]string{"exec", "nohup", "command", "time"}, c.words[0].text) {
				break
			}
			base := path.Base(w.text)
			at := origin{c.line, firstLine(b.lineOf(c.line))}
			switch {
			case base == "scontrol" && len(c.words) > i+2 && c.words[i+1].text == "show" && strings.HasPrefix(c.words[i+2].text, "hostname"):
				b.script.replace(w.from, c.words[len(c.words)-1].to, `echo "$NOMADLIKE_RANK_NAMES" | tr , "\n"`)
				b.say(changed, at, "import.slurm.hostnames")
				told[c.line] = true
			case slices.Contains(slurmPrograms, base):
				b.say(check, at, "import.slurm.program", "program", base)
				told[c.line] = true
			case slices.Contains(modulePrograms, base):
				b.modules = true
				b.say(check, at, "import.slurm.module")
			case slices.Contains(mpiPrograms, base) && b.once:
				b.say(check, at, "import.slurm.mpirun")
			}
		}
	}
	b.hidden(told)
}

// hidden names programs of Slurm in texts that are commands later: in a trap, or
// for another shell.
func (b *slurmBody) hidden(told map[int]bool) {
	for i, line := range b.src.lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") || told[i+1] {
			continue
		}
		if program := slurmWord.FindString(line); program != "" {
			b.say(check, origin{i + 1, firstLine(line)}, "import.slurm.program", "program", program)
		}
	}
}

func (s *slurm) lineOf(line int) string {
	if line < 1 || line > len(s.src.lines) {
		return ""
	}
	return s.src.lines[line-1]
}

// firstLine is a line without the sign that it goes on.
func firstLine(text string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), `\`))
}

// withoutComments leaves out the lines that are comments.
func withoutComments(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") })
	return strings.Join(lines, "\n")
}

// container takes the image of a step for that of the job.
func (b *slurmBody) container(s *step, at origin) {
	for _, name := range []string{"container-image", "container-mounts", "container-workdir"} {
		value, ok := s.container[name]
		if !ok {
			continue
		}
		value = strings.Trim(value, `"`)
		if before, twice := b.given[name]; twice {
			if before.value != value {
				b.say(lost, at, "import.slurm.container_twice", "option", "--"+name)
			}
			continue
		}
		b.given[name] = directive{at, name, value}
	}
}

// modes writes the distributed block.
func (b *slurmBody) modes() {
	if b.mode == "" && b.once {
		b.mode, b.rewrite = "mpi", structs.RewriteNone
		b.say(check, origin{}, "import.slurm.first_node")
	}
	if b.mode == "" {
		return
	}
	block := b.job.inner("distributed", b.mode)
	if b.rewrite != "" {
		block.set("rewrite", literal(b.rewrite))
	}
	if b.launcher != "" {
		block.set("launcher", literal(b.launcher))
	}
	if b.procs > 0 {
		block.set("procs_per_node", number(b.procs))
	}
	b.say(changed, origin{}, "import.slurm.mode_"+b.mode)
}

// command sets what runs: the script in its shell, or the one command that is left
// of it.
func (s *slurm) command(b *slurmBody) {
	task := s.job.inner("task", "")
	text := strings.Trim(s.script.result(), "\n")
	program := s.script.program
	from := origin{line: s.firstCommand(), text: s.text("import.slurm.script")}
	if strings.TrimSpace(withoutComments(text)) == "" {
		s.refuse(len(s.src.lines), "import.slurm.no_command")
		return
	}
	if strings.Contains(text, "$RANDOM") && s.ask.nodes > 1 && !b.once {
		s.say(check, origin{}, "import.slurm.random")
	}
	var options []string
	switch {
	case shells[program]:
		if b.modules || s.script.login || s.given["get-user-env"].name != "" {
			options = append(options, "-l")
		}
		if b.modules && !s.script.login {
			s.say(changed, origin{}, "import.slurm.login")
		}
		if given, ok := s.given["get-user-env"]; ok {
			s.say(changed, given.origin, "import.slurm.user_env")
		}
		if command, ok := plain(text); ok && len(s.script.preamble) == 0 && len(options) == 0 && s.script.file != nil {
			task.set("command", literal(command), from)
			task.arguments[len(task.arguments)-1].before = comments(text)
			return
		}
		options = append(options, "-c")
		if len(s.script.preamble) > 0 {
			text = strings.Join(s.script.preamble, "\n") + "\n" + text
		}
	case isPython(program), program == "tcsh", program == "csh", program == "fish":
		options = []string{"-c"}
	case program == "perl", program == "Rscript", program == "ruby", program == "node":
		options = []string{"-e"}
	default:
		s.refuse(1, "import.slurm.interpreter", "program", program)
		return
	}
	task.set("command", heredoc(shellCommand(program, options, "\n"+text+"\n")), from)
}

// firstCommand is the line of the first command.
func (s *slurm) firstCommand() int {
	for i, line := range s.src.lines {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			return i + 1
		}
	}
	return 1
}
