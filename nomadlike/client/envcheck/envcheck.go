package envcheck

import (
	_ "embed" // for the table and the script
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed table.json
var builtIn []byte

// Script writes what a shell inside a task sees, one fact a line.
//
//go:embed script.sh
var Script string

// Bounds.
const (
	factsMax = 256
	valueMax = 1024 // bytes
	rulesMax = 256
	textMax  = 512 // bytes
)

// Table is the rules, in the order in which findings are told.
type Table struct {
	// Same are the names of facts that all ranks of a gang should have in common;
	// a name that ends in * stands for all that begin so.
	Same  []string `json:"same,omitempty"`
	Rules []Rule   `json:"rules"`
}

// Rule names a likely cause: it is found when all its conditions hold.
type Rule struct {
	ID     string      `json:"id"`
	When   []Condition `json:"when"`
	Text   string      `json:"text"`    // what it means and what to do; {value} is that of the first condition
	TextZh string      `json:"text_zh"` // the same in Chinese
}

// Condition is about one fact. Known Op: "is" (one of Values), "set", "empty",
// "below" and "above" (a number; what is not one, such as unlimited, is neither),
// "foreign" (a list whose entries do not all begin one of the list of fact
// Values[0]; entries that begin with ^ or = are not looked at).
type Condition struct {
	Fact   string   `json:"fact"`
	Op     string   `json:"op"`
	Values []string `json:"values,omitempty"`
}

// Facts are what was seen, by name. A fact that could not be found out is
// missing, one that was looked for in vain is empty.
type Facts map[string]string

// Finding is a rule that was found true.
type Finding struct{ ID, Text, TextZh string }

// Load reads a table; nil data means the one that is built in.
func Load(data []byte) (*Table, error) {
	if data == nil {
		data = builtIn
	}
	var table Table
	if err := json.Unmarshal(data, &table); err != nil {
		return nil, fmt.Errorf("read table of environment checks: %w", err)
	}
	if len(table.Rules) > rulesMax {
		return nil, fmt.Errorf("read table of environment checks: %d rules, at most %d", len(table.Rules), rulesMax)
	}
	if len(table.Same) > rulesMax {
		return nil, fmt.Errorf("read table of environment checks: %d names in same, at most %d", len(table.Same), rulesMax)
	}
	seen := make(map[string]bool)
	for i, rule := range table.Rules {
		if rule.ID == "" || seen[rule.ID] || len(rule.When) == 0 || rule.Text == "" || len(rule.Text) > textMax || len(rule.TextZh) > textMax {
			return nil, fmt.Errorf("read table of environment checks: rule %d (%q) needs an id of its own, conditions and a text", i+1, rule.ID)
		}
		seen[rule.ID] = true
		for _, c := range rule.When {
			if problem := c.problem(); problem != "" {
				return nil, fmt.Errorf("read table of environment checks: rule %q: %s", rule.ID, problem)
			}
		}
	}
	return &table, nil
}

func (c *Condition) problem() string {
	switch c.Op {
	case "set", "empty":
	case "is":
		if len(c.Values) == 0 {
			return "is needs values"
		}
	case "below", "above":
		if len(c.Values) != 1 {
			return c.Op + " needs one number"
		}
		if _, err := strconv.ParseFloat(c.Values[0], 64); err != nil {
			return c.Op + " needs one number"
		}
	case "foreign":
		if len(c.Values) != 1 {
			return "foreign needs the name of a fact"
		}
	default:
		return fmt.Sprintf("op %q is not known", c.Op)
	}
	return ""
}

// Parse reads what Script wrote; other lines are not looked at.
func Parse(output string) Facts {
	facts := make(Facts)
	for line := range strings.Lines(output) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "@@")
		name, value, found := strings.Cut(rest, "=")
		if !ok || !found || name == "" || len(facts) >= factsMax {
			continue
		}
		facts[name] = bounded(value)
	}
	return facts
}

// Common returns the facts that should be the same for all ranks, the first most
// of them by name. Facts that are empty say nothing.
func (t *Table) Common(facts Facts, most int) map[string]string {
	common := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if facts[name] != "" && len(common) < most && slices.ContainsFunc(t.Same, func(same string) bool {
			prefix, all := strings.CutSuffix(same, "*")
			return name == same || all && strings.HasPrefix(name, prefix)
		}) {
			common[name] = facts[name]
		}
	}
	return common
}

// Judge names the rules that are true of facts.
func (t *Table) Judge(facts Facts) []Finding {
	var found []Finding
	for _, rule := range t.Rules {
		if slices.ContainsFunc(rule.When, func(c Condition) bool { return !c.met(facts) }) {
			continue
		}
		value := facts[rule.When[0].Fact]
		fill := func(text string) string { return strings.ReplaceAll(text, "{value}", value) }
		text := fill(rule.Text)
		zh := text
		if rule.TextZh != "" {
			zh = fill(rule.TextZh)
		}
		found = append(found, Finding{ID: rule.ID, Text: text, TextZh: zh})
	}
	return found
}

func (c *Condition) met(facts Facts) bool {
	value, known := facts[c.Fact]
	switch c.Op {
	case "set":
		return value != ""
	case "empty": // variables that are not set have no line
		return value == "" && (known || strings.HasPrefix(c.Fact, "env."))
	case "is":
		return known && slices.ContainsFunc(c.Values, func(v string) bool { return strings.EqualFold(v, value) })
	case "below", "above":
		number, err := strconv.ParseFloat(value, 64)
		bound, boundErr := strconv.ParseFloat(c.Values[0], 64)
		return err == nil && boundErr == nil && (c.Op == "below" && number < bound || c.Op == "above" && number > bound)
	case "foreign":
		return c.foreign(value, facts[c.Values[0]])
	}
	return false
}

// foreign reports whether a list names something that is not there.
func (c *Condition) foreign(value, there string) bool {
	if value == "" || there == "" || strings.HasPrefix(value, "^") {
		return false
	}
	exact := strings.HasPrefix(value, "=")
	for _, entry := range strings.Split(strings.TrimPrefix(value, "="), ",") {
		entry, _, _ = strings.Cut(strings.TrimSpace(entry), ":")
		if entry != "" && !slices.ContainsFunc(strings.Split(there, ","), func(name string) bool {
			return name == entry || !exact && strings.HasPrefix(name, entry)
		}) {
			return true
		}
	}
	return false
}
