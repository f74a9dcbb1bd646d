package importer

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of YAML: aliases name parts that are written once, so that a short file may
// stand for more than any memory holds.
const (
	yamlNodesMax     = 20_000 // looked at, aliases as often as they are named
	yamlDocumentsMax = 64
)

// documents reads the documents of a YAML file; on an error it has been told.
func (d *draft) documents() (all []*yaml.Node, ok bool) {
	decoder := yaml.NewDecoder(strings.NewReader(d.src.text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if err != nil {
			if err.Error() == "EOF" {
				return all, true
			}
			d.refuse(yamlLine(err), "import.yaml.syntax", "problem", strings.TrimPrefix(err.Error(), "yaml: "))
			return nil, false
		}
		if len(node.Content) == 1 {
			all = append(all, node.Content[0])
		}
		if len(all) > yamlDocumentsMax {
			d.refuse(node.Line, "import.yaml.documents", "max", yamlDocumentsMax)
			return nil, false
		}
		if budget := yamlNodesMax; !counts(&node, &budget) {
			d.refuse(max(node.Line, 1), "import.yaml.bomb", "max", yamlNodesMax)
			return nil, false
		}
	}
}

// yamlLine is the line that an error of the library names, or 1.
func yamlLine(err error) int {
	_, rest, found := strings.Cut(err.Error(), "line ")
	n := 0
	for _, r := range rest {
		if r < '0' || r > '9' || n > 1<<20 {
			break
		}
		n = n*10 + int(r-'0')
	}
	if !found || n == 0 {
		return 1
	}
	return n
}

// counts walks over a node as often as aliases name it, and reports whether that
// ends within the budget.
func counts(node *yaml.Node, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	if node.Kind == yaml.AliasNode {
		return counts(node.Alias, budget)
	}
	for _, inner := range node.Content {
		if !counts(inner, budget) {
			return false
		}
	}
	return true
}

// object is a mapping of YAML that remembers what of it was read.
type object struct {
	d    *draft
	path string
	keys []string
	at   map[string]*yaml.Node
	used map[string]bool
	line map[string]int
}

// object reads a node as a mapping; what is none has no keys.
func (d *draft) object(node *yaml.Node, path string) *object {
	o := &object{d: d, path: path, at: make(map[string]*yaml.Node), used: make(map[string]bool), line: make(map[string]int)}
	o.merge(node)
	return o
}

func (o *object) merge(node *yaml.Node) {
	if node = resolved(node); node == nil || node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if key == "<<" {
			for _, one := range append([]*yaml.Node{value}, listOf(value)...) {
				o.merge(one)
			}
			continue
		}
		if _, twice := o.at[key]; !twice {
			o.keys = append(o.keys, key)
		}
		o.at[key], o.line[key] = resolved(value), node.Content[i].Line
	}
}

func resolved(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func listOf(node *yaml.Node) []*yaml.Node {
	if node = resolved(node); node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	return node.Content
}

// origin is where a key stands.
func (o *object) origin(key string) origin {
	text := o.path + key
	if at := strings.LastIndex(text, "template.spec."); at >= 0 { // the rest of a long path says it
		text = text[at+len("template.spec."):]
	}
	if node := o.at[key]; node != nil && node.Kind == yaml.ScalarNode {
		text += ": " + node.Value
	}
	return origin{o.line[key], text}
}

// text is the value of a key that is no list and no mapping.
func (o *object) text(key string) (string, origin, bool) {
	node := o.at[key]
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return "", origin{}, false
	}
	o.used[key] = true
	return node.Value, o.origin(key), true
}

// whole is the value of a key that is a whole number from 0 on.
func (o *object) whole(key string) (int, origin, bool) {
	text, from, ok := o.text(key)
	if !ok {
		return 0, from, false
	}
	n, err := strconv.Atoi(text)
	if ok = err == nil && n >= 0 && n <= math.MaxInt32; !ok {
		o.d.say(lost, from, "import.slurm.bad_value", "value", text)
	}
	return n, from, ok
}

// inner is the value of a key as a mapping.
func (o *object) inner(key string) *object {
	if node := o.at[key]; node != nil && node.Kind == yaml.MappingNode {
		o.used[key] = true
	}
	return o.d.object(o.at[key], o.path+key+".")
}

// list is the value of a key as a list of mappings.
func (o *object) list(key string) []*object {
	var all []*object
	for _, node := range listOf(o.at[key]) {
		all = append(all, o.d.object(node, o.path+key+"[]."))
	}
	if all != nil {
		o.used[key] = true
	}
	return all
}

// words is the value of a key as a list of texts.
func (o *object) words(key string) []string {
	var all []string
	for _, node := range listOf(o.at[key]) {
		if node = resolved(node); node.Kind == yaml.ScalarNode {
			all = append(all, node.Value)
		}
	}
	if all != nil {
		o.used[key] = true
	}
	return all
}

// says tells what becomes of a key, if it is there.
func (o *object) says(k kind, id string, keys ...string) {
	for _, key := range keys {
		if _, there := o.at[key]; there && !o.used[key] {
			o.used[key] = true
			o.d.say(k, o.origin(key), id)
		}
	}
}

// rest names what nobody has read.
func (o *object) rest() { o.says(lost, "import.yaml.unused", o.keys...) }
