package importer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// slurmAsk is what a script asks of each node, worked out of all its directives.
type slurmAsk struct {
	nodes     int
	tasks     int // of each node
	cpus      int // of each task
	cpu       int // of each node
	memory    int64
	cards     gpus // of each node
	limit     time.Duration
	limitFrom origin
	array     *structs.Array
	dir       string // absolute, when the script names one
}

func (a *slurmAsk) limitText() string { return span(a.limit) }

// Guesses, where a script leaves to the site what a job file says.
const (
	memoryPerCore = 4 * structs.GiB
	memoryPerCard = 32 * structs.GiB
	coresPerCard  = 8
)

// size works out nodes, tasks, cores, memory and cards of each node: Slurm's
// options count some by task, some by node and some by job.
func (s *slurm) size() {
	s.nodes()
	s.cards()
	s.tasks()
	s.cores()
	s.memory()
	s.time()
}

// count is the value of an option that is a whole number, 0 without.
func (s *slurm) count(name string) (int, origin) {
	given, ok := s.given[name]
	if !ok {
		return 0, origin{}
	}
	n, ok := slurmCount(given.value)
	if !ok {
		s.bad(given)
		return 0, origin{}
	}
	return n, given.origin
}

func (s *slurm) nodes() {
	s.ask.nodes = 1
	given, ok := s.given["nodes"]
	if !ok {
		s.nodesByTasks()
		return
	}
	least, most, ok := nodeCount(given.value)
	if !ok {
		s.bad(given)
		return
	}
	s.ask.nodes = most
	s.job.set("nodes", number(most), given.origin)
	if least < most {
		s.say(lost, given.origin, "import.slurm.nodes_range", "least", least, "most", most, "elastic", fmt.Sprintf("elastic { min_nodes = %d }", least))
	}
}

// nodesByTasks is how many nodes a script takes that says only how many tasks.
func (s *slurm) nodesByTasks() {
	all, from := s.count("ntasks")
	each, _ := s.count("ntasks-per-node")
	switch {
	case all > 1 && each > 0:
		s.ask.nodes = min((all+each-1)/each, structs.NodesMax)
		s.job.set("nodes", number(s.ask.nodes), from)
	case all > 1:
		s.say(check, from, "import.slurm.tasks_one_node", "tasks", all)
	}
}

func (s *slurm) tasks() {
	s.ask.tasks = 1
	each, from := s.count("ntasks-per-node")
	all, fromAll := s.count("ntasks")
	perCard, fromCard := s.count("ntasks-per-gpu")
	nodes := s.ask.nodes
	switch {
	case each > 0:
		s.ask.tasks = each
		if all > 0 && all != each*nodes {
			s.say(check, fromAll, "import.slurm.tasks_differ", "tasks", each*nodes)
		} else if all > 0 {
			s.say(needless, fromAll, "import.slurm.tasks_same")
		}
	case all > 0:
		from = fromAll
		s.ask.tasks = max(1, (all+nodes-1)/nodes)
		if all%nodes != 0 {
			s.say(check, from, "import.slurm.tasks_uneven", "tasks", s.ask.tasks)
		}
	case perCard > 0 && s.ask.cards.count > 0:
		from = fromCard
		s.ask.tasks = perCard * s.ask.cards.count
	case perCard > 0:
		s.say(lost, fromCard, "import.slurm.tasks_cards")
	}
	s.ask.tasks = min(s.ask.tasks, structs.ProcsMax)
	if from.line > 0 {
		s.say(changed, from, "import.slurm.tasks", "tasks", s.ask.tasks)
	}
}

// cards works out the cards of each node.
func (s *slurm) cards() {
	var from origin
	take := func(given directive, count func(gpus) int) {
		one, ok := slurmGPUs(given.value)
		if !ok {
			s.bad(given)
			return
		}
		if s.ask.cards.count > 0 {
			s.say(lost, given.origin, "import.slurm.cards_twice")
			return
		}
		one.count = min(count(one), structs.DeviceCountMax)
		s.ask.cards, from = one, given.origin
	}
	same := func(g gpus) int { return g.count }
	if given, ok := s.given["gres"]; ok {
		s.gres(given, take, same)
	}
	if given, ok := s.given["gpus-per-node"]; ok {
		take(given, same)
	}
	if given, ok := s.given["gpus-per-task"]; ok {
		take(given, func(g gpus) int { return g.count * max(1, s.tasksEach()) })
	}
	if given, ok := s.given["gpus"]; ok {
		take(given, func(g gpus) int { return (g.count + s.ask.nodes - 1) / s.ask.nodes })
		if one, ok := slurmGPUs(given.value); ok && one.count%s.ask.nodes != 0 {
			s.say(check, given.origin, "import.slurm.cards_uneven", "cards", s.ask.cards.count)
		}
	}
	if s.ask.cards.count == 0 {
		return
	}
	device := s.device()
	device.set("count", number(s.ask.cards.count), from)
	if model := s.ask.cards.model; model != "" {
		device.set("model", literal(strings.ToUpper(strings.ReplaceAll(model, "_", "-"))), from)
		s.say(check, from, "import.slurm.model", "model", model)
	}
}

// tasksEach is how many tasks a node has as far as the directives say it outright.
func (s *slurm) tasksEach() int {
	if each, ok := slurmCount(s.given["ntasks-per-node"].value); ok {
		return each
	}
	if all, ok := slurmCount(s.given["ntasks"].value); ok {
		return (all + s.ask.nodes - 1) / s.ask.nodes
	}
	return 1
}

