package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/audit"
)

const (
	batchMax   = 256 << 10 // bytes that are sent at a time, about
	retryFirst = time.Second
	retryMax   = time.Minute
)

// Source is the chain that is sent on; journal.Journal is one.
type Source interface {
	// After returns whole lines that are on the disk, from behind a number on.
	After(seq uint64, most int) ([]byte, error)
	// Changed returns a channel that is closed when there is more than now.
	Changed() <-chan struct{}
	// Append adds a record.
	Append(r audit.Record) error
}

// Target takes lines, each a record with its newline. What it returns without an
// error for it has taken.
type Target interface {
	Send(ctx context.Context, lines []byte) error
	Close() error
}

// Forwarder sends one chain to one target. Run is called once.
type Forwarder struct {
	Name   string // of the target, for people
	From   Source
	To     Target
	Cursor string // file with the number of the last line that the target has taken
	Log    *slog.Logger
}

// Run sends until ctx ends.
func (f *Forwarder) Run(ctx context.Context) {
	defer func() { _ = f.To.Close() }()
	last, err := f.load()
	if err != nil {
		f.Log.Warn("audit records are forwarded from the first one on", "to", f.Name, logkey.Error, err)
	}
	retry := retryFirst
	for {
		changed := f.From.Changed()
		next, err := f.step(ctx, last)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.Log.Warn("audit records are not forwarded", "to", f.Name, logkey.Error, err)
			if !wait(ctx, retry) {
				return
			}
			retry = min(2*retry, retryMax)
		case next == last:
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		default:
			last, retry = next, retryFirst
		}
	}
}

func wait(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// step sends what comes behind a line, and returns the number of the last one
// that was taken.
func (f *Forwarder) step(ctx context.Context, last uint64) (uint64, error) {
	lines, err := f.From.After(last, batchMax)
	if err != nil || len(lines) == 0 {
		return last, err
	}
	first, err := audit.Parse(lines[:bytes.IndexByte(lines, '\n')+1])
	if err != nil {
		return last, err
	}
	if err := f.To.Send(ctx, lines); err != nil {
		return last, err
	}
	if missed := first.Seq - last - 1; missed > 0 && last > 0 {
		_ = f.From.Append(audit.Record{
			Action: audit.ActionUnsent, Actor: audit.Actor{Kind: "server", User: first.Server}, Object: audit.Object{Kind: "audit", ID: f.Name},
			Outcome: audit.Failed, Count: int(missed),
		})
	}
	whole := bytes.TrimSuffix(lines, []byte{'\n'})
	end, err := audit.Parse(whole[bytes.LastIndexByte(whole, '\n')+1:])
	if err != nil {
		return last, err
	}
	return end.Seq, f.save(end.Seq)
}

func (f *Forwarder) load() (uint64, error) {
	data, err := os.ReadFile(f.Cursor)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read place in the audit record: %w", err)
	}
	seq, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read place in the audit record: %w", err)
	}
	return seq, nil
}

// save puts the number in the place of the one before. After a power cut it may be
// an earlier one: lines are then sent again.
func (f *Forwarder) save(seq uint64) error {
	next := f.Cursor + ".next"
	if err := os.WriteFile(next, []byte(strconv.FormatUint(seq, 10)+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep place in the audit record: %w", err)
	}
	if err := os.Rename(next, f.Cursor); err != nil {
		return fmt.Errorf("keep place in the audit record: %w", err)
	}
	return nil
}
