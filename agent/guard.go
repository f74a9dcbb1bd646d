package agent

import (
	"slices"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// A request is judged against a snapshot, and its entry is applied later. What
// the judgement rests on is noted here as it is read, goes into the log beside
// the command, and is compared with the state where the entry is applied.

// guard is what the decision to allow a request rests on.
func (r *request) guard() structs.Guard {
	guard := structs.Guard{Rests: r.rests}
	if r.caller.token != nil {
		guard.TokenID = r.caller.token.ID
	}
	return guard
}

// restsOn notes that the decision rests on a record of a version; 0: on there
// being none.
func (r *request) restsOn(kind structs.RestKind, id string, version uint64) {
	rest := structs.Rest{Kind: kind, ID: id, Index: version}
	if !slices.Contains(r.rests, rest) {
		r.rests = append(r.rests, rest)
	}
}

// pool gives the record of a pool that the decision rests on, nil without one.
func (r *request) pool(snapshot *state.Snapshot, name string) *structs.Pool {
	pool := snapshot.Pool(name)
	version := uint64(0)
	if pool != nil {
		version = pool.ModifyIndex
	}
	r.restsOn(structs.RestPool, name, version)
	return pool
}

// project gives the record of a project that the decision rests on, nil
// without one.
func (r *request) project(snapshot *state.Snapshot, name string) *structs.Project {
	project := snapshot.Project(name)
	version := uint64(0)
	if project != nil {
		version = project.ModifyIndex
	}
	r.restsOn(structs.RestProject, name, version)
	return project
}