// gres takes the cards of a list of generic resources, and names the others.
func (s *slurm) gres(given directive, take func(directive, func(gpus) int), same func(gpus) int) {
	for _, part := range splitOutside(given.value) {
		part, _, _ = strings.Cut(part, "(")
		part = strings.TrimPrefix(part, "gres/")
		sort, rest, counted := strings.Cut(part, ":")
		one := directive{given.origin, given.name, rest}
		switch {
		case sort == "none" || part == "":
			s.say(needless, given.origin, "import.slurm.needless")
		case sort != "gpu":
			s.say(lost, given.origin, "import.slurm.gres", "name", part)
		case !counted:
			one.value = "1"
			take(one, same)
		default:
			take(one, same)
		}
	}
}

// device is the block of the cards, of the maker that the model says.
func (s *slurm) device() *block {
	sort := "nvidia/gpu"
	switch model := strings.ToLower(s.ask.cards.model); {
	case strings.HasPrefix(model, "mi") && len(model) > 2 && model[2] >= '0' && model[2] <= '9', strings.HasPrefix(model, "gfx"):
		sort = "amd/gpu"
	case strings.Contains(model, "ascend"), strings.HasPrefix(model, "910"):
		sort = structs.DeviceKindAscend
	}
	return s.job.inner("resources", "").inner("device", sort)
}

func (s *slurm) cores() {
	each, from := s.count("cpus-per-task")
	perCard, fromCard := s.count("cpus-per-gpu")
	least, fromLeast := s.count("mincpus")
	exclusive, whole := s.given["exclusive"]
	a := &s.ask
	resources := s.job.inner("resources", "")
	set := func(cpu int, from origin) {
		a.cpu = min(cpu, int(structs.CPUMax))
		resources.set("cpu", number(a.cpu), from)
	}
	a.cpus = max(each, 1)
	switch {
	case each > 0:
		set(each*a.tasks, from)
		if a.tasks > 1 {
			s.say(changed, from, "import.slurm.cores", "tasks", a.tasks)
		}
	case perCard > 0 && a.cards.count > 0:
		set(perCard*a.cards.count, fromCard)
	case whole:
		set(max(a.tasks, coresPerCard*max(a.cards.count, 1)), exclusive.origin)
	case least > 0:
		set(max(least, a.tasks), fromLeast)
	case a.cards.count > 0:
		set(max(a.tasks, coresPerCard*a.cards.count), origin{})
		s.say(check, origin{}, "import.slurm.cores_guess", "cpu", a.cpu)
	default:
		set(a.tasks, origin{})
	}
	if perCard > 0 && a.cards.count == 0 {
		s.say(lost, fromCard, "import.slurm.per_card")
	}
	if least > 0 && a.cpu < least {
		s.say(changed, fromLeast, "import.slurm.mincpus")
		set(least, fromLeast)
	}
	if whole {
		s.say(lost, exclusive.origin, "import.slurm.exclusive", "cpu", a.cpu)
	}
}

func (s *slurm) memory() {
	a := &s.ask
	resources := s.job.inner("resources", "")
	set := func(bytes int64, from origin) {
		if bytes < structs.MemoryMin || bytes > structs.MemoryMax {
			s.say(lost, from, "import.slurm.memory_range")
			bytes = structs.MemoryMin
		}
		a.memory = bytes
		resources.set("memory", size(bytes), from)
	}
	guess := max(int64(a.cpu)*memoryPerCore, int64(a.cards.count)*memoryPerCard)
	for _, by := range []struct {
		name  string
		times int64
	}{{"mem", 1}, {"mem-per-cpu", int64(a.cpu)}, {"mem-per-gpu", int64(a.cards.count)}} {
		given, ok := s.given[by.name]
		if !ok {
			continue
		}
		bytes, ok := slurmSize(given.value)
		switch {
		case !ok:
			s.bad(given)
		case a.memory > 0:
			s.say(lost, given.origin, "import.slurm.memory_twice")
		case bytes == 0:
			set(guess, given.origin)
			s.say(lost, given.origin, "import.slurm.memory_all", "memory", structs.FormatSize(guess))
		case by.times == 0:
			s.say(lost, given.origin, "import.slurm.per_card")
		case bytes > structs.MemoryMax/by.times:
			s.bad(given)
		default:
			set(bytes*by.times, given.origin)
			if by.times > 1 {
				s.say(changed, given.origin, "import.slurm.memory_times", "times", strconv.FormatInt(by.times, 10))
			} else if _, err := strconv.Atoi(given.value); err == nil {
				s.say(changed, given.origin, "import.slurm.memory_bare")
			}
		}
	}
	if a.memory == 0 {
		set(guess, origin{})
		s.say(check, origin{}, "import.slurm.memory_guess", "memory", structs.FormatSize(guess))
	}
}

func (s *slurm) time() {
	given, ok := s.given["time"]
	if !ok {
		s.say(check, origin{}, "import.slurm.time_none")
		return
	}
	limit, none, ok := slurmTime(given.value)
	switch {
	case !ok:
		s.bad(given)
	case none:
		s.say(changed, given.origin, "import.slurm.time_unlimited")
	default:
		s.ask.limit, s.ask.limitFrom = limit, given.origin
		if _, signal := s.given["signal"]; !signal || !canSignal(s.given["signal"].value) {
			s.job.set("time_limit", span(limit), given.origin)
		}
		if _, err := strconv.Atoi(given.value); err == nil {
			s.say(changed, given.origin, "import.slurm.time_minutes")
		}
	}
}

func canSignal(text string) bool {
	_, _, _, ok := slurmSignal(text)
	return ok
}
