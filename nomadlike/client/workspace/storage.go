package workspace

import (
	"path"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Dir is where a task finds its data.
const Dir = structs.WorkspaceDir

// Limits of what a node's configuration may hold.
const (
	StoragesMax = 64
	PathMax     = 1024 // bytes of a template
)

// Storage is a place for data that a node's administrator has named.
type Storage struct {
	Name string
	// Path is a template of an absolute path, in which {user}, {project},
	// {kind}, {from}, {name} and {version} stand for what a job says. A name, and
	// a version if there is one, are added when the template does not have them.
	Path     string
	Serves   []string // structs.StorageKinds; none means all that it can
	ReadOnly bool
	// Remote says that the data lies on a server: Path is below it, and what a
	// job names is copied to the node. Nothing is written there.
	Remote bool
}

// serves reports whether the storage has data of a kind.
func (s *Storage) serves(kind string) bool {
	if s.Remote && !slices.Contains(RemoteKinds(), kind) {
		return false
	}
	return len(s.Serves) == 0 || slices.Contains(s.Serves, kind)
}

// RemoteKinds lists what a storage on a server can serve: what is only read.
func RemoteKinds() []string {
	return []string{structs.StorageAlgorithm, structs.StorageDataset, structs.StorageModel}
}

// ServesOutput reports whether root is a directory that Plan may take for the root of
// an output in one of the storages.
func ServesOutput(storages []Storage, root string) bool {
	for i := range storages {
		if s := &storages[i]; !s.Remote && s.serves(structs.StorageOutput) && fits(s.Path, root) {
			return true
		}
	}
	return false
}

// fits reports whether root is a template filled in up to what a job names.
func fits(template, root string) bool {
	if path.Clean(root) != root || !path.IsAbs(root) {
		return false
	}
	elements := strings.Split(root, "/")
	for wanted := range strings.SplitSeq(template, "/") {
		if strings.Contains(wanted, "{version}") { // an output has none
			continue
		}
		if wanted == "{name}" {
			break
		}
		if len(elements) == 0 {
			return false
		}
		element := elements[0]
		elements = elements[1:]
		if ok, err := path.Match(globOf(wanted), element); err != nil || !ok {
			return false
		}
	}
	return len(elements) == 0
}

// globOf makes a pattern of an element of a template.
func globOf(element string) string {
	for _, special := range []string{`\`, "*", "?", "["} {
		element = strings.ReplaceAll(element, special, `\`+special)
	}
	for _, word := range placeholders() {
		element = strings.ReplaceAll(element, word, "?*")
	}
	return element
}

// Offers lists what the storages serve, as structs.Node.Storages has it.
func Offers(storages []Storage) []string {
	var offers []string
	for i := range storages {
		for _, kind := range structs.StorageKinds() {
			if storages[i].serves(kind) && !(storages[i].ReadOnly && kind == structs.StorageOutput) {
				offers = append(offers, kind+"/"+storages[i].Name)
			}
		}
	}
	return offers
}

// placeholders are the words that a template may have in braces.
func placeholders() []string {
	return []string{"{user}", "{project}", "{kind}", "{from}", "{name}", "{version}"}
}

// TemplateProblem reports what is wrong with a template, as an id of the
// catalogue, and which part of it; "" when nothing is. Pure.
func TemplateProblem(template string) (id, part string) {
	if !path.IsAbs(template) || path.Clean(template) != template || template == "/" || len(template) > PathMax || strings.ContainsRune(template, 0) {
		return "agent.config.storage_path", template
	}
	if strings.HasPrefix(template, "/{") {
		return "agent.config.storage_path", template
	}
	return elementProblem(template)
}

// RemoteProblem does the same with the template of a storage on a server: it
// begins with "/", and may be nothing else.
func RemoteProblem(template string) (id, part string) {
	if !path.IsAbs(template) || path.Clean(template) != template || len(template) > PathMax || strings.ContainsRune(template, 0) {
		return "agent.config.storage_prefix", template
	}
	if template == "/" {
		return "", ""
	}
	return elementProblem(template)
}

// elementProblem looks at the placeholders of a template.
func elementProblem(template string) (id, part string) {
	for element := range strings.SplitSeq(template[1:], "/") {
		if slices.Contains(placeholders(), element) {
			continue
		}
		rest := element
		for _, word := range placeholders() {
			rest = strings.ReplaceAll(rest, word, "")
		}
		if strings.ContainsAny(rest, "{}") {
			return "agent.config.storage_word", element
		}
		// A name may have several elements, which "a{name}" cannot be.
		if strings.Contains(element, "{name}") {
			return "agent.config.storage_name", element
		}
	}
	return "", ""
}
