package driver_test

import (
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

func goodSpec() driver.TaskSpec {
	return driver.TaskSpec{
		ID: "0a1b.main", Command: []string{"/bin/true"}, Env: []string{"A=1", "EMPTY="},
		TaskDir: "/data/task", LogDir: "/data/logs", Hostname: "digits-1-0", Hosts: []string{"127.0.0.1 localhost"},
	}
}

func TestValidateTaskSpec(t *testing.T) {
	spec := goodSpec()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		field string
		spoil func(*driver.TaskSpec)
	}{
		"no id":             {"id", func(s *driver.TaskSpec) { s.ID = "" }},
		"id with a path":    {"id", func(s *driver.TaskSpec) { s.ID = "a/b" }},
		"id like a file":    {"id", func(s *driver.TaskSpec) { s.ID = ".." }},
		"id like an option": {"id", func(s *driver.TaskSpec) { s.ID = "-rf" }},
		"long id":           {"id", func(s *driver.TaskSpec) { s.ID = driver.TaskID(strings.Repeat("a", driver.TaskIDLengthMax+1)) }},
		"no command":        {"command", func(s *driver.TaskSpec) { s.Command = nil }},
		"empty command":     {"command", func(s *driver.TaskSpec) { s.Command = []string{""} }},
		"held command":      {"command", func(s *driver.TaskSpec) { s.Hold = true }},
		"NUL in command":    {"command", func(s *driver.TaskSpec) { s.Command = []string{"a", "b\x00"} }},
		"many words":        {"command", func(s *driver.TaskSpec) { s.Command = make([]string, driver.ArgumentsMax+1); s.Command[0] = "a" }},
		"much command":      {"command", func(s *driver.TaskSpec) { s.Command = []string{"a", strings.Repeat("x", driver.ArgumentBytesMax)} }},
		"nameless variable": {"env", func(s *driver.TaskSpec) { s.Env = []string{"=x"} }},
		"NUL in variable":   {"env", func(s *driver.TaskSpec) { s.Env = []string{"A=\x00"} }},
		"much environment":  {"env", func(s *driver.TaskSpec) { s.Env = []string{"A=" + strings.Repeat("x", driver.EnvBytesMax)} }},
		"relative dir":      {"dir", func(s *driver.TaskSpec) { s.Dir = "x" }},
		"relative task dir": {"task_dir", func(s *driver.TaskSpec) { s.TaskDir = "x" }},
		"unclean task dir":  {"task_dir", func(s *driver.TaskSpec) { s.TaskDir = "/data/../x" }},
		"logs in the task":  {"log_dir", func(s *driver.TaskSpec) { s.LogDir = "/data/task/logs" }},
		"logs are the task": {"log_dir", func(s *driver.TaskSpec) { s.LogDir = "/data/task" }},
		"hosts line breaks": {"hosts", func(s *driver.TaskSpec) { s.Hosts = []string{"a\nb"} }},
		"many hosts":        {"hosts", func(s *driver.TaskSpec) { s.Hosts = make([]string, driver.HostsMax+1) }},
		"bad host name":     {"hostname", func(s *driver.TaskSpec) { s.Hostname = "a b" }},
		"long host name":    {"hostname", func(s *driver.TaskSpec) { s.Hostname = strings.Repeat("a", 64) }},
		"endless grace":     {"kill_grace", func(s *driver.TaskSpec) { s.KillGrace = time.Duration(math.MaxInt64) }},
		"no number of cpus": {"resources.cpu", func(s *driver.TaskSpec) { s.Resources.CPU = math.NaN() }},
		"no image":          {"container.image", func(s *driver.TaskSpec) { s.Container = &driver.Container{} }},
		"image with space":  {"container.image", func(s *driver.TaskSpec) { s.Container = &driver.Container{Image: "a b"} }},
		"unknown pull":      {"container.pull", func(s *driver.TaskSpec) { s.Container = &driver.Container{Image: "a", Pull: "often"} }},
		"unknown network":   {"container.network", func(s *driver.TaskSpec) { s.Container = &driver.Container{Image: "a", Network: "container:x"} }},
		"unknown limit": {"ulimits", func(s *driver.TaskSpec) {
			s.Ulimits = []driver.Ulimit{{Name: "evil"}}
		}},
		"limit upside down": {"ulimits", func(s *driver.TaskSpec) {
			s.Ulimits = []driver.Ulimit{{Name: "memlock", Soft: -1, Hard: 5}}
		}},
		"long option": {"container.options", func(s *driver.TaskSpec) {
			s.Container = &driver.Container{Image: "a", Options: map[string]string{"x": strings.Repeat("x", driver.OptionBytesMax)}}
		}},
		"relative device": {"devices", func(s *driver.TaskSpec) { s.Devices = []driver.Device{{HostPath: "null"}} }},
		"device access":   {"devices", func(s *driver.TaskSpec) { s.Devices = []driver.Device{{HostPath: "/dev/null", Access: "x"}} }},
		"reserved device": {"devices", func(s *driver.TaskSpec) {
			s.Reservations = []driver.Reservation{{Nodes: []driver.Device{{HostPath: "/dev/null", TaskPath: "/dev/../x"}}}}
		}},
		"relative mount":    {"mounts", func(s *driver.TaskSpec) { s.Mounts = []driver.Mount{{HostPath: "/a", TaskPath: "b"}} }},
		"mount on the root": {"mounts", func(s *driver.TaskSpec) { s.Mounts = []driver.Mount{{HostPath: "/a", TaskPath: "/"}} }},
		"many reservations": {"reservations", func(s *driver.TaskSpec) { s.Reservations = make([]driver.Reservation, driver.ReservationsMax+1) }},
		"negative memory":   {"resources", func(s *driver.TaskSpec) { s.Resources.Memory = -1 }},
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec()
			c.spoil(&spec)
			var told *structs.Error
			if err := spec.Validate(); !errors.As(err, &told) || told.ID != "driver.bad_spec" || told.Params["field"] != c.field {
				t.Errorf("error is %v, want one about %s", err, c.field)
			}
		})
	}
	held := goodSpec()
	held.Hold, held.Command = true, nil
	if err := held.Validate(); err != nil {
		t.Errorf("held task: %v", err)
	}
}

