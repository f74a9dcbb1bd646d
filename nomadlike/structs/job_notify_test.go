package structs_test

import (
	"slices"
	"testing"

	. "nomadlike/nomadlike/structs"
)

// A job says kinds of happenings to jobs, each once, and one channel.
func TestWhatAJobHasTold(t *testing.T) {
	many := append(JobNotifyKinds(), NotifyFailed)
	for _, c := range []struct {
		notify *JobNotify
		want   []string
	}{
		{nil, nil},
		{&JobNotify{On: []string{NotifyFailed, NotifyExpired}, To: "team"}, nil},
		{&JobNotify{On: JobNotifyKinds(), To: ChannelBell}, nil},
		{&JobNotify{To: "team"}, []string{"notify.on job.missing"}},
		{&JobNotify{On: []string{NotifyFailed}}, []string{"notify.to name.empty"}},
		{&JobNotify{On: []string{NotifyFailed}, To: "../team"}, []string{"notify.to secret.name_characters"}},
		{&JobNotify{On: []string{"lunch"}, To: "team"}, []string{"notify.on[0] job.choice"}},
		{&JobNotify{On: []string{NotifyFailed, NotifyNodes}, To: "team"}, []string{"notify.on[1] job.choice"}},
		{&JobNotify{On: []string{NotifyQuota}, To: "team"}, []string{"notify.on[0] job.choice"}},
		{&JobNotify{On: []string{NotifyFailed, NotifyFailed}, To: "team"}, []string{"notify.on[1] job.duplicate"}},
		{&JobNotify{On: many, To: "team"}, []string{"notify.on job.too_many"}},
	} {
		job := smallJob()
		job.Notify = c.notify
		project := &Project{Name: "speech", JobDefaults: JobDefaults{Notify: c.notify}}
		var ofJob, ofProject []string
		for _, problem := range job.Validate() {
			ofJob = append(ofJob, problem.Path+" "+problem.ID)
		}
		for _, problem := range project.Validate() {
			ofProject = append(ofProject, problem.Path+" "+problem.ID)
		}
		for i := range ofProject {
			if after, ok := cutDefaults(ofProject[i]); ok {
				ofProject[i] = after
			}
		}
		if !slices.Equal(ofJob, c.want) || !slices.Equal(ofProject, c.want) {
			t.Errorf("%+v: %q, of a project %q, want %q", c.notify, ofJob, ofProject, c.want)
		}
	}
}

func cutDefaults(path string) (string, bool) {
	const prefix = "defaults."
	if len(path) > len(prefix) && path[:len(prefix)] == prefix {
		return path[len(prefix):], true
	}
	return path, false
}

// What a project has told is the default of jobs that say nothing of it, whole, and is
// shown as the project's.
func TestAProjectHasItsJobsTold(t *testing.T) {
	project := &Project{Name: "speech", JobDefaults: JobDefaults{Notify: &JobNotify{On: []string{NotifyFailed, NotifySlow}, To: "team"}}}
	job := smallJob()
	var got []string
	for _, d := range project.SetDefaults(job) {
		got = append(got, d.Path+" = "+d.Value)
	}
	if want := []string{"notify.on = failed, slow", "notify.to = team"}; !slices.Equal(got, want) {
		t.Errorf("chosen %q, want %q", got, want)
	}
	if job.Notify.On[0] = NotifyHeld; project.JobDefaults.Notify.On[0] != NotifyFailed {
		t.Error("a job shares what its project says")
	}
	own := smallJob()
	own.Notify = &JobNotify{On: []string{NotifyHeld}, To: ChannelBell}
	if chosen := project.SetDefaults(own); len(chosen) != 0 || own.Notify.To != ChannelBell {
		t.Errorf("chosen %v for %+v", chosen, own.Notify)
	}
}
