package importer

import (
	"path"
	"strings"
)

// slurmMark begins a line of directives.
const slurmMark = "#SBATCH"

func isSlurm(name string, src *source) bool {
	switch path.Ext(name) {
	case ".sbatch", ".slurm":
		return true
	}
	for _, line := range src.lines {
		if strings.HasPrefix(line, slurmMark) {
			return true
		}
	}
	return false
}

// slurm is a batch script of Slurm, as it is read.
type slurm struct {
	*draft
	given  map[string]directive // by the name of the option: the last one counts
	ask    slurmAsk
	script *script
}

// directive is one option of a line of directives.
type directive struct {
	origin
	name  string // long
	value string
}

// readSlurm reads directives, works out what each node has to give, and takes
// the rest of the script for what runs.
func readSlurm(d *draft) {
	s := &slurm{draft: d, given: make(map[string]directive)}
	s.encoding()
	s.directives()
	if len(d.problems) > 0 {
		return
	}
	s.size()
	for _, one := range slurmTable() {
		if given, ok := s.given[one.name]; ok && one.take != nil {
			one.take(s, given)
		}
	}
	s.body()
	s.say(check, origin{}, "import.slurm.environment")
}

// encoding says what Slurm would have refused.
func (s *slurm) encoding() {
	if s.src.crlf {
		s.say(changed, origin{line: 1}, "import.slurm.crlf")
	}
	if s.src.bom {
		s.say(changed, origin{line: 1}, "import.bom")
	}
}

// directives reads the lines of directives in front of the first command, and
// names those behind it, which Slurm does not see.
func (s *slurm) directives() {
	ended := false
	for i, line := range s.src.lines {
		trimmed := strings.TrimSpace(line)
		at := origin{line: i + 1, text: line}
		switch {
		case strings.HasPrefix(line, slurmMark) && ended:
			s.say(lost, at, "import.slurm.behind")
		case strings.HasPrefix(line, slurmMark):
			s.line(at, strings.TrimPrefix(line, slurmMark))
		case strings.HasPrefix(trimmed, slurmMark):
			s.say(lost, at, "import.slurm.indented")
		case foreignMark(line) != "":
			s.say(lost, at, "import.slurm.foreign", "mark", foreignMark(line))
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		default:
			ended = true
		}
	}
}

// foreignMark is the mark of directives that are not options of sbatch.
func foreignMark(line string) string {
	for _, mark := range []string{"#BB", "#DW", "#PBS", "#BSUB", "#SLURM", "#COBALT"} {
		if rest, ok := strings.CutPrefix(line, mark); ok && (rest == "" || rest[0] == ' ') {
			return mark
		}
	}
	return ""
}

// line reads one line of directives, which may hold several options.
func (s *slurm) line(at origin, text string) {
	words, open := slurmWords(text)
	if open {
		s.say(lost, at, "import.slurm.quote")
		return
	}
	if len(words) == 1 && (words[0] == "hetjob" || words[0] == "packjob") || len(words) > 0 && words[0] == ":" {
		s.refuse(at.line, "import.slurm.hetjob")
		return
	}
	if len(words) == 0 {
		s.say(needless, at, "import.slurm.nothing")
	}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case strings.HasPrefix(word, "--") && len(word) > 2:
			name, value, joined := strings.Cut(word[2:], "=")
			option, problem := longOption(name)
			if problem != "" {
				s.say(lost, origin{at.line, word}, problem, "option", "--"+name)
				if !joined && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
					s.say(lost, origin{at.line, words[0]}, "import.slurm.unknown_value", "option", "--"+name)
					words = words[1:]
				}
				continue
			}
			words = s.option(at.line, "--"+name, option, value, joined, words)
		case len(word) > 1 && word[0] == '-':
			option, ok := shortOption(word[1])
			if !ok {
				s.say(lost, origin{at.line, word}, "import.slurm.unknown", "option", word)
				continue
			}
			value := strings.TrimPrefix(word[2:], "=")
			if option.value == valueNone && word[2:] != "" { // -Hv
				words = append([]string{"-" + word[2:]}, words...)
				value = ""
			}
			words = s.option(at.line, word[:2], option, value, value != "", words)
		default:
			s.say(lost, origin{at.line, word}, "import.slurm.stray")
		}
	}
}

// option takes one option with its value, which may be the next word.
func (s *slurm) option(line int, shown string, option slurmOption, value string, joined bool, words []string) []string {
	text := shown
	switch {
	case option.value == valueNeeded && !joined && len(words) == 0:
		s.say(lost, origin{line, shown}, "import.slurm.value_missing", "option", shown)
		return words
	case option.value == valueNeeded && !joined:
		value, words = words[0], words[1:]
		text += " " + value
	case joined && strings.HasPrefix(shown, "--"):
		text += "=" + value
	case joined:
		text += " " + value
	}
	given := directive{origin{line, text}, option.name, value}
	if before, twice := s.given[option.name]; twice {
		s.say(needless, before.origin, "import.slurm.overridden", "line", line)
	}
	s.given[option.name] = given
	switch {
	case strings.Contains(value, "$"):
		s.say(check, given.origin, "import.slurm.variable")
	case option.take == nil && option.text != "":
		s.say(option.kind, given.origin, option.text, "value", value)
	}
	return words
}

// slurmWords parts a line of directives into words, as Slurm does: quotes hold
// blanks, # begins a comment.
func slurmWords(text string) (words []string, open bool) {
	var word strings.Builder
	inside := false
	var quote rune
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inside = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inside = r, true
		case r == '#' && !inside:
			return words, false
		case r == ' ' || r == '\t':
			if inside {
				words = append(words, word.String())
				word.Reset()
				inside = false
			}
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words, quote != 0
}

// longOption finds an option by its name or a beginning of it that no other has,
// as getopt_long does; problem is the id of what is wrong.
func longOption(name string) (option slurmOption, problem string) {
	if name == "" {
		return slurmOption{}, "import.slurm.unknown"
	}
	var found []slurmOption
	for _, one := range slurmTable() {
		for _, known := range append([]string{one.name}, one.also...) {
			if known == name {
				return one, ""
			}
			if strings.HasPrefix(known, name) && (len(found) == 0 || found[len(found)-1].name != one.name) {
				found = append(found, one)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], ""
	case 0:
		return slurmOption{}, "import.slurm.unknown"
	default:
		return slurmOption{}, "import.slurm.ambiguous"
	}
}

func shortOption(letter byte) (slurmOption, bool) {
	for _, one := range slurmTable() {
		if one.short == letter {
			return one, true
		}
	}
	return slurmOption{}, false
}
