package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"nomadlike/nomadlike/structs"
)

// One user's many previews delay only that user's: another waits for one of them,
// a third for one of each, and a look for none that waits.
func TestPreviewsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFairQueue()
		leave, err := q.enter(t.Context(), Asker{User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		var served []string
		var group sync.WaitGroup
		ask := func(user string, ctx context.Context) {
			group.Go(func() {
				leave, err := q.enter(ctx, Asker{User: user})
				if err != nil {
					return
				}
				served = append(served, user) // one at a time
				leave()
			})
			synctest.Wait()
		}
		for range 300 {
			ask("ann", t.Context())
		}
		gone, cancel := context.WithCancel(t.Context())
		ask("dan", gone)
		ask("bob", t.Context())
		ask("cem", t.Context())
		ask("bob", t.Context())
		group.Go(func() {
			q.enterFirst()
			served = append(served, "look")
			q.leave()
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		leave()
		group.Wait()
		if got := strings.Join(served[:7], " "); got != "look ann bob cem ann bob ann" || len(served) != 304 {
			t.Errorf("%d were served, first %s", len(served), got)
		}
		if q.mu.taken || len(q.mu.rows)+len(q.mu.order) > 0 {
			t.Errorf("left over: %+v", &q.mu)
		}
	})
}

// Places are bounded by user, by project and in all, and a user who has none gets one.
func TestPreviewsAreBounded(t *testing.T) {
	refusal := func(err error) string {
		if err == nil {
			return ""
		}
		var told *structs.Error
		if !errors.As(err, &told) {
			t.Fatal(err)
		}
		return told.ID
	}
	q := newFairQueue()
	count := func(who Asker) (places int, why string) {
		for ; ; places++ {
			if why = refusal(q.reserve(who)); why != "" {
				return places, why
			}
		}
	}
	if places, why := count(Asker{"ann", "vision"}); places != PreviewsUserMax || why != "server.previews_user" {
		t.Errorf("a user has %d, then %s", places, why)
	}
	for i := range PreviewsProjectMax/PreviewsUserMax - 1 {
		count(Asker{fmt.Sprint("user-", i), "vision"})
	}
	if places, why := count(Asker{"bob", "vision"}); places != 1 || why != "server.previews_project" {
		t.Errorf("the last of a project has %d, then %s", places, why)
	}
	var others []Asker
	for i := 0; q.mu.reserved < PreviewsMax; i++ {
		others = append(others, Asker{fmt.Sprint("other-", i), fmt.Sprint("project-", i)})
		count(others[i])
	}
	if places, why := count(Asker{"cem", "speech"}); places != 1 || why != "server.previews_all" {
		t.Errorf("the last of all has %d, then %s", places, why)
	}
	q.release(Asker{"ann", "vision"})
	if why := refusal(q.reserve(Asker{"ann", "vision"})); why == "server.previews_user" || !slices.Contains([]string{"server.previews_project", "server.previews_all"}, why) {
		t.Errorf("after one was answered: %q", why)
	}
}
