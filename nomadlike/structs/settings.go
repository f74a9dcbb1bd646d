package structs

import (
	"cmp"
	"strconv"
	"time"
)

// Settings is the one record of what administrators set for the whole cluster.
// Written through the API; Apply fixes who set what, and when.
type Settings struct {
	// NoSharing has others of a project do nothing with each other's jobs, whatever
	// their owners allow; a project may say the same for itself.
	NoSharing bool     `json:"no_sharing,omitempty"`
	SharingBy string   `json:"sharing_by,omitempty"` // who last changed it
	SharingAt UnixNano `json:"sharing_at,omitempty"`

	Ceilings   PoolCeilings `json:"ceilings,omitzero"` // of every job, wherever it runs
	CeilingsBy string       `json:"ceilings_by,omitempty"`
	CeilingsAt UnixNano     `json:"ceilings_at,omitempty"`

	// ServiceTokenTTL is the longest that a new token of a service account lives; 0:
	// ServiceTokenTTLMax.
	ServiceTokenTTL Duration `json:"service_token_ttl,omitempty" since:"34"`

	ModifyIndex uint64 `json:"modify_index,omitempty"`
}

// ServiceTokenMax is how long a new token of a service account lives at most; s may be nil.
func (s *Settings) ServiceTokenMax() time.Duration {
	if s == nil || s.ServiceTokenTTL == 0 {
		return ServiceTokenTTLMax
	}
	return s.ServiceTokenTTL.Std()
}

// SettingsID is the id of the record where a decision rests on it.
const SettingsID = "cluster"

// SettingsPut replaces the record.
type SettingsPut struct {
	Settings Settings `json:"settings"`
}

// Version is what a decision that looked at the record rests on; 0 of none.
func (s *Settings) Version() uint64 {
	if s == nil {
		return 0
	}
	return s.ModifyIndex
}

// Validate lists everything that is wrong with the settings; an empty list means that
// they may be stored. Pure.
func (s *Settings) Validate() []Problem {
	v := &validator{}
	v.ceilings(&s.Ceilings)
	if ttl := s.ServiceTokenTTL.Std(); ttl != 0 && (ttl < time.Minute || ttl > ServiceTokenTTLBound) {
		v.add("service_token_ttl", "cluster.service_token_ttl", "", "value", s.ServiceTokenTTL, "max", Duration(ServiceTokenTTLBound))
	}
	return v.problems
}

// Level is whose bound something is.
type Level string

// The levels, from the widest to the narrowest.
const (
	LevelCluster Level = "cluster"
	LevelPool    Level = "pool"
	LevelProject Level = "project"
)

// Bound says whose a bound is, and who set it when; By is "" where that was not
// written down.
type Bound struct {
	Level Level    `json:"level"`
	Name  string   `json:"name,omitempty"` // of the pool or the project
	By    string   `json:"by,omitempty"`
	At    UnixNano `json:"at,omitempty"`
}

// SharingOff says who switched off that others of a project may do anything with its
// jobs, nil where owners say what they may. Either record may be nil. Pure.
func SharingOff(settings *Settings, project *Project) *Bound {
	switch {
	case settings != nil && settings.NoSharing:
		return &Bound{Level: LevelCluster, By: settings.SharingBy, At: settings.SharingAt}
	case project != nil && project.NoSharing:
		return &Bound{Level: LevelProject, Name: project.Name, By: project.BoundsBy, At: project.BoundsAt}
	}
	return nil
}

// Ceiling is the most that a job may ask for of one thing, and whose word that is.
type Ceiling struct {
	Path string `json:"path"` // of the argument in a job file
	Max  string `json:"max"`  // as a job file writes it; "none": nothing of it
	Bound
}

// Paths of what ceilings bound, beside those of arguments.
const (
	CeilingDevices    = "devices" // of all nodes together
	CeilingCheckpoint = "checkpoint"
	CeilingAccess     = "access"
)

// leveled is the ceilings of one level.
type leveled struct {
	*PoolCeilings
	Bound
}

