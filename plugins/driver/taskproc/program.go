package taskproc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// interpreterBytesMax bounds the first line of a script that is looked at.
const interpreterBytesMax = 256

// errNoBit is a file that nobody may execute, which the kernel reports with
// the same error as a directory that may not be searched.
var errNoBit = errors.New("it is not marked as executable")

// CheckDir reports early that a working directory cannot be entered, since the
// error of a failed start does not say which of its steps failed.
func CheckDir(dir string) *Failure {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	return Refuse(CodeNotExecutable, "dir_missing", "dir", dir, "cause", Errno(err).Error())
}

// FindProgram finds what to execute for a command's first word, as a shell in
// dir with the task's own PATH would.
func FindProgram(name, dir string, env []string) (string, *Failure) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", Explain(name, path, dir, err)
		}
		return path, nil
	}
	search := lastValue(env, "PATH")
	denied := false
	for _, place := range filepath.SplitList(search) {
		if !filepath.IsAbs(place) { // an empty place is the directory itself
			place = filepath.Join(dir, place)
		}
		path := filepath.Join(place, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		denied = denied || err == errNoBit
	}
	if denied {
		return "", Explain(name, "", dir, errNoBit)
	}
	return "", Refuse(CodeNotFound, "command_not_found", "command", name, "path", search)
}

// executable reports why path cannot be executed by anybody, nil when it can;
// whether the task's user may is the kernel's to say.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Errno(err)
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&0o111 == 0:
		return errNoBit
	}
	return nil
}

// Explain turns the error of a failed execution into its cause. name is what
// the user wrote, path what was tried.
func Explain(name, path, dir string, err error) *Failure {
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR:
		if executable(path) == nil {
			return Refuse(CodeNotFound, "interpreter_missing", "command", name, "interpreter", interpreter(path))
		}
		return Refuse(CodeNotFound, "command_missing", "command", name)
	case syscall.EACCES:
		// The kernel does not say whether it was the file or a directory.
		return Refuse(CodeNotExecutable, "command_denied", "command", name, "dir", dir)
	case errNoBit, syscall.EPERM, syscall.EISDIR, syscall.ENOEXEC, syscall.ELOOP, syscall.ENAMETOOLONG:
		return Refuse(CodeNotExecutable, "command_not_executable", "command", name, "cause", err.Error())
	case syscall.E2BIG, syscall.ETXTBSY, syscall.EINVAL:
		return Refuse(CodeNotExecutable, "start_refused", "command", name, "cause", err.Error())
	}
	// Out of processes or memory: not the command's fault.
	return Refuse(0, "start_refused", "command", name, "cause", err.Error())
}

// interpreter returns what a script's first line asks for, or the loader that a
// program without one needs.
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

// lastValue returns the value that counts of a variable set more than once.
func lastValue(env []string, name string) string {
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

// Errno returns the kernel's error inside the error of a file, or err itself.
func Errno(err error) error {
	if path, ok := err.(*os.PathError); ok {
		return path.Err
	}
	return err
}
