package host

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"nomadlike/internal/carried"
	"nomadlike/nomadlike/structs"
)

//go:embed embedded/*
var embedded embed.FS

// Builtins names the device plugins that the agent may embed, in the programs of
// plugins/host/cmd.
func Builtins() []string { return []string{"nvidia", "ascend", "cambricon", "amd"} }

// Embedded reports whether this build carries a built-in device plugin for its
// architecture.
func Embedded(name string) bool {
	return carried.Carries(embedded, programName(name))
}

// BuiltinMissing says why a built-in device plugin cannot be started with
// this configuration; nil when it can.
func BuiltinMissing(config Config, name string) *structs.Reason {
	if len(config.BuiltinCommand) == 0 && !Embedded(name) {
		return structs.NewReason("device.not_built_in", "plugin", name, "arch", runtime.GOARCH)
	}
	return nil
}

// programName is the program of a plugin, which is unpacked only on machines that
// have such devices. The plugins that call their vendor's library without C are one
// program.
func programName(name string) string {
	if slices.Contains([]string{"amd", "ascend", "cambricon"}, name) {
		return "cards"
	}
	return name
}

// unpack returns the contents of a plugin's program as they are unpacked.
func unpack(name string) (io.ReadCloser, error) {
	contents, err := carried.Open(embedded, programName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this build carries no %s plugin for %s", name, runtime.GOARCH)
	}
	return contents, err
}

// external is the program of a plugin in PluginDir.
func external(config Config, name, pin string, args, env []string) source {
	return source{name: name, args: args, env: env, open: func() (*program, error) { return openProgram(config.PluginDir, name, pin) }}
}

// builtinEnv adds to a plugin's environment, where it does not say otherwise,
// the places at which a vendor's library looks for its own parts: they are not
// everywhere known to the dynamic loader.
func builtinEnv(name string, env []string) []string {
	defaults := map[string]string{
		"nvidia":    "/usr/local/nvidia/lib64:/usr/local/nvidia/lib",
		"amd":       "/opt/rocm/lib",
		"cambricon": "/usr/local/neuware/lib64",
		"ascend":    "/usr/local/dcmi:/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver",
	}
	full := slices.Clone(env)
	add := func(variable, value string) {
		if value != "" && !slices.ContainsFunc(full, func(each string) bool { return strings.HasPrefix(each, variable+"=") }) {
			full = append(full, variable+"="+value)
		}
	}
	add("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	add("LD_LIBRARY_PATH", defaults[name])
	return full
}

// builtin is the embedded program of one plugin, or the configured command.
func builtin(config Config, name string, env []string) source {
	env = builtinEnv(name, env)
	if command := config.BuiltinCommand; len(command) > 0 {
		return source{name: name, args: append(slices.Clone(command[1:]), name), env: env, open: func() (*program, error) {
			file, err := os.Open(command[0])
			if err != nil {
				return nil, fmt.Errorf("open the program of built-in device plugins: %w", err)
			}
			return &program{file: file}, nil
		}}
	}
	return source{name: name, env: env, open: func() (*program, error) { return openEmbedded(name, config.RunDir) }}
}

// openEmbedded puts the embedded program where it can be executed: in memory,
// sealed, or, where the kernel forbids that, in a file that is gone again.
func openEmbedded(name, dir string) (*program, error) {
	contents, err := unpack(name)
	if err != nil {
		return nil, err
	}
	opened, err := inMemory(contents)
	contents.Close()
	if err == nil {
		return opened, nil
	}
	if contents, err = unpack(name); err != nil {
		return nil, err
	}
	defer contents.Close()
	return inFile(contents, dir)
}

// inMemory makes a program of contents that no name leads to.
func inMemory(contents io.Reader) (*program, error) {
	fd, err := unix.MemfdCreate("device-plugin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "device-plugin")
	if _, err := io.Copy(file, contents); err != nil {
		file.Close()
		return nil, fmt.Errorf("write memory file: %w", err)
	}
	// Nothing can change it from here on, not even the program itself.
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		file.Close()
		return nil, fmt.Errorf("seal memory file: %w", err)
	}
	if err := unix.Access(fmt.Sprintf("/proc/self/fd/%d", fd), unix.X_OK); err != nil {
		file.Close()
		return nil, fmt.Errorf("memory files cannot be executed here: %w", err)
	}
	return &program{file: file}, nil
}

// inFile writes a program into dir, which belongs to the agent alone. The file
// stays open for reading only, as executing it asks for, and its name goes.
func inFile(contents io.Reader, dir string) (*program, error) {
	file, err := os.CreateTemp(dir, "device-plugin-*")
	if err != nil {
		return nil, fmt.Errorf("write device plugin: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, contents)
	if err == nil {
		err = file.Chmod(0o700)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("write device plugin: %w", err)
	}
	opened, err := os.Open(filepath.Clean(file.Name()))
	if err != nil {
		return nil, fmt.Errorf("write device plugin: %w", err)
	}
	return &program{file: opened}, nil
}
