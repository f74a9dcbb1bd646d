package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// configFileMax bounds one configuration file.
const configFileMax = 1 << 20 // bytes

// Error reports everything that is wrong with a configuration.
type Error struct {
	diagnostics hcl.Diagnostics
	files       map[string]*hcl.File
	config      Config
}

// Config is what could be read of the configuration: good for a look at the
// machine, not for a start.
func (e *Error) Config() Config { return e.config }

// Problems lists what is wrong, one text each.
func (e *Error) Problems() []string {
	texts := make([]string, len(e.diagnostics))
	for i, diagnostic := range e.diagnostics {
		texts[i] = diagnostic.Error()
	}
	return texts
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	return strings.Join(e.Problems(), "\n")
}

// Render writes the problems with file, line and snippet, for a terminal of
// width columns (0: no wrapping).
func (e *Error) Render(w io.Writer, width uint, color bool) error {
	if err := hcl.NewDiagnosticTextWriter(w, e.files, width, color).WriteDiagnostics(e.diagnostics); err != nil {
		return fmt.Errorf("write diagnostics: %w", err)
	}
	return nil
}

// Load reads configuration files, or the *.hcl files of directories in the
// order of their names, merges them in order, puts flags over them and fills
// in what is left. Everything that is wrong comes as one *ConfigError in
// language.
func Load(paths []string, flags Settings, language messages.Language) (Config, error) {
	return load(paths, flags, language, machine())
}

func load(paths []string, flags Settings, language messages.Language, env surroundings) (Config, error) {
	loader := newLoader(language)
	merged := Settings{}
	files, unread := expand(paths)
	for _, file := range files {
		layer, err := loader.file(file)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		merged = merged.Over(layer)
	}
	config, problems := resolve(merged.Over(flags), env)
	config.Files = append(config.Files, files...)
	if loader.diagnostics.HasErrors() { // else values are missing and their defaults would be blamed
		problems = slices.DeleteFunc(problems, func(p problem) bool { _, written := loader.ranges[p.path]; return !written })
	}
	loader.explain(problems)
	for _, err := range unread {
		loader.diagnostics = append(loader.diagnostics, &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  messages.Textf(language, "agent.config.unreadable", "reason", err),
		})
	}
	if loader.diagnostics.HasErrors() {
		return Config{}, &Error{diagnostics: loader.diagnostics, files: loader.parser.Files(), config: config}
	}
	return config, nil
}

// expand replaces directories by their *.hcl files.
func expand(paths []string) (files []string, unread []error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			unread = append(unread, fmt.Errorf("read configuration: %w", err))
			continue
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := filepath.Glob(filepath.Join(EscapeGlob(path), "*.hcl"))
		if err != nil {
			unread = append(unread, fmt.Errorf("list configuration directory %s: %w", path, err))
		}
		sort.Strings(found)
		files = append(files, found...)
	}
	return files, unread
}

// EscapeGlob writes a path as a pattern that it alone matches.
func EscapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// loader collects what the files say and where they say it.
type loader struct {
	parser      *hclparse.Parser
	language    messages.Language
	diagnostics hcl.Diagnostics
	ranges      map[string]hcl.Range // setting path -> where it was set last
}

func newLoader(language messages.Language) *loader {
	return &loader{parser: hclparse.NewParser(), language: language, ranges: map[string]hcl.Range{}}
}

func (l *loader) file(path string) (Settings, error) {
	source, err := readBounded(path)
	if err != nil {
		return Settings{}, err
	}
	return l.layer(path, source), nil
}

// layer reads the text of one file.
func (l *loader) layer(name string, source []byte) Settings {
	var layer Settings
	file, diagnostics := l.parser.ParseHCL(source, name)
	l.diagnostics = append(l.diagnostics, diagnostics...)
	if diagnostics.HasErrors() {
		return layer
	}
	l.read(file.Body, func(v visitor) { walkSettings(v, &layer, new(Config)) })
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		l.locate("", body)
	}
	return layer
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	source, err := io.ReadAll(io.LimitReader(file, configFileMax+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(source) > configFileMax {
		return nil, fmt.Errorf("read configuration %s: over the limit of %d bytes", path, configFileMax)
	}
	return source, nil
}

func (l *loader) locate(prefix string, body *hclsyntax.Body) {
	for name, attribute := range body.Attributes {
		l.ranges[prefix+name] = attribute.Expr.Range()
	}
	count := map[string]int{}
	for _, block := range body.Blocks {
		path := prefix + block.Type
		l.ranges[path] = block.DefRange()
		l.locate(path+".", block.Body)
		numbered := structs.IndexedPath(path, count[block.Type])
		l.ranges[numbered] = block.DefRange()
		l.locate(numbered+".", block.Body)
		count[block.Type]++
	}
}

// explain turns problems into diagnostics at the place where the value was
// set; a value of a flag or a default has none.
func (l *loader) explain(problems []problem) {
	for _, p := range problems {
		summary := messages.Textf(l.language, p.id, p.args...)
		if p.path != "" {
			summary = p.path + ": " + summary
		}
		diagnostic := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary}
		if hint := p.id + ".hint"; messages.Has(l.language, hint) {
			diagnostic.Detail = messages.Textf(l.language, hint, p.args...)
		}
		if at, ok := l.ranges[p.path]; ok {
			diagnostic.Subject = &at
		}
		l.diagnostics = append(l.diagnostics, diagnostic)
	}
}