// levels are the ceilings that bound a job, the widest first.
func levels(settings *Settings, pool *Pool, project *Project) []leveled {
	var list []leveled
	if settings != nil {
		list = append(list, leveled{&settings.Ceilings, Bound{Level: LevelCluster, By: settings.CeilingsBy, At: settings.CeilingsAt}})
	}
	if pool != nil {
		list = append(list, leveled{&pool.Ceilings, Bound{Level: LevelPool, Name: pool.Name, By: pool.CeilingsBy, At: pool.CeilingsAt}})
	}
	if project != nil {
		list = append(list, leveled{&project.Ceilings, Bound{Level: LevelProject, Name: project.Name, By: project.BoundsBy, At: project.BoundsAt}})
	}
	return list
}

// EffectiveCeilings lists the most that a job in a pool may ask for, in the order of
// PoolCeilings: of each thing the narrowest of the levels, and of equal ones the
// widest level, since raising another would change nothing. What nobody bounds is not
// in it. Each record may be nil; of jobs that name their nodes the pool is. Pure.
func EffectiveCeilings(settings *Settings, pool *Pool, project *Project) []Ceiling {
	list := []Ceiling{}
	all := levels(settings, pool, project)
	least := func(path string, of func(*PoolCeilings) int64, text func(int64) string) {
		most, whose := int64(0), Bound{}
		for _, level := range all {
			if value := of(level.PoolCeilings); value > 0 && (most == 0 || value < most) {
				most, whose = value, level.Bound
			}
		}
		if most > 0 {
			list = append(list, Ceiling{Path: path, Max: text(most), Bound: whose})
		}
	}
	span := func(ns int64) string { return FormatDuration(Duration(ns)) }
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	least("time_limit", func(c *PoolCeilings) int64 { return int64(c.TimeLimit) }, span)
	least("nodes", func(c *PoolCeilings) int64 { return int64(c.Nodes) }, number)
	least(CeilingDevices, func(c *PoolCeilings) int64 { return int64(c.Devices) }, number)
	least("checkpoint.max_resumes", func(c *PoolCeilings) int64 { return int64(c.MaxResumes) }, number)
	least("checkpoint.grace", func(c *PoolCeilings) int64 { return int64(c.Grace) }, span)
	least("debug.hold", func(c *PoolCeilings) int64 { return int64(c.Hold) }, span)
	least(CeilingCheckpoint, func(c *PoolCeilings) int64 {
		if c.NoCheckpoint {
			return 1
		}
		return 0
	}, func(int64) string { return AccessNone })
	if off := SharingOff(settings, project); off != nil {
		list = append(list, Ceiling{Path: CeilingAccess, Max: AccessNone, Bound: *off})
	}
	return list
}

// Admit lists everything that the cluster's settings have against a job, with who set
// them: what is over the ceilings, and access for others where that is switched off, by
// the cluster or by the job's project. Nil settings, and a nil project, have nothing
// against any. Pure.
func (s *Settings) Admit(project *Project, admitted *Job) []Problem {
	v := &validator{}
	if off := SharingOff(s, project); off != nil && admitted.Access != AccessNone {
		id := "cluster.no_sharing"
		if off.Level == LevelProject {
			id = "project.no_sharing"
		}
		v.add("access", id, "cluster.no_sharing.hint", "value", admitted.Access, "project", off.Name, "by", cmp.Or(off.By, nobody))
	}
	if s == nil {
		return v.problems
	}
	texts := &ceilingTexts{
		over: "cluster.ceiling", overHint: "cluster.ceiling.hint", devices: "cluster.ceiling_devices", params: []any{"by", cmp.Or(s.CeilingsBy, nobody)},
		all: "cluster.ceiling_all", allHint: "project.ceiling_all.hint", missing: "cluster.limit_missing", missingHint: "project.limit_missing.hint",
	}
	if s.Ceilings.NoCheckpoint && admitted.Checkpoint != nil {
		v.add("checkpoint", "cluster.no_checkpoint", "cluster.ceiling.hint", texts.params...)
	}
	v.underCeilings(&s.Ceilings, admitted, texts)
	return v.problems
}

// nobody stands for who set what was set before that was written down.
const nobody = "?"

// SetDefaults has a job that says nothing of others allow them nothing where sharing is
// switched off, and says so. It changes j in place.
func (b *Bound) SetDefaults(j *Job) []Default {
	if b == nil {
		return nil
	}
	d := defaulter{from: FromProject}
	if b.Level == LevelCluster {
		d.from = FromCluster
	}
	fill(&d, "access", &j.Access, AccessNone)
	return d.chosen
}
