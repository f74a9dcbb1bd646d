package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// toldCase is a job and what its owner is told of it, each kind in one message.
type toldCase struct {
	name, file string
	act        func(t *testing.T, client *api.Client, jobID string)
	want       map[string]int
}

// watchedJob begins a job file of one rank.
const watchedJob = `
job "NAME" {
  project = "speech"
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
`

// Whatever happens to a job is one message of its kind, however many events and ranks
// say it; and a restart for its performance reads so in its history.
func TestEachHappeningIsOneMessage(t *testing.T) {
	yes, dir := true, openDir(t)
	options := testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &dir}, options)
	admin := savedClient(t, options)
	letRoot(t, admin)
	ctx := t.Context()
	for _, c := range []toldCase{
		{
			name: "faulty", want: map[string]int{structs.NotifyStarted: 1, structs.NotifyResumed: 1, structs.NotifySucceeded: 1},
			file: `restart { max_restarts = 1 }
  task { command = "sh -c 'sleep 0.3; test $NOMADLIKE_ATTEMPT = 2'" }
}`,
		},
		{
			name: "slow", want: map[string]int{structs.NotifyStarted: 1, structs.NotifySlow: 1, structs.NotifyResumed: 1, structs.NotifySucceeded: 1},
			file: `checkpoint {
    max_resumes = 2
    performance {
      threshold = 0.7
      action    = "reschedule"
      compare   = "lt"
      pattern   = "([0-9.]+) of ([0-9.]+)"
      times     = 3
    }
  }
  task { command = "sh -c 'test $NOMADLIKE_ATTEMPT = 2 || for i in 1 2 3 4 5 6; do echo 3 of 10; sleep 0.2; done; test $NOMADLIKE_ATTEMPT = 2 || sleep 600'" }
}`,
		},
		{
			name: "alarmed", want: map[string]int{structs.NotifyStarted: 1, structs.NotifySlow: 1, structs.NotifySucceeded: 1},
			file: `checkpoint {
    performance {
      threshold = 0.7
      action    = "alert"
      compare   = "lt"
      pattern   = "([0-9.]+) of ([0-9.]+)"
      times     = 2
    }
  }
  task { command = "sh -c 'for i in 1 2 3 4 5 6 7 8; do echo 3 of 10; sleep 0.1; done'" }
}`,
		},
		{
			name: "hung", want: map[string]int{structs.NotifyStarted: 1, structs.NotifySlow: 1, structs.NotifyResumed: 1, structs.NotifySucceeded: 1},
			file: `restart { max_restarts = 1 }
  stop_grace = "1s"
  hang {
    action = "reschedule"
    factor = 3
    least  = "2s"
    most   = "2m"
  }
  task { command = "sh -c 'for step in 1 2 3 4 5 6; do echo step $step; sleep 0.2; done; test $NOMADLIKE_ATTEMPT = 2 || while :; do echo waiting; sleep 1; done'" }
}`,
		},
		{
			name: "limited", want: map[string]int{structs.NotifyStarted: 1, structs.NotifyExpired: 1},
			file: `time_limit = "1s"
  stop_grace = "1s"
  task { command = "sleep 600" }
}`,
		},
		{
			name: "debugged", want: map[string]int{structs.NotifyStarted: 1, structs.NotifyHeld: 1, structs.NotifyFailed: 1},
			file: `debug { hold = "1m" }
  task { command = "sh -c 'sleep 0.3; exit 1'" }
}`,
			act: func(t *testing.T, client *api.Client, jobID string) {
				if _, err := client.StopJob(t.Context(), jobID, api.JobStopRequest{Release: structs.ReleaseHold}); err != nil {
					t.Error(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			user := "owner-" + c.name
			client := personIn(t, admin, user, "speech")
			var rules []structs.NotifyRule
			for _, kind := range structs.NotifyKinds() {
				if !structs.NotifyOperators(kind) {
					rules = append(rules, structs.NotifyRule{Kind: kind, Channels: []string{structs.ChannelBell}})
				}
			}
			if _, err := client.SetNotify(ctx, api.NotifyRequest{On: rules}); err != nil {
				t.Fatal(err)
			}
			submitted, err := client.SubmitJob(ctx, api.JobRequest{HCL: strings.Replace(watchedJob, "NAME", c.name, 1) + "  " + c.file}, "")
			if err != nil {
				t.Fatalf("%v %+v", err, err)
			}
			told := func() map[string]int {
				kinds := map[string]int{}
				for _, n := range agent.store.Snapshot().Notifications(user) {
					kinds[n.Kind]++
				}
				return kinds
			}
			if c.act != nil {
				eventually.Within(t, 40*time.Second, "a message", func() bool { return told()[structs.NotifyHeld] > 0 })
				c.act(t, client, submitted.JobID)
			}
			eventually.Within(t, 40*time.Second, fmt.Sprintf("%v", c.want), func() bool {
				for kind := range c.want {
					if told()[kind] == 0 {
						return false
					}
				}
				return true
			})
			if got := told(); !maps.Equal(got, c.want) {
				t.Errorf("told %v, want %v", got, c.want)
			}
			if c.name == "slow" {
				readsSlow(t, client, submitted.JobID, agent.store.Snapshot().Notifications(user))
			}
		})
	}
}

// personIn makes an account in a project, and returns it as a caller.
func personIn(t *testing.T, admin *api.Client, name, project string) *api.Client {
	t.Helper()
	ctx := t.Context()
	if _, err := admin.PutUser(ctx, &structs.User{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.SetMember(ctx, project, api.MemberRequest{User: name, Role: structs.RoleUser}); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CreateToken(ctx, api.TokenRequest{Role: structs.RoleAccount, User: name})
	if err != nil {
		t.Fatal(err)
	}
	return admin.WithToken(token.Secret).In(project)
}

// readsSlow looks how a restart for its performance reads: nothing was lost.
func readsSlow(t *testing.T, client *api.Client, jobID string, told []*structs.Notification) {
	t.Helper()
	events, _, err := client.JobEvents(t.Context(), jobID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, event := range events.Events {
		ids = append(ids, event.ID)
	}
	for _, id := range []string{"event.attempt.ending_slow", "event.job.requeued_slow"} {
		if !slices.Contains(ids, id) {
			t.Errorf("the history has no %s: %q", id, ids)
		}
	}
	if slices.Contains(ids, "event.job.requeued") {
		t.Errorf("the history says that it was lost: %q", ids)
	}
	for _, n := range told {
		want := map[string]string{structs.NotifySlow: "notify.what.moved", structs.NotifyResumed: structs.ReasonSlow}[n.Kind]
		if want != "" && (n.Cause == nil || n.Cause.ID != want) {
			t.Errorf("%s is told with the cause %+v, want %s", n.Kind, n.Cause, want)
		}
	}
}
