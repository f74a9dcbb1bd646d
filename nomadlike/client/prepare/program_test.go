package prepare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

func TestShowProgram(t *testing.T) {
	mount := []driver.Reservation{{Mounts: []driver.Mount{{HostPath: "/opt/nomadlike", TaskPath: "/opt/nomadlike", ReadOnly: true}}}}
	for _, c := range []struct {
		name, binary, dir, driver string
		want                      driver.TaskSpec
	}{
		{"process", "/opt/nomadlike", "/d/task", structs.DriverExec, driver.TaskSpec{PathLast: []string{"/d/task/.nomadlike/bin"}}},
		{"container", "/opt/nomadlike", "/d/task", structs.DriverDocker, driver.TaskSpec{PathLast: []string{"/d/task/.nomadlike/bin"}, Reservations: mount}},
		{"no program", "", "/d/task", structs.DriverDocker, driver.TaskSpec{}},
		{"no place in a PATH", "/opt/nomadlike", "/d:1/task", structs.DriverDocker, driver.TaskSpec{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := driver.TaskSpec{TaskDir: c.dir}
			New(Config{Binary: c.binary}).showProgram(&spec, c.driver)
			c.want.TaskDir = c.dir
			if diff := cmp.Diff(c.want, spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}
