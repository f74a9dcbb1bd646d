package agent

import (
	"os"
	"path/filepath"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// hardLimits reads the hard limits of a checked table.
func hardLimits(limits map[string]string) map[string]int64 {
	hard := make(map[string]int64, len(limits))
	for name, text := range limits {
		if _, most, err := structs.ParseUlimit(name, text); err == nil {
			hard[name] = most
		}
	}
	return hard
}

// execConfig is what the driver of processes is opened with. Isolated tasks see
// nothing of what the agent keeps for itself: of its data directory what belongs to them
// alone, and none of the files that its configuration is made of.
func (p *clientPart) execConfig(dir string) exec.Config {
	c := p.config.Client.Exec
	return exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: p.options.Supervisor, Logger: p.log,
		Isolation: c.Isolation, View: c.View, Root: c.Root, MountRoots: c.MountRoots, Writable: c.Writable, NoCgroup: c.NoCgroup, PIDsMax: int64(c.PIDsMax),
		Ulimits: driver.ParseUlimits(c.Ulimits), UlimitsMax: hardLimits(c.UlimitsMax),
		Hidden: append([]string{p.config.DataDir}, p.secretFiles()...),
	}
}

// secretFiles lists the files outside of the data directory that this agent's
// configuration names and no task is to see, and the command line's contexts,
// which hold people's tokens.
func (p *clientPart) secretFiles() []string {
	files := slices.Clone(p.config.Files)
	files = append(files, p.config.Client.Docker.AuthFile)
	for _, server := range p.config.Client.Remotes {
		files = append(files, server.AuthorizationFile)
		if server.S3 != nil {
			files = append(files, server.S3.CredentialsFile)
		}
	}
	if p.options.Getenv != nil {
		if dir, err := api.ContextDir(p.options.Getenv); err == nil {
			files = append(files, dir)
		}
	}
	var hidden []string
	for _, file := range files {
		if file == "" {
			continue
		}
		whole, err := filepath.Abs(file)
		if info, statErr := os.Stat(whole); err == nil && statErr == nil && (info.IsDir() || info.Mode().IsRegular()) { // not a pipe of the shell
			hidden = append(hidden, whole)
		}
	}
	return hidden
}
