package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
)

// A program that asks all the time costs an entry a minute, several that ask within a
// second one entry together; people's tokens cost none, and what is not stored is told
// again.
func TestUsesOfTokensAreToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex // tellings of different times are ordered by nothing else
		var told []string
		var failure error
		uses := newTokenUses(time.Now, slog.New(slog.DiscardHandler), func(_ context.Context, uses structs.TokensUsed) error {
			lock.Lock()
			defer lock.Unlock()
			told = append(told, fmt.Sprintf("%d from %s", len(uses.Uses), uses.Uses[0].From))
			return failure
		})
		ci := &structs.Token{ID: "ci", User: "service+vision+ci"}
		for range 90 * 10 {
			uses.note(ci, "192.0.2.1")
			uses.note(&structs.Token{ID: "ann's", User: "ann"}, "192.0.2.1")
			<-time.After(100 * time.Millisecond)
		}
		synctest.Wait()
		if got := fmt.Sprint(told); got != "[1 from 192.0.2.1 1 from 192.0.2.1]" {
			t.Errorf("in 90 seconds: %s", got)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		told = nil
		for i := range 2 * structs.TokenUsesMax {
			uses.note(&structs.Token{ID: fmt.Sprint(i), User: "service+board"}, "192.0.2.2")
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(told); got != fmt.Sprintf("[%d from 192.0.2.2]", structs.TokenUsesMax) {
			t.Errorf("many at once: %s", got)
		}
		if len(uses.mu.told) != structs.TokenUsesMax {
			t.Errorf("%d are remembered", len(uses.mu.told))
		}
		told, failure = nil, errors.New("no leader")
		uses.note(ci, "192.0.2.3")
		<-time.After(2 * time.Second)
		synctest.Wait()
		failure = nil
		<-time.After(time.Minute)
		uses.note(ci, "192.0.2.4")
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(told); got != "[1 from 192.0.2.3 1 from 192.0.2.4]" {
			t.Errorf("after a failure: %s", got)
		}
		if len(uses.mu.told) != 1 {
			t.Errorf("%d are remembered", len(uses.mu.told))
		}
	})
}
