package jobspec

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/nomadlike/structs"
)

// ParsePool reads a file with one pool block, with the rules and diagnostics of
// Parse: variables, locals and functions work as in a job file. The pool is
// valid when there are no errors, nil otherwise.
func ParsePool(filename string, src []byte, opts Options) (*structs.Pool, *SourceMap, Diagnostics) {
	p := newParser(opts)
	pool := &structs.Pool{}
	diags := p.read(filename, src, poolNoun, func(block *hclsyntax.Block) {
		p.top(poolNoun, block).read(func(v visitor) { walkPool(v, pool) })
		p.problems(pool.Validate())
	})
	if p.errors > 0 {
		return nil, nil, diags
	}
	return pool, p.places, diags
}

// ParseProject is ParsePool for a file with one project block.
func ParseProject(filename string, src []byte, opts Options) (*structs.Project, *SourceMap, Diagnostics) {
	p := newParser(opts)
	project := &structs.Project{}
	diags := p.read(filename, src, projectNoun, func(block *hclsyntax.Block) {
		p.top(projectNoun, block).read(func(v visitor) { walkProject(v, project) })
		p.problems(project.Validate())
	})
	if p.errors > 0 {
		return nil, nil, diags
	}
	return project, p.places, diags
}
