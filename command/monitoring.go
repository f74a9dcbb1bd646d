package command

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"nomadlike/website/examples/monitoring"
)

// operatorMonitoring writes what Prometheus and Grafana are given into a directory. It
// needs no cluster.
func operatorMonitoring(set *flag.FlagSet) func(*Env, []string) error {
	force := set.Bool("force", false, "cli.flag.force")
	return func(env *Env, args []string) error {
		dir, err := one(args, "DIR")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		for _, file := range monitoring.Files() {
			path := filepath.Join(dir, file.Name)
			if err := writeNew(path, file.Data, *force); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, safe(path))
		}
		return nil
	}
}
