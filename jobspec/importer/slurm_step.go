package importer

import (
	"path"
	"slices"
	"strings"
)

// step is one srun of a script.
type step struct {
	command   command
	first     int    // of its words that is srun
	program   int    // of its words that begins what it runs; len(words) when nothing is run
	nodes     string // values of options, as they are written
	tasks     string
	perNode   string
	host      string // -w
	pty       bool
	mpi       bool
	container map[string]string
	others    []string // options that have no meaning here
}

// srunValues are the options of srun that take a value, and the long names of short
// ones that count here.
var (
	srunFlags = strings.Fields(`label unbuffered exclusive overlap overcommit exact pty quiet verbose kill-on-bad-exit no-kill spread-job preserve-env
		multi-prog immediate test-only use-min-nodes contiguous disable-status no-allocate nice oversubscribe help version usage whole
		container-writable container-readonly container-mount-home no-container-mount-home container-remap-root no-container-remap-root
		container-entrypoint no-container-entrypoint no-container-entrypoint-log requeue no-requeue resv-ports get-user-env send-libs`)
	srunShort = map[byte]string{
		'N': "nodes", 'n': "ntasks", 'w': "nodelist", 'c': "cpus-per-task", 'G': "gpus", 'p': "partition", 't': "time", 'J': "job-name", 'o': "output", 'e': "error",
		'i': "input", 'A': "account", 'C': "constraint", 'D': "chdir", 'm': "distribution", 'r': "relative", 'W': "wait", 'q': "quit-on-interrupt", 'x': "exclude",
		'B': "extra-node-info", 'L': "licenses", 'S': "core-spec", 'd': "dependency", 'M': "clusters", 'b': "begin", 'T': "threads", 'a': "array",
		'l': "label", 'u': "unbuffered", 'K': "kill-on-bad-exit", 'k': "no-kill", 'O': "overcommit", 'Q': "quiet", 'v': "verbose", 'X': "disable-status",
		'E': "preserve-env", 'Z': "no-allocate", 's': "oversubscribe", 'I': "immediate", 'V': "version", 'h': "help", 'H': "hold",
	}
	srunFlagLetters = "luKkOQvXEZsIVhHq"
)

// stepOf reads an srun, which may stand behind what starts it.
func stepOf(c command) (step, bool) {
	s := step{command: c, first: -1, container: make(map[string]string)}
	for i, w := range c.words {
		if w.literal && path.Base(w.text) == "srun" {
			s.first = i
			break
		}
		if !w.literal || !slices.Contains([]string{"exec", "nohup", "command", "time", "env", "stdbuf", "-oL", "-eL"}, w.text) && !strings.Contains(w.text, "=") {
			return s, false
		}
	}
	if s.first < 0 {
		return s, false
	}
	s.options()
	return s, true
}

func (s *step) options() {
	words := s.command.words
	i := s.first + 1
	for ; i < len(words); i++ {
		text := words[i].text
		switch {
		case text == "--":
			s.program = i + 1
			return
		case strings.HasPrefix(text, "--"):
			name, value, joined := strings.Cut(text[2:], "=")
			if !joined && !slices.Contains(srunFlags, name) && i+1 < len(words) {
				i++
				value = words[i].text
			}
			s.option(name, value)
		case len(text) > 1 && text[0] == '-':
			letter := text[1]
			name := srunShort[letter]
			value := text[2:]
			if strings.IndexByte(srunFlagLetters, letter) < 0 && value == "" && i+1 < len(words) {
				i++
				value = words[i].text
			}
			if name == "" {
				name = text
			}
			s.option(name, value)
		case !words[i].literal && i+1 < len(words) && optionVariable(text):
			s.others = append(s.others, text)
		default:
			s.program = i
			return
		}
	}
	s.program = i
}

// optionVariable reports whether a word is a variable that holds options by its
// name: $SRUN_ARGS, "${container_opts[@]}".
func optionVariable(text string) bool {
	name := strings.ToUpper(strings.Trim(text, `"${}[@]*`))
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return false
	}
	if strings.Contains(name, "CMD") || strings.Contains(name, "TORCH") || strings.Contains(name, "SCRIPT") || strings.Contains(name, "LAUNCH") {
		return false
	}
	return strings.Contains(name, "SRUN") || strings.Contains(name, "OPT") || strings.Contains(name, "ARGS") || strings.Contains(name, "FLAGS") || strings.Contains(name, "CONTAINER")
}

func (s *step) option(name, value string) {
	switch name {
	case "nodes":
		s.nodes = value
	case "ntasks":
		s.tasks = value
	case "ntasks-per-node", "tasks-per-node":
		s.perNode = value
	case "nodelist":
		s.host = value
	case "pty":
		s.pty = true
	case "mpi":
		s.mpi = value != "none"
	case "container-image", "container-mounts", "container-workdir":
		s.container[name] = value
	default:
		s.others = append(s.others, "--"+strings.TrimPrefix(name, "--"))
	}
}

// runs is the word that says what the step runs, without what only surrounds it.
func (s *step) runs() (at int, name string) {
	words := s.command.words
	for at = s.program; at < len(words); at++ {
		base := path.Base(words[at].text)
		switch {
		case base == "env" || base == "time" || base == "nohup" || base == "exec" || base == "numactl" || base == "stdbuf":
		case at > s.program && (strings.HasPrefix(base, "-") || strings.Contains(base, "=")) && !shells[path.Base(words[at-1].text)]:
		case strings.Contains(words[at].text, "=") && words[at].literal && !strings.HasPrefix(words[at].text, "-"):
		default:
			return at, base
		}
	}
	return at, ""
}

// isPython reports whether a program is a Python interpreter.
func isPython(base string) bool {
	rest, ok := strings.CutPrefix(base, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// torchLauncher reports whether words, from at on, begin a launcher of
// torch.distributed, and behind which word its options stand.
func torchLauncher(words []word, at int) (options int, ok bool) {
	base := path.Base(words[at].text)
	if base == "torchrun" {
		return at + 1, true
	}
	if !isPython(base) {
		return 0, false
	}
	for i := at + 1; i+1 < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
		if words[i].text == "-m" {
			module := words[i+1].text
			return i + 2, module == "torch.distributed.run" || module == "torch.distributed.launch"
		}
	}
	return 0, false
}

// accelerateLauncher is torchLauncher for accelerate.
func accelerateLauncher(words []word, at int) (options int, ok bool) {
	if path.Base(words[at].text) == "accelerate" && at+1 < len(words) && words[at+1].text == "launch" {
		return at + 2, true
	}
	if isPython(path.Base(words[at].text)) {
		for i := at + 1; i+1 < len(words) && strings.HasPrefix(words[i].text, "-"); i++ {
			if words[i].text == "-m" && strings.HasPrefix(words[i+1].text, "accelerate.commands.launch") {
				return i + 2, true
			}
		}
	}
	return 0, false
}