func TestRotationDefaults(t *testing.T) {
	for _, c := range []struct{ in, want driver.LogRotation }{
		{driver.LogRotation{}, driver.LogRotation{MaxFiles: driver.LogFilesDefault, MaxBytes: driver.LogFileBytesDefault}},
		{driver.LogRotation{MaxFiles: 1, MaxBytes: 1}, driver.LogRotation{MaxFiles: driver.LogFilesMin, MaxBytes: driver.LogFileBytesMin}},
		{driver.LogRotation{MaxFiles: 5, MaxBytes: 1 << 20}, driver.LogRotation{MaxFiles: 5, MaxBytes: 1 << 20}},
	} {
		if got := c.in.WithDefaults(); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestSignals(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"SIGUSR1": syscall.SIGUSR1, "usr1": syscall.SIGUSR1, "sigterm": syscall.SIGTERM, "KILL": syscall.SIGKILL} {
		if got, err := driver.ParseSignal(name); err != nil || got != want {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "SIG", "SIGSIGTERM", "9", "TERM "} {
		if got, err := driver.ParseSignal(name); err == nil {
			t.Errorf("%q is %v", name, got)
		}
	}
	if got := driver.SignalName(syscall.SIGXCPU); got != "SIGXCPU" {
		t.Errorf("name is %s", got)
	}
	if got := driver.SignalName(64); got != "SIG64" {
		t.Errorf("name is %s", got)
	}
}

// TestMessagesExist makes sure that every error made for users has a text.
func TestMessagesExist(t *testing.T) {
	for _, id := range []string{
		"bad_spec", "bad_signal", "command_not_found", "command_missing", "command_not_executable", "command_denied",
		"interpreter_missing", "dir_missing", "user_unknown", "user_denied", "start_refused", "task_lost", "unkillable", "supervisor_failed",
	} {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, "driver."+id) {
				t.Errorf("driver.%s has no text in %s", id, language)
			}
		}
	}
}
