package tree

import (
	"path"
	"strings"
)

// Names of the files that say what stays behind. Both are written in git's language.
const (
	GitIgnore  = ".gitignore"
	OwnIgnore  = ".nomadlikeignore" // decides before everything else, and may take back what others leave out
	onlyMarker = "#!only"           // as the first line of the root's OwnIgnore: git's files are not read
)

// ignoreSizeMax bounds one ignore file.
const ignoreSizeMax = 1 << 20 // bytes

// Leavings are what programs leave in directories of code. They stay behind unless an
// OwnIgnore takes them back.
func Leavings() []string {
	return []string{
		".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "*.py[co]", ".ipynb_checkpoints",
		".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", "node_modules", ".DS_Store",
	}
}

// An agent's data directory has the file agentMark and its keys in agentKeys. It stays
// behind like a leaving: whoever tries an agent in a directory of code would send the
// keys of the cluster with the first job.
const (
	agentMark = "agent.lock"
	agentKeys = "identity"
)

// Rule is one line of an ignore file.
type Rule struct {
	Text string `json:"rule"`           // as written
	File string `json:"file,omitempty"` // "" of Leavings
	Line int    `json:"line,omitempty"` // from 1

	pattern  string // without what the flags say
	literal  int    // bytes at its front that stand for themselves
	takes    bool   // "!": what it describes goes along
	dirsOnly bool   // ends in "/"
	anyDepth bool   // has no "/" in it: it is about names
}

// parseRules reads an ignore file as git does.
func parseRules(file string, data []byte) []Rule {
	text := strings.TrimPrefix(string(data), "\uFEFF")
	var rules []Rule
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		if at := strings.IndexByte(line, 0); at >= 0 {
			line = line[:at] // git reads lines as C does
		}
		line = withoutTrailingSpaces(line)
		rules = append(rules, newRule(line, file, number))
	}
	return rules
}

// withoutTrailingSpaces takes away spaces at the end that no "\" stands before.
func withoutTrailingSpaces(line string) string {
	end := -1
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = -1
	}
	if end < 0 {
		return line
	}
	return line[:end]
}

func newRule(line, file string, number int) Rule {
	rule := Rule{Text: line, File: file, Line: number, pattern: line}
	rule.pattern, rule.takes = strings.CutPrefix(rule.pattern, "!")
	literal := strings.IndexAny(rule.pattern, `*?[\`)
	rule.pattern, rule.dirsOnly = strings.CutSuffix(rule.pattern, "/")
	if literal < 0 || literal > len(rule.pattern) {
		literal = len(rule.pattern)
	}
	rule.literal = literal
	rule.anyDepth = !strings.Contains(rule.pattern, "/")
	return rule
}

// describes reports whether the rule is about a name, given relative to the directory of
// the rule's file.
func (r *Rule) describes(name string, dir bool) bool {
	if r.dirsOnly && !dir {
		return false
	}
	if r.anyDepth {
		base := name[strings.LastIndexByte(name, '/')+1:]
		if r.literal == len(r.pattern) {
			return base == r.pattern
		}
		return wildmatch(r.pattern, base, false)
	}
	pattern, literal := r.pattern, r.literal
	if pattern[0] == '/' {
		pattern, literal = pattern[1:], literal-1
	}
	// What stands for itself is compared first, and the rest as a pattern of its own:
	// git does, and so "a**/b" is about any depth.
	if literal > len(name) || pattern[:literal] != name[:literal] {
		return false
	}
	return wildmatch(pattern[literal:], name[literal:], true)
}

// ruleFile is an ignore file, with its directory relative to the outermost one, "" for
// that one itself.
type ruleFile struct {
	base  string
	rules []Rule
}

// judgement is what is known of ignore files on the way down to a directory. The later
// of two files decides, and in a file the later line.
type judgement struct {
	own      []ruleFile
	leavings []Rule
	git      []ruleFile
	noGit    bool // the root says so
}

// with returns the judgement with one more file each; the one it was stays as it is.
func (j judgement) with(own, git ruleFile) judgement {
	if len(own.rules) > 0 {
		j.own = append(j.own[:len(j.own):len(j.own)], own)
	}
	if len(git.rules) > 0 {
		j.git = append(j.git[:len(j.git):len(j.git)], git)
	}
	return j
}

// decisive is the rule that decides over a name, given relative to the outermost
// directory: own files first, then leavings, then git's files. nil: no rule is about it.
func (j judgement) decisive(name string, dir bool) *Rule {
	if rule := lastOf(j.own, name, dir); rule != nil {
		return rule
	}
	for i := range j.leavings {
		if j.leavings[i].describes(path.Base(name), dir) {
			return &j.leavings[i]
		}
	}
	return lastOf(j.git, name, dir)
}

func lastOf(files []ruleFile, name string, dir bool) *Rule {
	for i := len(files) - 1; i >= 0; i-- {
		file := &files[i]
		within := name
		if file.base != "" {
			within = name[len(file.base)+1:] // only files of the name's own directories are asked
		}
		for k := len(file.rules) - 1; k >= 0; k-- {
			if file.rules[k].describes(within, dir) {
				return &file.rules[k]
			}
		}
	}
	return nil
}
