package taskinit

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

func refuse(code int, kind string, params ...string) *Failure {
	f := &Failure{Kind: kind, Params: make(map[string]string), ExitCode: code}
	for i := 0; i+1 < len(params); i += 2 {
		f.Params[params[i]] = params[i+1]
	}
	return f
}

// findProgram finds what to execute for a command's first word in the
// container, as a shell there would.
func findProgram(name, dir string, env []string) (string, *Failure) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := runnable(path); err != nil {
			return "", explain(name, path, dir, err)
		}
		return path, nil
	}
	search := lookup(env, "PATH")
	var found error
	for _, place := range filepath.SplitList(search) {
		path := filepath.Join(dir, place, name)
		if filepath.IsAbs(place) {
			path = filepath.Join(place, name)
		}
		err := runnable(path)
		if err == nil {
			return path, nil
		}
		if err == errNoBit {
			found = err
		}
	}
	if found != nil {
		return "", explain(name, "", dir, found)
	}
	return "", refuse(codeNotFound, "command_not_found", "command", name, "path", search)
}

// errNoBit stands for a file that nobody may execute.
const errNoBit = syscall.Errno(0xfff)

// runnable tells why path can not be executed by anybody, nil when it can.
func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errnoOf(err)
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return errNoBit
	}
	return nil
}

// explain says in words of the catalogue why an execution failed.
func explain(name, path, dir string, err error) *Failure {
	switch err {
	case errNoBit:
		return refuse(codeNotExecutable, "command_not_executable", "command", name, "cause", "it is not marked as executable")
	case syscall.ENOENT, syscall.ENOTDIR:
		if runnable(path) == nil {
			return refuse(codeNotFound, "interpreter_missing", "command", name, "interpreter", interpreter(path))
		}
		return refuse(codeNotFound, "command_missing", "command", name)
	case syscall.EACCES:
		return refuse(codeNotExecutable, "command_denied", "command", name, "dir", dir)
	case syscall.EPERM, syscall.EISDIR, syscall.ENOEXEC, syscall.ELOOP, syscall.ENAMETOOLONG:
		return refuse(codeNotExecutable, "command_not_executable", "command", name, "cause", err.Error())
	case syscall.E2BIG, syscall.ETXTBSY, syscall.EINVAL:
		return refuse(codeNotExecutable, "start_refused", "command", name, "cause", err.Error())
	}
	// Out of processes or memory: not the command's fault.
	return refuse(0, "start_refused", "command", name, "cause", err.Error())
}

// interpreter gives what a script's first line asks for, or the loader of a
// program without one.
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
	if words := strings.Fields(string(line)); len(words) > 0 {
		return words[0]
	}
	return "?"
}

// lookup gives the last value of a variable.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// Overlay puts more over base, name by name, and keeps the order.
func Overlay(base, more []string) []string {
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

func errnoOf(err error) error {
	if path, ok := err.(*os.PathError); ok {
		return path.Err
	}
	return err
}
