package client

import (
	"fmt"
	"os"
	"path/filepath"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
	"nomadlike/plugins/driver"
)

// layout names the files of the node's data directory.
type layout struct{ root string }

func (l layout) allocs() string             { return filepath.Join(l.root, "alloc") }
func (l layout) alloc(id string) string     { return filepath.Join(l.allocs(), id) }
func (l layout) task(id string) string      { return filepath.Join(l.alloc(id), "task") }
func (l layout) logs(id string) string      { return filepath.Join(l.alloc(id), "logs") }
func (l layout) files(id string) string     { return filepath.Join(l.alloc(id), "files") }
func (l layout) rsh(id string) string       { return filepath.Join(l.alloc(id), "rsh") }
func (l layout) lease() string              { return filepath.Join(l.root, "lease.json") }
func (l layout) rshToken(id string) string  { return filepath.Join(l.alloc(id), "rsh-token") }
func (l layout) rshSocket(id string) string { return filepath.Join(l.rsh(id), "agent.sock") }
func (l layout) assignment(id string) string {
	return filepath.Join(l.alloc(id), "assignment.cbor")
}

// writeAssignment keeps what the server said of an allocation, for an agent
// that starts again. The job's source text is left out: nobody here reads it.
func (l layout) writeAssignment(a *structs.Assignment) error {
	stored := *a
	if a.Job != nil && a.Job.Source != "" {
		job := *a.Job
		job.Source = ""
		stored.Job = &job
	}
	data, err := wire.Marshal(&stored)
	if err != nil {
		return fmt.Errorf("keep assignment of %s: %w", a.Alloc.ID, err)
	}
	// Written in place: nobody reads it before the start, and a start follows
	// only when all of it is written.
	if err := os.WriteFile(l.assignment(a.Alloc.ID), data, 0o600); err != nil {
		return fmt.Errorf("keep assignment of %s: %w", a.Alloc.ID, err)
	}
	return nil
}

// readAssignment reads what writeAssignment kept.
func (l layout) readAssignment(id string) (*structs.Assignment, error) {
	if !driver.ValidTaskID(alloc.TaskID(id)) {
		return nil, fmt.Errorf("read assignment: %q is no allocation id", id)
	}
	data, err := os.ReadFile(l.assignment(id))
	if err != nil {
		return nil, fmt.Errorf("read assignment of %s: %w", id, err)
	}
	a := new(structs.Assignment)
	if err := wire.Unmarshal(data, a); err != nil {
		return nil, fmt.Errorf("read assignment of %s: %w", id, err)
	}
	if a.Alloc == nil || a.Job == nil || a.Alloc.ID != id {
		return nil, fmt.Errorf("read assignment of %s: it is of another allocation", id)
	}
	return a, nil
}
