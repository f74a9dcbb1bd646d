package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"nomadlike/nomadlike/consensus"
)

// restoreMax bounds how often and for how long a restore is tried.
const restoreMax = 30 * time.Second

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
		failure := error(nil)
		if err := wait(ctx, patient(restoreMax), "the state of the archive", func(ctx context.Context) bool {
			o := operation{Act: bring, Via: s.hit[0].name, Call: h.now()}
			var changed uint64
			answer, err := c.all.RestoreSnapshot(ctx, bytes.NewReader(data))
			if err == nil {
				changed = answer.Index
			}
			o.Return, o.Outcome = h.now(), judge(err)
			h.operation(o)
			if failure = err; err != nil {
				return false
			}
			h.ends(r, o.Return, changed)
			return true
		}); err != nil {
			return fmt.Errorf("restore a snapshot: %w, last: %w", err, failure)
		}
		return nil
	})
	return nil
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
