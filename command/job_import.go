package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/jobspec/importer"
)

// jobImport prints the job file that does what the file of another system does.
func jobImport(set *flag.FlagSet) func(*Env, []string) error {
	format := set.String("format", "", "cli.flag.import_format")
	name := set.String("name", "", "cli.flag.job_name")
	strict := set.Bool("strict", false, "cli.flag.import_strict")
	var jobs listFlag
	set.Var(&jobs, "job", "cli.flag.import_job")
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		known := make(map[string]string)
		for _, pair := range jobs {
			there, here, ok := strings.Cut(pair, "=")
			if !ok || there == "" || here == "" {
				return usagef("cli.import.job", "value", safe(pair))
			}
			known[there] = here
		}
		source, err := env.readSource(path)
		if err != nil {
			return err
		}
		result, diagnostics := importer.Import(path, source, importer.Options{
			Format: importer.Format(*format), Language: env.Language, Name: *name, Jobs: known,
		})
		if result == nil {
			if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
				return err
			}
			return &exitError{code: ExitError}
		}
		if _, err := env.Stdout.Write(result.File); err != nil {
			return fmt.Errorf("write job file: %w", err)
		}
		fmt.Fprintln(env.Stderr, env.text("cli.import.done", "lost", result.Lost, "changed", result.Changed))
		if *strict && result.Lost > 0 {
			return &exitError{code: ExitError}
		}
		return nil
	}
}
