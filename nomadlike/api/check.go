package api

import (
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

// CheckLaunch reports whether the commands of a complete job can be launched at
// all, and what its author may want to know about them, as admission would. It
// asks no server: it is for the command line, which validates files without one.
func CheckLaunch(job *structs.Job) ([]structs.Reason, error) { return launch.Check(job) }
