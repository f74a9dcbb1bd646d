package jobspec

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"nomadlike/nomadlike/structs"
)

// SourceMap reports where in a job file each field of the job came from. It is
// immutable once Parse has returned it; any goroutine may use it.
type SourceMap struct {
	file   *file
	places map[string]hcl.Range // by field path, in the parser's offsets
	limits Limits
}

func newSourceMap(f *file, limits Limits) *SourceMap {
	return &SourceMap{file: f, places: make(map[string]hcl.Range), limits: limits}
}

// note records where the field at path stands.
func (m *SourceMap) note(path string, at hcl.Range) { m.places[path] = at }

// Lookup returns the range of a field, such as "resources[1].device[0].count" or
// task.env["LR"]. A field that was left out has the range of the block that it
// belongs to, at last that of the job's header.
func (m *SourceMap) Lookup(path string) Range {
	for {
		if at, ok := m.places[path]; ok {
			return m.file.src.rangeOf(at)
		}
		if path == "" {
			return Range{File: m.file.src.name}
		}
		path = parentPath(path)
	}
}

// parentPath cuts the last step off a field path.
func parentPath(path string) string {
	cut := strings.LastIndexByte(path, '.')
	if strings.HasSuffix(path, `"]`) {
		cut = strings.Index(path, `["`) // keys may hold dots and brackets; no map holds another
	} else if strings.HasSuffix(path, "]") {
		cut = strings.LastIndexByte(path, '[')
	}
	return path[:max(cut, 0)]
}

// Diagnose turns problems of the job into diagnostics with lines, for instance those of
// (*structs.Job).NotAvailable.
func (m *SourceMap) Diagnose(problems []structs.Problem, severity Severity) Diagnostics {
	var out Diagnostics
	for i, problem := range problems {
		if i > m.limits.Diagnostics {
			return out.sorted(m.limits.Diagnostics, len(problems)-i)
		}
		d := m.file.diagnostic(severity, m.Lookup(problem.Path), problem.ID, problem.HintID, problem.Params)
		d.Path = problem.Path
		out = append(out, d)
	}
	return out.sorted(m.limits.Diagnostics, 0)
}
