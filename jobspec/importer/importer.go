package importer

import (
	"path"
	"slices"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/jobspec"
)

// Format is what a file is for another system.
type Format string

// The formats that can be imported.
const (
	FormatSlurm      Format = "sbatch"     // a batch script of Slurm
	FormatKubernetes Format = "kubernetes" // a manifest: PyTorchJob, TFJob, MPIJob, Job, Volcano's Job
	FormatParams     Format = "params"     // key=value, as training platforms have them
)

// Formats lists them, as they are named on the command line.
func Formats() []string {
	var names []string
	for _, one := range readers() {
		names = append(names, string(one.format))
	}
	return names
}

// reader is what one format needs.
type reader struct {
	format Format
	is     func(name string, src *source) bool // reports whether a file looks like one
	read   func(d *draft)
}

func readers() []reader {
	return []reader{
		{FormatSlurm, isSlurm, readSlurm},
		{FormatKubernetes, isKubernetes, readKubernetes},
		{FormatParams, isParams, readParams},
	}
}

// Options say how a file is read.
type Options struct {
	Format   Format            // "" looks at the file
	Language messages.Language // of the comments
	Name     string            // of the job; "" takes the file's
	Jobs     map[string]string // what jobs of the other system are called here, for dependencies
}

// Result is a job file that was made.
type Result struct {
	Format  Format
	File    []byte // HCL
	Lost    int    // what could not be kept
	Changed int    // what means something else now, or is to be looked at
}

// Import makes a job file of the file of another system. name is what it is
// called; nothing is opened. Without a result the diagnostics say what is wrong,
// with the line. Pure; any goroutine may call it.
func Import(name string, text []byte, opts Options) (*Result, jobspec.Diagnostics) {
	src, problem := newSource(name, text)
	if problem != nil {
		return nil, jobspec.Diagnostics{problem}
	}
	chosen, problem := readerOf(src, opts.Format)
	if problem != nil {
		return nil, jobspec.Diagnostics{problem}
	}
	d := newDraft(src, chosen.format, opts)
	chosen.read(d)
	if len(d.problems) > 0 {
		return nil, d.problems
	}
	return d.finish()
}

// readerOf is the reader of a format, or of that which the file looks like.
func readerOf(src *source, format Format) (reader, *jobspec.Diagnostic) {
	for _, one := range readers() {
		if one.format == format || format == "" && one.is(path.Base(src.name), src) {
			return one, nil
		}
	}
	known := strings.Join(Formats(), ", ")
	if format != "" {
		return reader{}, src.problem(0, "import.format", "import.format.hint", "format", string(format), "known", known)
	}
	return reader{}, src.problem(0, "import.unknown", "import.unknown.hint", "known", known)
}

// Looks reports which of the formats a file looks like, and "" for none.
func Looks(name string, text []byte) Format {
	src, problem := newSource(name, text)
	if problem != nil {
		return ""
	}
	for _, one := range readers() {
		if one.is(path.Base(name), src) {
			return one.format
		}
	}
	return ""
}

// Known reports whether there is a format of that name.
func Known(name string) bool { return slices.Contains(Formats(), name) }
