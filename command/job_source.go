package command

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/structs"
)

// sourceFlags are the flags of every verb that reads a job file.
type sourceFlags struct {
	vars     listFlag
	varFiles listFlag
}

func declareSource(set *flag.FlagSet) *sourceFlags {
	flags := &sourceFlags{}
	set.Var(&flags.vars, "var", "cli.flag.var")
	set.Var(&flags.varFiles, "var-file", "cli.flag.var_file")
	return flags
}

// nameFlags name a job otherwise than its file does.
type nameFlags struct {
	name   *string
	suffix *bool
}

func declareName(set *flag.FlagSet) *nameFlags {
	return &nameFlags{name: set.String("name", "", "cli.flag.job_name"), suffix: set.Bool("name-suffix", false, "cli.flag.job_name_suffix")}
}

// ending is a short text that no other job has; the same one for the same key,
// so that a repeated submission is the same job.
func (f *nameFlags) ending(key string) string {
	if !*f.suffix {
		return ""
	}
	const length = 6
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:length]
}

// readNamed is readJob with another name for the job. Key is the submission's.
func (env *Env) readNamed(path string, flags *sourceFlags, name *nameFlags, key string) (*structs.Job, *jobspec.SourceMap, error) {
	source, options, err := env.readWith(path, flags)
	if err != nil {
		return nil, nil, err
	}
	options.Name, options.NameEnding = *name.name, name.ending(key)
	return env.parseJob(path, source, options)
}

// readJob parses a job file ("-" is stdin) and prints what is wrong with it.
func (env *Env) readJob(path string, flags *sourceFlags) (*structs.Job, *jobspec.SourceMap, error) {
	source, options, err := env.readWith(path, flags)
	if err != nil {
		return nil, nil, err
	}
	return env.parseJob(path, source, options)
}

func (env *Env) parseJob(path string, source []byte, options jobspec.Options) (*structs.Job, *jobspec.SourceMap, error) {
	job, places, diagnostics := jobspec.Parse(path, source, options)
	if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
		return nil, nil, err
	}
	if diagnostics.HasErrors() {
		return nil, nil, &exitError{code: ExitError}
	}
	job.Source = string(source)
	return job, places, nil
}

// readWith reads a file in the language of job files and what its variables
// are given.
func (env *Env) readWith(path string, flags *sourceFlags) ([]byte, jobspec.Options, error) {
	options := jobspec.Options{Vars: flags.vars, Env: env.Environ, ReadFile: readBounded}
	for _, pair := range flags.vars {
		if !strings.Contains(pair, "=") {
			return nil, options, usagef("cli.bad_var", "value", safe(pair))
		}
	}
	source, err := env.readSource(path)
	if err != nil {
		return nil, options, err
	}
	for _, name := range flags.varFiles {
		text, err := env.readSource(name)
		if err != nil {
			return nil, options, err
		}
		options.VarFiles = append(options.VarFiles, jobspec.VarFile{Name: name, Source: text})
	}
	return source, options, nil
}

func (env *Env) style() jobspec.Style {
	return jobspec.Style{Language: env.Language, Color: env.Stderr.Colour}
}

// explain shows what the cluster did not like about a job at the lines of its
// file, when it named fields; other errors are returned as they are.
func (env *Env) explain(err error, places *jobspec.SourceMap) error {
	var refused *structs.Error
	if !errors.As(err, &refused) || len(refused.Details) == 0 {
		return err
	}
	var problems []structs.Problem
	for _, detail := range refused.Details {
		if detail.Params["path"] == "" {
			return err
		}
		problems = append(problems, structs.Problem{
			Path: detail.Params["path"], ID: detail.ID, Params: detail.Params, HintID: detail.Params["hint_id"],
		})
	}
	if err := places.Diagnose(problems, jobspec.SeverityError).Render(env.Stderr, env.style()); err != nil {
		return err
	}
	return &exitError{code: ExitError}
}

// doubts shows the servers' warnings about a job file that only they can have: what
// the file itself tells was shown when it was read.
func (env *Env) doubts(warnings []structs.Error, job *structs.Job, places *jobspec.SourceMap) error {
	complete := job.Copy()
	complete.SetDefaults()
	own := complete.Warnings()
	var problems []structs.Problem
	for _, warning := range warnings {
		if !slices.ContainsFunc(own, func(p structs.Problem) bool { return p.ID == warning.ID }) {
			problems = append(problems, structs.Problem{
				Path: warning.Params["path"], ID: warning.ID, Params: warning.Params, HintID: warning.Params["hint_id"],
			})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return places.Diagnose(problems, jobspec.SeverityWarning).Render(env.Stderr, env.style())
}

// readBounded is what the function file() of a job file reads with; one byte
// over the limit tells jobspec that a file is too large.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, jobspec.SourceSizeMax+1))
}

// readSource reads a file, or standard input for "-".
func (env *Env) readSource(path string) ([]byte, error) {
	if path == "-" {
		source, err := io.ReadAll(io.LimitReader(env.Stdin, jobspec.SourceSizeMax+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return source, nil
	}
	source, err := readBounded(path)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	return source, nil
}
