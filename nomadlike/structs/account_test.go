package structs

import (
	"slices"
	"testing"
)

// Root is for jobs that were admitted by the rules of a pool that allows it, and
// nobody is bound to it.
func TestRootNeedsItsPool(t *testing.T) {
	open := &Pool{Name: "open", Exec: &PoolExec{Root: true, Accounts: Accounts{Users: map[string]string{"li": "li"}, Projects: map[string]string{"vision": "vision"}}}}
	job := func(edit func(*Job)) *Job {
		j := &Job{User: "wang", Project: "speech"}
		edit(j)
		return j
	}
	for name, try := range map[string]struct {
		pool *Pool
		job  *Job
		want *RunAs
	}{
		"no record":         {nil, job(func(*Job) {}), nil},
		"nothing said":      {&Pool{Name: "open"}, job(func(*Job) {}), nil},
		"named":             {open, job(func(j *Job) { j.Placement.Pool = "open" }), &RunAs{Root: true}},
		"any pool":          {open, job(func(*Job) {}), &RunAs{}},
		"by a node":         {open, job(func(j *Job) { j.Placement.Nodes = []string{"n1"} }), &RunAs{}},
		"user and project":  {open, job(func(j *Job) { j.User, j.Project = "li", "vision" }), &RunAs{Accounts: []string{"li", "vision"}}},
		"another's project": {open, job(func(j *Job) { j.Project = "vision" }), &RunAs{Accounts: []string{"vision"}}},
	} {
		got := try.pool.RunAs(try.job)
		if (got == nil) != (try.want == nil) || got != nil && (got.Root != try.want.Root || !slices.Equal(got.Accounts, try.want.Accounts)) {
			t.Errorf("%s: %+v, want %+v", name, got, try.want)
		}
	}
	bad := &Pool{Name: "bad", Exec: &PoolExec{Accounts: Accounts{Users: map[string]string{"li": "root"}, Projects: map[string]string{"p": "0:0", "q": "a b"}}}}
	var ids []string
	for _, problem := range bad.Validate() {
		ids = append(ids, problem.Path+" "+problem.ID)
	}
	if want := []string{`exec.users["li"] pool.account_root`, `exec.projects["p"] pool.account_root`, `exec.projects["q"] job.user`}; !slices.Equal(ids, want) {
		t.Errorf("problems %q, want %q", ids, want)
	}
}
