package structs

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func gridOf(params ...SweepParam) *Sweep { return &Sweep{Method: SweepGrid, Params: params} }

// TestGrid: every combination comes once, the last parameter changing fastest.
func TestGrid(t *testing.T) {
	grid := gridOf(
		SweepParam{Name: "lr", Values: []string{"0.1", "0.01"}},
		SweepParam{Name: "layers", Int: []string{"2", "8"}, Count: 3},
		SweepParam{Name: "wd", Log: []string{"1e-6", "1e-2"}, Count: 3},
	)
	var names []string
	for index := range grid.Trials() {
		names = append(names, TrialName(grid.Trial(index)))
	}
	want := []string{"lr=0.1,layers=2,wd=1e-06", "lr=0.1,layers=2,wd=0.0001", "lr=0.1,layers=2,wd=0.01", "lr=0.1,layers=5,wd=1e-06"}
	if len(names) != 18 || !slices.Equal(names[:4], want) || names[17] != "lr=0.01,layers=8,wd=0.01" {
		t.Errorf("%d trials: %q", len(names), names)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != 18 {
		t.Error("a combination comes twice")
	}
	if grid.Trial(18) != nil || grid.Trial(-1) != nil {
		t.Error("there are trials beyond the last")
	}
	grid.MaxTrials = 5
	if grid.Trials() != 5 {
		t.Errorf("%d trials of at most 5", grid.Trials())
	}
}

// TestRandom: what is drawn lies in its range, comes again from the same seed, and is
// spread as it should be.
func TestRandom(t *testing.T) {
	const trials = 4000
	sweep := &Sweep{Method: SweepRandom, MaxTrials: trials, Seed: 1, Params: []SweepParam{
		{Name: "opt", Values: []string{"adam", "sgd"}},
		{Name: "n", Int: []string{"1", "4"}},
		{Name: "d", Double: []string{"0", "1"}},
		{Name: "lr", Log: []string{"1e-5", "1e-1"}},
	}}
	counts, small, half := map[string]int{}, 0, 0
	for index := range trials {
		values := sweep.Trial(index)
		counts[values[0].Value]++
		counts[values[1].Value]++
		d, err := strconv.ParseFloat(values[2].Value, 64)
		if err != nil || d < 0 || d > 1 {
			t.Fatalf("drawn: %q", values[2].Value)
		}
		lr, err := strconv.ParseFloat(values[3].Value, 64)
		if err != nil || lr < 1e-5 || lr > 0.1 {
			t.Fatalf("drawn: %q", values[3].Value)
		}
		if d < 0.5 {
			half++
		}
		if lr < 1e-3 {
			small++
		}
		if index < 10 && !slices.Equal(values, sweep.Trial(index)) {
			t.Fatal("a trial has other values when it is asked for again")
		}
	}
	even := func(what string, got, parts int) {
		want, deviation := float64(trials)/float64(parts), math.Sqrt(float64(trials)/float64(parts))
		if math.Abs(float64(got)-want) > 4*deviation {
			t.Errorf("%s: %d of %d, want about %.0f", what, got, trials, want)
		}
	}
	even("adam", counts["adam"], 2)
	for _, n := range []string{"1", "2", "3", "4"} {
		even("n="+n, counts[n], 4)
	}
	even("d below the middle", half, 2)
	even("lr below the middle of its orders of magnitude", small, 2)
	other := *sweep
	other.Seed = 2
	if slices.Equal(sweep.Trial(0), other.Trial(0)) {
		t.Error("another seed draws the same")
	}
}

// TestJobOfATrial: what one trial runs with.
func TestJobOfATrial(t *testing.T) {
	job := &Job{Name: "s", Task: Task{Command: "python train.py", Env: map[string]string{"A": "b"}}, Sweep: gridOf(
		SweepParam{Name: "lr", Values: []string{"0.1"}}, SweepParam{Name: "opt.name", Values: []string{"it's"}}, SweepParam{Name: "amp", Values: []string{"true"}},
	)}
	for form, want := range map[string]string{
		"":        "",
		ArgsFlags: `--lr=0.1 '--opt.name=it'\''s' --amp=true`,
		ArgsHydra: `lr=0.1 'opt.name=it'\''s' amp=true`,
		ArgsJSON:  `'{"lr":0.1,"opt.name":"it'\''s","amp":true}'`,
	} {
		job.Sweep.Args = form
		one := job.ForSubjob(0)
		if one.Task.Arguments != want {
			t.Errorf("%s: %s", form, one.Task.Arguments)
		}
		words, err := SplitCommand("x " + one.Task.Arguments)
		if err != nil || form == ArgsJSON && !json.Valid([]byte(words[1])) {
			t.Errorf("%s: %q, %v", form, words, err)
		}
		env := one.Task.Env
		if env["NOMADLIKE_PARAM_LR"] != "0.1" || env["NOMADLIKE_PARAM_OPT_NAME"] != "it's" || env["A"] != "b" || env[EnvSubjobName] != "lr=0.1,opt.name=it's,amp=true" || !json.Valid([]byte(env[EnvParams])) {
			t.Errorf("the environment: %v", env)
		}
		if one.Sweep != nil || one.SubjobCount() != 1 || !one.Batched() || len(job.Task.Env) != 1 {
			t.Errorf("the job of a trial: %+v", one)
		}
	}
	array := &Job{Batch: &Batch{Count: 2, Array: "4,9"}}
	if one := array.ForSubjob(1); one.Task.Env[EnvArrayID] != "9" || one.ForSubjob(1) != one {
		t.Errorf("the job of an array's number: %v", one.Task.Env)
	}
}

// TestSweepsThatCannotBe: each has its own word, and its place.
func TestSweepsThatCannotBe(t *testing.T) {
	values := []string{"1", "2"}
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = strconv.Itoa(i)
	}
	big := SweepParam{Name: "a", Values: hundred}
	b, c := big, big
	b.Name, c.Name = "b", "c"
	for want, sweep := range map[string]*Sweep{
		"sweep job.sweep.no_params":                gridOf(),
		"sweep job.sweep.size":                     gridOf(big, b, c),
		"sweep.param[0].name job.sweep.name":       gridOf(SweepParam{Name: "a b", Values: values}),
		"sweep.param[1].name job.duplicate":        gridOf(SweepParam{Name: "a", Values: values}, SweepParam{Name: "a", Values: values}),
		"sweep.param[1].name job.sweep.variable":   gridOf(SweepParam{Name: "lr", Values: values}, SweepParam{Name: "LR", Values: values}),
		"sweep.param[0] job.sweep.forms":           gridOf(SweepParam{Name: "a", Values: values, Int: values}),
		"sweep.param[0].values[1] job.duplicate":   gridOf(SweepParam{Name: "a", Values: []string{"1", "1"}}),
		"sweep.param[0].values[0] job.sweep.value": gridOf(SweepParam{Name: "a", Values: []string{"$HOME"}}),
		"sweep.param[0].values[0] job.sweep.long":  gridOf(SweepParam{Name: "a", Values: []string{strings.Repeat("x", SweepValueMax+1)}}),
		"sweep.param[0].int job.sweep.range":       gridOf(SweepParam{Name: "a", Int: []string{"8", "1"}}),
		"sweep.param[0].double job.sweep.range":    gridOf(SweepParam{Name: "a", Double: []string{"nan", "1"}}),
		"sweep.param[0].double job.sweep.points":   gridOf(SweepParam{Name: "a", Double: values}),
		"sweep.param[0].log job.sweep.log":         gridOf(SweepParam{Name: "a", Log: []string{"0", "1"}, Count: 2}),
		"sweep.param[0].count job.sweep.whole":     gridOf(SweepParam{Name: "a", Int: values, Count: 3}),
		"sweep.param[0].count job.excludes":        gridOf(SweepParam{Name: "a", Values: values, Count: 2}),
		"sweep.max_trials job.range":               {Method: SweepRandom, Params: []SweepParam{{Name: "a", Values: values}}},
		"sweep.method job.choice":                  {Method: "gird", Params: []SweepParam{{Name: "a", Values: values}}},
	} {
		job := fullJob()
		job.Type, job.Batch, job.Checkpoint, job.Sweep = JobTypeBatch, nil, nil, sweep
		job.SetDefaults()
		var told []string
		for _, problem := range job.Validate() {
			if strings.HasPrefix(problem.Path, "sweep") {
				told = append(told, problem.Path+" "+problem.ID)
			}
		}
		if !slices.Contains(told, want) {
			t.Errorf("want %s, got %q", want, told)
		}
	}
}

