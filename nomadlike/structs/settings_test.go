package structs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	. "nomadlike/nomadlike/structs"
)

func hours(n int) Duration { return Duration(n) * Duration(time.Hour) }

func threeLevels() (*Settings, *Pool, *Project) {
	return &Settings{Ceilings: PoolCeilings{TimeLimit: hours(100), Nodes: 8, Hold: hours(8)}, CeilingsBy: "ada", CeilingsAt: 1},
		&Pool{Name: "a800", Ceilings: PoolCeilings{TimeLimit: hours(50), Devices: 64, NoCheckpoint: true}, CeilingsBy: "ops", CeilingsAt: 2},
		&Project{Name: "vision", Ceilings: PoolCeilings{TimeLimit: hours(200), Nodes: 8, Devices: 16, MaxResumes: 3, Grace: hours(1)}, BoundsBy: "pat", BoundsAt: 3, NoSharing: true}
}

// TestEffectiveCeilings spells out whose word counts.
func TestEffectiveCeilings(t *testing.T) {
	settings, pool, project := threeLevels()
	var b strings.Builder
	for _, one := range []struct {
		name string
		list []Ceiling
	}{
		{"all three", EffectiveCeilings(settings, pool, project)},
		{"on named nodes", EffectiveCeilings(settings, nil, project)},
		{"the cluster alone", EffectiveCeilings(settings, nil, nil)},
		{"nobody", EffectiveCeilings(nil, nil, nil)},
	} {
		fmt.Fprintf(&b, "%s:\n", one.name)
		for _, c := range one.list {
			fmt.Fprintf(&b, "  %-24s %-6s %s %s %s\n", c.Path, c.Max, c.Level, c.Name, c.By)
		}
	}
	golden.Assert(t, "testdata/ceilings.golden", b.String())
}

// within reports whether a job is under what EffectiveCeilings says, by the texts that
// people see.
func within(t *rapid.T, list []Ceiling, j *Job) bool {
	span := func(text string) Duration {
		d, err := ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	number := func(text string) int {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range list {
		over := false
		switch c.Path {
		case "time_limit":
			over = j.TimeLimit == 0 || j.TimeLimit > span(c.Max)
		case "nodes":
			over = j.Nodes > number(c.Max)
		case CeilingDevices:
			over = j.Nodes*j.Resources[0].DeviceCount() > number(c.Max)
		case "checkpoint.max_resumes":
			over = j.Checkpoint != nil && j.Checkpoint.MaxResumes > number(c.Max)
		case "checkpoint.grace":
			over = j.Checkpoint != nil && j.Checkpoint.Grace > span(c.Max)
		case "debug.hold":
			over = j.Debug != nil && j.Debug.Hold > span(c.Max)
		case CeilingCheckpoint:
			over = j.Checkpoint != nil
		case CeilingAccess:
			over = j.Access != AccessNone
		default:
			t.Fatalf("nobody knows %s", c.Path)
		}
		if over {
			return false
		}
	}
	return true
}

// A job is admitted by the three levels exactly when it is under what people were
// shown, and no level widens what another one says.
func TestEffectiveCeilingsAreThoseOfAdmission(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) PoolCeilings {
		small := rapid.IntRange(0, 3)
		return PoolCeilings{
			TimeLimit: hours(small.Draw(t, "limit")), Nodes: small.Draw(t, "nodes"), Devices: 2 * small.Draw(t, "devices"),
			MaxResumes: small.Draw(t, "resumes"), Grace: hours(small.Draw(t, "grace")), Hold: hours(small.Draw(t, "hold")),
			NoCheckpoint: rapid.IntRange(0, 5).Draw(t, "never") == 0,
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		settings := &Settings{Ceilings: draw.Draw(t, "cluster"), NoSharing: rapid.Bool().Draw(t, "off")}
		pool := &Pool{Name: "p", Ceilings: draw.Draw(t, "pool")}
		project := &Project{Name: "v", Ceilings: draw.Draw(t, "project"), NoSharing: rapid.Bool().Draw(t, "off here")}
		small := rapid.IntRange(1, 4)
		j := &Job{
			Name: "digits", Nodes: small.Draw(t, "n"), Task: Task{Command: "python3 train.py"},
			TimeLimit: hours(rapid.IntRange(0, 4).Draw(t, "t")), Access: rapid.SampledFrom([]string{AccessNone, AccessReadOnly}).Draw(t, "access"),
			Resources: []Resources{{Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: small.Draw(t, "d")}}}},
		}
		if rapid.Bool().Draw(t, "checkpoint") {
			j.Checkpoint = &Checkpoint{MaxResumes: small.Draw(t, "r"), Grace: hours(small.Draw(t, "g"))}
		}
		if rapid.Bool().Draw(t, "debug") {
			j.Debug = &Debug{Hold: hours(small.Draw(t, "h"))}
		}
		_, problems := pool.Admit(j)
		problems = append(problems, project.Admit(j)...)
		problems = append(problems, settings.Admit(project, j)...)
		effective := EffectiveCeilings(settings, pool, project)
		if got := within(t, effective, j); got != (len(problems) == 0) {
			t.Fatalf("within %v: %v, and admission says %v", effective, got, problems)
		}
		// One level more is never wider.
		for _, fewer := range [][]Ceiling{EffectiveCeilings(nil, pool, project), EffectiveCeilings(settings, nil, project), EffectiveCeilings(settings, pool, nil)} {
			if within(t, effective, j) && !within(t, fewer, j) {
				t.Fatalf("%v is wider than %v", effective, fewer)
			}
			for _, c := range fewer {
				if !slices.ContainsFunc(effective, func(other Ceiling) bool { return other.Path == c.Path }) {
					t.Fatalf("%s is bounded by %v and not by all", c.Path, c)
				}
			}
		}
	})
}

// Where sharing is off a job that says nothing has access none, and one that says
// otherwise is refused with who set it.
func TestSharingOff(t *testing.T) {
	project := &Project{Name: "vision", NoSharing: true, BoundsBy: "pat", BoundsAt: 3}
	settings := &Settings{NoSharing: true, SharingBy: "ada", SharingAt: 5}
	for _, one := range []struct {
		settings *Settings
		project  *Project
		want     string // id of the refusal and who set it
	}{
		{nil, nil, ""},
		{&Settings{}, &Project{Name: "vision"}, ""},
		{nil, project, "project.no_sharing pat"},
		{settings, project, "cluster.no_sharing ada"},
		{settings, nil, "cluster.no_sharing ada"},
	} {
		said := ""
		for _, problem := range one.settings.Admit(one.project, &Job{Access: AccessReadOnly}) {
			said += problem.ID + " " + problem.Params["by"]
		}
		if said != one.want {
			t.Errorf("%+v %+v: %q, want %q", one.settings, one.project, said, one.want)
		}
		silent := &Job{}
		chosen := SharingOff(one.settings, one.project).SetDefaults(silent)
		if (silent.Access == AccessNone) != (one.want != "") || len(chosen) > 0 != (one.want != "") {
			t.Errorf("%+v: access %q, chosen %v", one.settings, silent.Access, chosen)
		}
		if problems := one.settings.Admit(one.project, &Job{Access: AccessNone}); len(problems) > 0 {
			t.Errorf("access none is refused: %v", problems)
		}
	}
}
