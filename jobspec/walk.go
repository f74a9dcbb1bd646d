package jobspec

import "nomadlike/nomadlike/structs"

// visitor is what goes over the fields of a noun: a reader fills them from a
// file, a writer writes them into one, a describer lists them. A walk calls it
// for the label of its block, then for the arguments and inner blocks, in the
// order in which they are written.
//
// The walks of this package are the one table of what may stand in a file. A
// field that no walk visits fails TestWalksVisitEveryField.
type visitor interface {
	// label is the label of the block, which fills the field called name; ""
	// means the field that the block itself stands for.
	label(name string, to *string, optional bool)
	argument(name string, v value)
	block(b block)
}

// block is a type of blocks inside of another.
type block struct {
	name  string
	many  bool // it may stand more than once
	slack bool // it is not written when nothing is in it
	count int  // how many of them the noun holds
	// walk goes over the fields of the one with an index below count, or equal to
	// it, which makes another.
	walk func(v visitor, index int)
}

// single is a block that may stand once; its field is nil when it does not.
func single[T any](v visitor, name string, to **T, walk func(visitor, *T)) {
	count := 0
	if *to != nil {
		count = 1
	}
	v.block(block{name: name, count: count, walk: func(v visitor, _ int) {
		if *to == nil {
			*to = new(T)
		}
		walk(v, *to)
	}})
}

// always is a block that may stand once, with fields that are there without it.
func always[T any](v visitor, name string, to *T, walk func(visitor, *T)) {
	v.block(block{name: name, slack: true, count: 1, walk: func(v visitor, _ int) { walk(v, to) }})
}

// named is a block that may stand once and that stands when its label does;
// the label fills the field called field.
func named(v visitor, name, field string, label *string, walk func(visitor)) {
	count := 0
	if *label != "" {
		count = 1
	}
	v.block(block{name: name, count: count, walk: func(v visitor, _ int) {
		v.label(field, label, false)
		walk(v)
	}})
}

// every is a block that may stand any number of times.
func every[T any](v visitor, name string, to *[]T, walk func(visitor, *T)) {
	v.block(block{name: name, many: true, count: len(*to), walk: func(v visitor, index int) {
		if index == len(*to) {
			*to = append(*to, *new(T))
		}
		walk(v, &(*to)[index])
	}})
}

// noun is a kind of file by the type of its one block, with the messages for a
// file that holds none or several.
type noun struct{ kind, missing, twice string }

var (
	jobNoun     = noun{"job", "jobspec.job_missing", "jobspec.job_twice"}
	poolNoun    = noun{"pool", "jobspec.pool_missing", "jobspec.pool_twice"}
	projectNoun = noun{"project", "jobspec.project_missing", "jobspec.project_twice"}
)

func nouns() []noun { return []noun{jobNoun, poolNoun, projectNoun} }

// subject is a noun that nobody has filled yet, and what can be done with it.
type subject struct {
	value    any // *structs.Job and so on
	walk     func(v visitor)
	defaults func() []structs.Default
	validate func() []structs.Problem
}

// empty makes an empty noun of a kind.
func (n noun) empty() subject {
	none := func() []structs.Default { return nil }
	switch n {
	case poolNoun:
		pool := &structs.Pool{}
		return subject{pool, func(v visitor) { walkPool(v, pool) }, none, pool.Validate}
	case projectNoun:
		project := &structs.Project{}
		return subject{project, func(v visitor) { walkProject(v, project) }, none, project.Validate}
	}
	job := &structs.Job{}
	return subject{job, func(v visitor) { walkJob(v, job) }, job.SetDefaults, job.Validate}
}
