package jobspec

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"nomadlike/nomadlike/structs"
)

// Differences returns in what two jobs differ, in the words and the order of the job
// file. Names and what was fixed at admission are left out. Data, mounts, hooks and
// the like are told apart by their labels, so that their order means nothing; of
// commands that differ in values of their options only, each option is one
// difference. Pure; any goroutine may call it.
func Differences(before, after *structs.Job) []structs.Difference {
	a, b := listed(before), listed(after)
	var list []structs.Difference
	for _, path := range merged(a.order, b.order) {
		was, is := a.texts[path], b.texts[path]
		switch {
		case was == is:
		case isCommand(path):
			list = append(list, commandDifferences(path, was, is)...)
		default:
			list = append(list, structs.Difference{Path: path, Before: was, After: is})
		}
	}
	return list
}

// merged is every path of two lists, each where the job file has it.
func merged(a, b []string) []string {
	var all []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && !slices.Contains(a, b[0]):
			all, b = append(all, b[0]), b[1:]
		case len(b) == 0 || a[0] != b[0]:
			all = append(all, a[0])
			if at := slices.Index(b, a[0]); at >= 0 {
				b = slices.Delete(slices.Clone(b), at, at+1)
			}
			a = a[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	return all
}

// listing is what a job says, by path, in the order of the job file.
type listing struct {
	order []string
	texts map[string]string
}

func (l *listing) say(path, text string) {
	if text == "" {
		return
	}
	if _, said := l.texts[path]; !said {
		l.order = append(l.order, path)
	}
	l.texts[path] = text
}

func listed(job *structs.Job) *listing {
	if job.Elastic == nil && job.ElasticRule() != nil { // of protocol 15 and before
		today := *job
		today.Elastic = job.ElasticRule()
		job = &today
	}
	all := &listing{texts: make(map[string]string)}
	walkJob(&lister{into: all, nameless: true}, job)
	return all
}

// lister lists what a noun says: the visitor that takes its fields out as texts.
type lister struct {
	path     string
	nameless bool // the label tells blocks apart and is no value
	into     *listing
}

func (l *lister) label(name string, from *string, _ bool) {
	if !l.nameless {
		l.into.say(fieldPath(l.path, name), *from)
	}
}

func (l *lister) argument(name string, v value) {
	path := fieldPath(l.path, name)
	if path == "time_limit.limit" {
		path = "time_limit" // one value, whether it stands in a block or not
	}
	switch {
	case v.left || path == "note": // a note is of its own job
	case v.kind == kindTable && len(v.to) > 1:
		table, uses := v.to[0].(*map[string]string), v.to[1].(*[]structs.SecretUse)
		texts := maps.Clone(*table)
		for _, use := range *uses {
			if use.Var != "" {
				if texts == nil {
					texts = make(map[string]string)
				}
				texts[use.Var] = secretText(use.Name)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			l.into.say(structs.KeyedPath(path, key), texts[key])
		}
	case v.kind == kindTable:
		if table, ok := v.to[0].(*map[string]string); ok {
			for _, key := range slices.Sorted(maps.Keys(*table)) {
				l.into.say(structs.KeyedPath(path, key), (*table)[key])
			}
		}
	default:
		l.into.say(path, written(name, v))
	}
}

// written is the value of an argument as the job file has it; texts without quotes.
func written(name string, v value) string {
	switch to := v.to[0].(type) {
	case *string:
		return *to
	case **structs.Workdir:
		return directoryShown(*to)
	}
	block := hclwrite.NewBlock("value", nil)
	v.write(writer{block}, name)
	attribute := block.Body().GetAttribute(name)
	if attribute == nil {
		return ""
	}
	text := strings.TrimSpace(string(attribute.Expr().BuildTokens(nil).Bytes()))
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// byLabel reports whether blocks of a type are told apart by their labels.
func byLabel(name string) bool {
	switch name {
	case "algorithm", "dataset", "model", "volume", "mount", "port", "hook", "machine", "subtask":
		return true
	}
	return false
}

func (l *lister) block(b block) {
	path := fieldPath(l.path, b.name)
	seen := make(map[string]bool)
	for index := range b.count {
		at := path
		named := ""
		if b.many && byLabel(b.name) {
			named = labelAt(b, index)
		}
		switch {
		case named != "" && !seen[named]:
			seen[named] = true
			at = structs.KeyedPath(path, named)
			l.into.say(at, named)
		case index > 0:
			named, at = "", structs.IndexedPath(path, index)
		default:
			named = ""
		}
		b.walk(&lister{path: at, nameless: named != "", into: l.into}, index)
	}
}

// labelAt is the label of one block.
func labelAt(b block, index int) string {
	found := labelFinder("")
	b.walk(&found, index)
	return string(found)
}

// labelFinder keeps the label of the block that it visits.
type labelFinder string

func (f *labelFinder) label(_ string, from *string, _ bool) { *f = labelFinder(*from) }
func (f *labelFinder) argument(string, value)               {}
func (f *labelFinder) block(block)                          {}

// isCommand reports whether the value at a path is a line of a shell.
func isCommand(path string) bool {
	return path == "task.command" || path == "task.arguments" || strings.HasSuffix(path, ".command")
}

// commandDifferences tells the options apart in whose values two lines differ; where
// more differs, or a line is more than words, the lines as a whole are told.
func commandDifferences(path, before, after string) []structs.Difference {
	whole := []structs.Difference{{Path: path, Before: before, After: after}}
	a, aRest, aOK := optionsOf(before)
	b, bRest, bOK := optionsOf(after)
	if !aOK || !bOK || !slices.Equal(aRest, bRest) {
		return whole
	}
	var list []structs.Difference
	for _, name := range merged(a.order, b.order) {
		if a.texts[name] != b.texts[name] {
			list = append(list, structs.Difference{Path: path + " " + name, Before: a.texts[name], After: b.texts[name]})
		}
	}
	if len(list) == 0 {
		return whole // only the space or the order differs
	}
	return list
}

// optionGiven is what an option without a value says.
const optionGiven = "✓"

// optionsOf parts a line into its options, --name value, --name=value or NAME=value,
// and the other words. It is not ok when an option stands twice, or when words are
// quoted: then nobody but a shell knows where one ends.
func optionsOf(line string) (options *listing, rest []string, ok bool) {
	options = &listing{texts: make(map[string]string)}
	for _, shell := range []string{"bash -c '", "sh -c '", `bash -c "`, `sh -c "`} {
		if inner, found := strings.CutPrefix(line, shell); found && strings.HasSuffix(inner, shell[len(shell)-1:]) {
			line, rest = inner[:len(inner)-1], []string{shell}
			break
		}
	}
	if strings.ContainsAny(line, "'\"`") {
		return options, nil, false
	}
	words := slices.DeleteFunc(strings.Fields(line), func(word string) bool { return word == `\` }) // a line that goes on
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, value, hasValue := strings.Cut(word, "=")
		switch {
		case hasValue && name != "":
		case strings.HasPrefix(word, "-") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && !strings.Contains(words[i+1], "="):
			i++
			value = words[i]
		case strings.HasPrefix(word, "-"):
			value = optionGiven
		default:
			rest = append(rest, word)
			continue
		}
		if _, twice := options.texts[name]; twice || value == "" {
			return options, nil, false
		}
		options.say(name, value)
	}
	return options, rest, true
}
