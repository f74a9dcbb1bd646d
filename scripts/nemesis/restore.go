package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/consensus"
)

// How long a restore is tried, and one server is asked for it.
const (
	restoreMax = 30 * time.Second // while the leader stays
	restoreTry = 10 * time.Second
	// unsteadyMax is how many times as long it is tried where leaders come and go.
	unsteadyMax = 3
)

// restored is one return to an older state. What was acknowledged after it was
// saved and before it was back is rightly gone; everything else is not.
type restored struct {
	Saved, Done int64  // nanoseconds since the run began: from when on, and until when, what was acknowledged may be gone
	From, To    uint64 // indexes of the log: events after From and up to To may be gone
}

// restore saves the state while people write, lets them go on, and brings the
// state back. Registers see both as operations of their own.
func restore(ctx context.Context, s *strike) error {
	h, c := s.history, s.cluster
	s.hit = leader(ctx, s)
	archive, err := os.Create(filepath.Join(c.dir, "archive"))
	if err != nil {
		return err
	}
	defer archive.Close()
	var saved operation
	var index uint64
	failure := error(nil)
	if err := wait(ctx, patient(restoreMax), "an archive", func(ctx context.Context) bool {
		var archived bytes.Buffer
		saved = operation{Act: save, Via: s.hit[0].name, Call: h.now()}
		if _, failure = c.all.SaveSnapshot(ctx, &archived); failure != nil {
			return false
		}
		saved.Return = h.now()
		meta, err := consensus.InspectSnapshot(bytes.NewReader(archived.Bytes()))
		if failure = err; err != nil {
			return false
		}
		index = meta.Index
		_, failure = archive.Write(archived.Bytes())
		return true
	}); err != nil || failure != nil {
		return fmt.Errorf("save a snapshot: %w, last: %w", err, failure)
	}
	h.operation(saved)
	r := h.begins(restored{Saved: saved.Call, Done: forever, From: index, To: math.MaxUint64})
	s.undone(func(ctx context.Context) error {
		data, err := os.ReadFile(archive.Name())
		if err != nil {
			return err
		}
		return bringBack(ctx, s, r, data)
	})
	return nil
}

// bringBack asks one server after the other for the state of an archive.
func bringBack(ctx context.Context, s *strike, r int, data []byte) error {
	h, c := s.history, s.cluster
	return insist(ctx, patient(restoreMax), patient(restoreTry), c.servers(), c.term, func(ctx context.Context, via *host) error {
		o := operation{Act: bring, Via: via.name, Call: h.now()}
		answer, err := via.client.RestoreSnapshot(ctx, bytes.NewReader(data))
		o.Return, o.Outcome = h.now(), judge(err)
		h.operation(o)
		if err == nil {
			h.ends(r, o.Return, answer.Index)
		}
		return err
	})
}

// insist asks servers in turn until one does what it is asked for, each for at most
// try: one that hangs leaves time to the others. It gives up when they failed for limit
// while the leader stayed, and after unsteadyMax times as long in any case.
func insist(ctx context.Context, limit, try time.Duration, servers []*host, term func(context.Context) uint64, ask func(context.Context, *host) error) error {
	var tries attempts
	begin := time.Now()
	err := wait(ctx, unsteadyMax*limit, "the state of the archive", func(ctx context.Context) bool {
		via, before := servers[len(tries)%len(servers)], term(ctx)
		asking, cancel := context.WithTimeout(ctx, try)
		defer cancel()
		err := ask(asking, via)
		if err == nil {
			tries = nil
			return true
		}
		tries = append(tries, attempt{via.name, time.Since(begin), before != 0 && term(ctx) == before, err})
		begin = time.Now()
		return tries.steady() >= limit
	})
	if err != nil || len(tries) > 0 {
		return fmt.Errorf("restore a snapshot: %s", tries)
	}
	return nil
}

// attempt is one request for the state of an archive that failed.
type attempt struct {
	via    string
	took   time.Duration // from the one before on
	steady bool          // servers told their term, and none began another meanwhile: whoever led, led on
	err    error
}

type attempts []attempt

// steady is for how long a restore failed although the leader stayed. A leader
// that goes takes the requests that are under way with it, and where processors are
// wanting no leader may stay for as long as an archive takes.
func (all attempts) steady() (spent time.Duration) {
	for _, one := range all {
		if one.steady {
			spent += one.took
		}
	}
	return spent
}

// String tells how the attempts ended, those that ended in the same way together.
func (all attempts) String() string {
	var order []string
	times, longest, total := map[string]int{}, map[string]time.Duration{}, time.Duration(0)
	for _, one := range all {
		text := fmt.Sprintf("%s: %v", one.via, one.err)
		if times[text] == 0 {
			order = append(order, text)
		}
		times[text]++
		longest[text] = max(longest[text], one.took)
		total += one.took
	}
	for k, text := range order {
		order[k] = fmt.Sprintf("%d × %s (%.1f s at most)", times[text], text, longest[text].Seconds())
	}
	return fmt.Sprintf("%d attempts failed in %.0f s, of which the leader stayed for %.0f s: %s",
		len(all), total.Seconds(), all.steady().Seconds(), strings.Join(order, "; "))
}

// restoreAfterLoss cuts a client off while the state goes on that will be given up:
// gangs have newer attempts than the state that comes back knows.
func restoreAfterLoss(ctx context.Context, s *strike) error {
	on := s.cluster.ranks()["stayer-0"]
	if err := restore(ctx, s); err != nil {
		return err
	}
	lost := client(ctx, s)
	if len(on) > 0 {
		lost = []*host{s.cluster.named(on[s.chance.IntN(len(on))])}
	}
	return cut(func(context.Context, *strike) []*host { return lost })(ctx, s)
}

// begins notes that a state was saved which will be brought back, and returns
// its number.
func (h *history) begins(r restored) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.restores = append(h.mu.restores, r)
	return len(h.mu.restores) - 1
}

// ends notes that the state is back.
func (h *history) ends(r int, at int64, index uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.restores[r].Done, h.mu.restores[r].To = at, index
}

// keepState saves the state of the end beside the logs, for whoever looks for
// the cause of what was found.
func keepState(ctx context.Context, c *cluster) {
	file, err := os.Create(filepath.Join(c.dir, "state"))
	if err != nil {
		say("keep the state: %v", err)
		return
	}
	defer file.Close()
	if _, err := c.all.SaveSnapshot(ctx, file); err != nil {
		say("keep the state: %v", err)
	}
}

// mayBeGone reports whether a job may rightly be missing: its submission was
// under way, or acknowledged, after a state was saved that came back.
func mayBeGone(s *submission, restores []restored) bool {
	for _, r := range restores {
		if s.Acked >= r.Saved && s.Asked <= r.Done {
			return true
		}
	}
	return false
}

func (h *history) mayBeGone(s *submission) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return mayBeGone(s, h.mu.restores)
}

// isUndone reports whether an event was of a state that was given up.
func isUndone(at position, restores []restored) bool {
	for _, r := range restores {
		if at.Index > r.From && at.Index <= r.To {
			return true
		}
	}
	return false
}
