package client

import "path/filepath"

// layout names the files of the node's data directory.
type layout struct{ root string }

func (l layout) allocs() string                { return filepath.Join(l.root, "alloc") }
func (l layout) alloc(id string) string        { return filepath.Join(l.allocs(), id) }
func (l layout) task(id string) string         { return filepath.Join(l.alloc(id), "task") }
func (l layout) metrics(id string) string      { return filepath.Join(l.alloc(id), "metrics.json") }
func (l layout) figures(id string) string      { return filepath.Join(l.alloc(id), "figures.json") }
func (l layout) output(id string) string       { return filepath.Join(l.alloc(id), "output.json") }
func (l layout) logs(id string) string         { return filepath.Join(l.alloc(id), "logs") }
func (l layout) hookPlan(id string) string     { return filepath.Join(l.alloc(id), "hooks.json") }
func (l layout) hold(id string) string         { return filepath.Join(l.alloc(id), "hold.json") }
func (l layout) kept(id string) string         { return filepath.Join(l.alloc(id), "kept.json") }
func (l layout) holdLogs(id string) string     { return filepath.Join(l.alloc(id), "hold") }
func (l layout) hookLogs(id string) string     { return filepath.Join(l.alloc(id), "hooks") }
func (l layout) hookTaskLogs(id string) string { return filepath.Join(l.alloc(id), "hook-task") }
func (l layout) rsh(id string) string          { return filepath.Join(l.alloc(id), "rsh") }
func (l layout) lease() string                 { return filepath.Join(l.root, "lease.json") }
func (l layout) rshToken(id string) string     { return filepath.Join(l.alloc(id), "rsh-token") }
func (l layout) rshSocket(id string) string    { return filepath.Join(l.rsh(id), "agent.sock") }