// TestArray reads what Slurm takes, and says of the rest which part is wrong.
func TestArray(t *testing.T) {
	for text, want := range map[string]string{
		"0-3": "[0 1 2 3]", "0,6,16-18": "[0 6 16 17 18]", "0-15:4": "[0 4 8 12]", "1-7:2%4": "[1 3 5 7]%4", "5": "[5]", "3,1": "[1 3]", "6,0,16-18,17": "[0 6 16 17 18]",
	} {
		array, err := ParseArray(text)
		got := strings.ReplaceAll(strings.TrimSuffix(sprint(array.IDs)+"%"+strconv.Itoa(array.Parallel), "%0"), ",", " ")
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "job.array.part", "a": "job.array.part", "1-": "job.array.part", "-3": "job.array.part", "1:2": "job.array.part", "0-9:0": "job.array.part",
		"9-1": "job.array.backwards", "0-10000": "job.array.many", "0-3%0": "job.array.bound", "0-3%x": "job.array.bound",
		"0-3%2%2": "job.array.bound", "99999999999": "job.array.part", "1,,2": "job.array.part", strings.Repeat("1,", 4000): "job.array.long",
	} {
		_, err := ParseArray(text)
		if refused := new(Error); !errors.As(err, &refused) || refused.ID != want {
			t.Errorf("%.20s: %v, want %s", text, err, want)
		}
	}
}

func sprint(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return "[" + strings.Join(words, " ") + "]"
}

func FuzzArray(f *testing.F) {
	f.Add("0-99:2%10")
	f.Add("1,3,7")
	f.Fuzz(func(t *testing.T, text string) {
		array, err := ParseArray(text)
		if err != nil {
			return
		}
		if len(array.IDs) == 0 || len(array.IDs) > BatchCountMax || !slices.IsSorted(array.IDs) || array.Parallel < 0 {
			t.Errorf("%q: %v", text, array)
		}
	})
}
