package httpapi

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// What 50 ask of one forecast is written once; those who may see something else,
// and those who look at the next forecast, get their own.
func TestAnswersOfAForecastAreWrittenOnce(t *testing.T) {
	kept := new(views)
	var draws atomic.Int64
	ask := func(of *server.ForecastSnapshot, key string) string {
		answer, err := drawn(kept, of, key, func() *int64 { return new(draws.Add(1)) })
		if err != nil {
			t.Error(err)
			return ""
		}
		return string(answer.Data)
	}
	first, second := &server.ForecastSnapshot{At: 1}, &server.ForecastSnapshot{At: 2}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if got := ask(first, "timeline all"); got != "1\n" {
				t.Errorf("one of 50: %s", got)
			}
		})
	}
	group.Wait()
	if got := ask(first, "timeline 01"); got != "2\n" {
		t.Errorf("who may see less: %s", got)
	}
	if got := ask(second, "timeline all"); got != "3\n" {
		t.Errorf("the next forecast: %s", got)
	}
	if got := ask(first, "timeline all"); got != "4\n" || len(kept.mu.made) != 1 || kept.mu.of != second {
		t.Errorf("who still has the old one: %s, kept %d", got, len(kept.mu.made))
	}
	for i := range 2 * viewsMax {
		ask(second, fmt.Sprint("timeline ", i))
	}
	if len(kept.mu.made) != viewsMax {
		t.Errorf("%d are kept", len(kept.mu.made))
	}
}

// Who counts as reading everything may read every job that there can be.
func TestReadsAllMeansAll(t *testing.T) {
	all := 0
	for _, role := range []auth.UserRole{"", auth.RoleViewer, auth.RoleUser, auth.RoleProjectAdmin, auth.RoleOperator, auth.RoleAdmin} {
		for _, kind := range []auth.PrincipalKind{auth.KindUser, auth.KindGuest, auth.KindBoard, auth.KindNode, auth.KindServer} {
			for _, of := range []string{"", "vision"} {
				r := &front.Request{Caller: front.Caller{Principal: auth.Principal{Kind: kind, ID: "li", Role: role, Project: of}}}
				if !readsAll(r) {
					continue
				}
				all++
				for _, project := range []string{"vision", "speech"} {
					for _, owner := range []string{"li", "ada", ""} {
						for _, access := range []string{"private", structs.AccessReadOnly, structs.AccessReadWrite} {
							if job := (&structs.Job{ID: "j", Project: project, User: owner, Access: access}); !mayRead(r, job) {
								t.Errorf("%s %s of %q does not read %+v", kind, role, of, job)
							}
						}
					}
				}
			}
		}
	}
	if all != 2 {
		t.Errorf("%d sorts of callers read all, want operators and administrators", all)
	}
}
