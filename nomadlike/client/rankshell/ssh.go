package rankshell

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"nomadlike/nomadlike/launch"
)

// RunSSH is the hidden command `nomadlike mpi-ssh`: what a task of a gang finds
// as ssh. A host that is a rank of its job is reached as RunShell does; any other
// is left to the next ssh in PATH, when there is one. main calls it once.
func RunSSH(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	host, command, err := launch.ParseRemoteShell(args)
	getenv := lookup(environ)
	if err != nil || !isRank(getenv(launch.EnvHostFile), host) {
		if real, found := realProgram("ssh", getenv("PATH")); found {
			_ = syscall.Exec(real, append([]string{"ssh"}, args...), environ) // comes back only when it failed
		}
	}
	// Launchers ask a host for its addresses and take the first, which need not
	// be of the network that ranks talk over: they get the one of the rank's name.
	if err == nil && command == "hostname -I" {
		if addrs, err := net.LookupHost(host); err == nil && len(addrs) > 0 {
			_, err = io.WriteString(stdout, addrs[0]+"\n")
			return codeOf(err)
		}
	}
	return RunShell(args, environ, stdin, stdout, stderr)
}

func codeOf(err error) int {
	if err != nil {
		return CodeFailed
	}
	return 0
}

// isRank reports whether a host file names the host, whole or up to its first
// dot. Without a file every host may be one.
func isRank(file, host string) bool {
	names, err := ranksOf(file)
	if err != nil {
		return true
	}
	label, _, _ := strings.Cut(host, ".")
	return slices.Contains(names, host) || slices.Contains(names, label)
}

// ranksOf lists the names in a host file.
func ranksOf(file string) ([]string, error) {
	if file == "" {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	return names, nil
}

// realProgram finds a program in PATH that is not the one which called this.
func realProgram(name, path string) (string, bool) {
	for _, dir := range filepath.SplitList(path) {
		if strings.HasSuffix(dir, launch.ShellDir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && !errors.Is(err, exec.ErrDot) {
			return found, true
		}
	}
	return "", false
}
