package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Exit codes that shells use for commands they can not execute.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// interpreterBytesMax bounds the first line of a script that is looked at.
const interpreterBytesMax = 256

func notFound(kind string, params map[string]string) *Failure {
	return &Failure{Kind: kind, Params: params, ExitCode: codeNotFound}
}

func notExecutable(kind string, params map[string]string) *Failure {
	return &Failure{Kind: kind, Params: params, ExitCode: codeNotExecutable}
}

// checkDir tells early that a working directory can not be entered, since
// the error of a failed start does not say which of its steps failed.
func checkDir(dir string) *Failure {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	return notExecutable("dir_missing", map[string]string{"dir": dir, "cause": plain(err)})
}

// lookPath finds what to execute for a command's first word, as a shell with
// the task's own PATH would.
func lookPath(name, dir string, env []string) (string, *Failure) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		switch err := executable(path); err {
		case nil:
			return path, nil
		case syscall.EACCES:
			return "", noExecuteBit(name)
		default:
			return "", explain(name, path, dir, err)
		}
	}
	search := lastValue(env, "PATH")
	denied := false
	for _, place := range filepath.SplitList(search) {
		if place == "" {
			place = "."
		}
		if !filepath.IsAbs(place) {
			place = filepath.Join(dir, place)
		}
		path := filepath.Join(place, name)
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case err == syscall.EACCES:
			denied = true
		}
	}
	if denied {
		return "", noExecuteBit(name)
	}
	return "", notFound("command_not_found", map[string]string{"command": name, "path": search})
}

func noExecuteBit(name string) *Failure {
	return notExecutable("command_not_executable", map[string]string{"command": name, "cause": "it is not marked as executable"})
}

// executable tells whether path is a file that somebody may execute; whether
// the task's user may is the kernel's to say.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return plainErrno(err)
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return syscall.EACCES
	default:
		return nil
	}
}

// explain turns the error of a failed execution into its cause. name is what
// the user wrote, path what was tried.
func explain(name, path, dir string, err error) *Failure {
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR:
		if executable(path) == nil {
			return notFound("interpreter_missing", map[string]string{"command": name, "interpreter": interpreter(path)})
		}
		return notFound("command_missing", map[string]string{"command": name})
	case syscall.EACCES:
		// The kernel does not say which of the two it was.
		return notExecutable("command_denied", map[string]string{"command": name, "dir": dir})
	case syscall.EPERM, syscall.EISDIR, syscall.ENOEXEC, syscall.ELOOP, syscall.ENAMETOOLONG:
		return notExecutable("command_not_executable", map[string]string{"command": name, "cause": err.Error()})
	case syscall.E2BIG, syscall.ETXTBSY, syscall.EINVAL:
		return notExecutable("start_refused", map[string]string{"command": name, "cause": err.Error()})
	default: // out of processes or memory: not the command's fault
		return &Failure{Kind: "start_refused", Params: map[string]string{"command": name, "cause": err.Error()}}
	}
}

// interpreter gives what a script's first line asks for, or the loader that
// a program without one needs.
func interpreter(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "?"
	}
	defer file.Close()
	var start [interpreterBytesMax]byte
	n, _ := file.Read(start[:])
	line, isScript := bytes.CutPrefix(start[:n], []byte("#!"))
	if !isScript {
		return "ld.so"
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return "?"
	}
	return words[0]
}

// lastValue gives the value that counts of a variable set more than once.
func lastValue(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// overlayEnv puts more over base, name by name.
func overlayEnv(base, more []string) []string {
	merged := append([]string(nil), base...)
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		kept := merged[:0]
		for _, old := range merged {
			if !strings.HasPrefix(old, name+"=") {
				kept = append(kept, old)
			}
		}
		merged = append(kept, entry)
	}
	return merged
}

// plainErrno gives the kernel's error inside err, or err.
func plainErrno(err error) error {
	if path, ok := err.(*os.PathError); ok {
		return path.Err
	}
	return err
}

func plain(err error) string { return plainErrno(err).Error() }
