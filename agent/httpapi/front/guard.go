package front

import (
	"slices"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// A request is judged against a snapshot, and its entry is applied later. What
// the judgement rests on is noted here as it is read, goes into the log beside
// the command, and is compared with the state where the entry is applied.

// Guard is what the decision to allow a request rests on.
func (r *Request) Guard() structs.Guard {
	guard := structs.Guard{Rests: r.Rests}
	if r.Caller.Token != nil {
		guard.TokenID = r.Caller.Token.ID
	}
	return guard
}

// RestsOn notes that the decision rests on a record of a version; 0: on there
// being none.
func (r *Request) RestsOn(kind structs.RestKind, id string, version uint64) {
	rest := structs.Rest{Kind: kind, ID: id, Index: version}
	if !slices.Contains(r.Rests, rest) {
		r.Rests = append(r.Rests, rest)
	}
}

// Pool returns the record of a pool that the decision rests on, nil without one.
func (r *Request) Pool(snapshot *state.Snapshot, name string) *structs.Pool {
	pool := snapshot.Pool(name)
	version := uint64(0)
	if pool != nil {
		version = pool.ModifyIndex
	}
	r.RestsOn(structs.RestPool, name, version)
	return pool
}

// Project returns the record of a project that the decision rests on, nil
// without one.
func (r *Request) Project(snapshot *state.Snapshot, name string) *structs.Project {
	project := snapshot.Project(name)
	version := uint64(0)
	if project != nil {
		version = project.ModifyIndex
	}
	r.RestsOn(structs.RestProject, name, version)
	return project
}

// Settings returns what is set for the whole cluster, which the decision rests on; nil
// before anything was.
func (r *Request) Settings(snapshot *state.Snapshot) *structs.Settings {
	settings := snapshot.Settings()
	if settings != nil {
		r.RestsOn(structs.RestSettings, structs.SettingsID, settings.ModifyIndex)
	}
	return settings
}
