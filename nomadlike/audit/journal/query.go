package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

// linesLooked bounds the lines that one query looks at; it goes on from there
// when it is asked to.
const linesLooked = 500_000

// Page is a part of what a query found, newest first.
type Page struct {
	Records []audit.Record
	Next    string           // cursor of the next page; empty: there is no more
	Until   structs.UnixNano // where the look broke off, before it had found a page; 0: it did not
}

// found is what a query found in one chain, newest first.
type found struct {
	server  string
	records []audit.Record
	taken   int              // of the records
	at      uint64           // the line from before which to go on; 0: there is none
	stopped structs.UnixNano // time of the last line that was looked at, where the look broke off
}

// Query looks for records in all chains, from behind a cursor on, and returns so
// many at most.
func (j *Journal) Query(ctx context.Context, filter audit.Filter, after string, limit int) (Page, error) {
	from, err := j.parseCursor(after)
	if err != nil {
		return Page{}, err
	}
	budget := linesLooked / max(len(from), 1) // of each: none may keep another from going on
	var all []*found
	chains := j.chains()
	for _, server := range slices.Sorted(maps.Keys(from)) {
		one, err := chains[server].look(ctx, filter, from[server], limit, budget)
		if err != nil {
			return Page{}, err
		}
		all = append(all, one)
	}
	return merge(all, limit), nil
}

// merge takes the newest records of what was found, in the order of each chain.
func merge(all []*found, limit int) Page {
	page := Page{Records: []audit.Record{}}
	for _, one := range all {
		page.Until = max(page.Until, one.stopped)
	}
	for len(page.Records) < limit {
		var newest *found
		for _, one := range all {
			if one.taken < len(one.records) && (newest == nil || one.records[one.taken].Time > newest.records[newest.taken].Time) {
				newest = one
			}
		}
		if newest == nil || newest.records[newest.taken].Time < page.Until {
			break // what is older may have something newer before it, where the look broke off
		}
		page.Records = append(page.Records, newest.records[newest.taken])
		newest.taken++
	}
	if len(page.Records) == limit {
		page.Until = 0
	}
	var next []string
	for _, one := range all {
		at := one.at
		if one.taken < len(one.records) {
			at = one.records[one.taken].Seq + 1
		}
		if at > 0 {
			next = append(next, one.server+":"+strconv.FormatUint(at, 10))
		}
	}
	page.Next = strings.Join(next, ",")
	return page
}

// parseCursor returns for each chain the line from before which to look; all of
// each for an empty cursor.
func (j *Journal) parseCursor(text string) (map[string]uint64, error) {
	from := make(map[string]uint64)
	chains := j.chains()
	if text == "" {
		for server, c := range chains {
			_, head := c.written()
			from[server] = head.Seq + 1
		}
		return from, nil
	}
	for _, part := range strings.Split(text, ",") {
		server, at, _ := strings.Cut(part, ":")
		seq, err := strconv.ParseUint(at, 10, 64)
		if err != nil || chains[server] == nil {
			return nil, fmt.Errorf("read cursor of audit records: %q", part)
		}
		from[server] = seq
	}
	return from, nil
}

// look looks for records of a chain before a line, the newest first.
func (c *chain) look(ctx context.Context, filter audit.Filter, before uint64, limit, budget int) (*found, error) {
	out := &found{server: c.server}
	files, _ := c.written()
	for _, file := range slices.Backward(files) {
		if file.First >= before || filter.Until > 0 && file.Begun > filter.Until {
			continue
		}
		if filter.Since > 0 && file.Newest < filter.Since {
			return out, nil
		}
		done, err := c.lookAt(ctx, file, filter, before, limit, &budget, out)
		if done || err != nil {
			return out, err
		}
	}
	return out, nil
}

func (c *chain) lookAt(ctx context.Context, file audit.File, filter audit.Filter, before uint64, limit int, budget *int, out *found) (bool, error) {
	in, err := os.Open(filepath.Join(c.dir, fileName(file.First)))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // it was too old a moment ago
	}
	if err != nil {
		return false, fmt.Errorf("read audit record: %w", err)
	}
	defer in.Close()
	for line, err := range backward(in, file.Size) {
		if err != nil {
			return false, err
		}
		*budget--
		if *budget < 0 || ctx.Err() != nil {
			if r, err := audit.Parse(line); err == nil && r.Seq < before {
				out.at, out.stopped = r.Seq+1, r.Time
				return true, nil
			}
			continue // from which number to go on, the next line says
		}
		r := filter.Line(line)
		if r == nil || r.Seq >= before {
			continue
		}
		out.records = append(out.records, *r)
		if len(out.records) > limit { // one more than is asked for says that there is more
			return true, nil
		}
	}
	return false, nil
}

// State is how a chain is on this server's disk.
type State struct {
	Server string
	First  uint64 // number of the first line that is kept; 0: there is none
	Last   uint64 // of the last one that follows
	Hash   string // of that
	At     structs.UnixNano
	Lines  int
	Broken *audit.BrokenError // the first line that does not follow; nil: the chain is whole
	File   string             // that has it
}

// Check reads all chains that are here and verifies them.
func (j *Journal) Check(ctx context.Context) ([]State, error) {
	chains := j.chains()
	var states []State
	for _, server := range slices.Sorted(maps.Keys(chains)) {
		state, err := chains[server].check(ctx)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

func (c *chain) check(ctx context.Context) (State, error) {
	files, _ := c.written()
	walked := audit.Chain{Server: c.server}
	state := State{Server: c.server}
	for _, file := range files {
		in, err := os.Open(filepath.Join(c.dir, fileName(file.First)))
		if errors.Is(err, fs.ErrNotExist) && walked.First == 0 && file.First != files[len(files)-1].First {
			if now, _ := c.written(); len(now) > 0 && now[0].First > file.First {
				continue // it was too old a moment ago
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return state, fmt.Errorf("read audit record: %w", err)
		}
		if err == nil {
			err = checkFile(ctx, in, file, &walked, &state)
			_ = in.Close()
		} else {
			state.Broken, err = &audit.BrokenError{Line: 1, Seq: file.First, How: audit.BreakMissing}, nil
		}
		if err != nil || state.Broken != nil {
			state.File = fileName(file.First)
			break
		}
	}
	state.First, state.Last, state.Hash, state.Lines = walked.First, walked.Head.Seq, walked.Head.Hash, walked.Lines
	return state, ctx.Err()
}

func checkFile(ctx context.Context, in *os.File, file audit.File, walked *audit.Chain, state *State) error {
	before, size := walked.Lines, int64(0)
	for line, err := range forward(in) {
		if errors.Is(err, bufio.ErrBufferFull) {
			state.Broken = &audit.BrokenError{Line: walked.Lines - before + 1, Seq: walked.Head.Seq + 1, How: audit.BreakUnreadable}
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if size += int64(len(line)); size > file.Size {
			return nil // it was written meanwhile
		}
		r, err := walked.Next(line)
		var broken *audit.BrokenError
		if errors.As(err, &broken) {
			broken.Line -= before
			state.Broken = broken
			return nil
		}
		state.At = r.Time
	}
	if size < file.Size {
		state.Broken = &audit.BrokenError{Line: walked.Lines - before + 1, Seq: walked.Head.Seq + 1, How: audit.BreakMissing}
	}
	return nil
}

// Last returns the newest record of a chain that is here.
func (j *Journal) Last(server string) (seq uint64, at structs.UnixNano) {
	c := j.chains()[server]
	if c == nil {
		return 0, 0
	}
	files, head := c.written()
	for _, file := range files {
		at = max(at, file.Newest)
	}
	return head.Seq, at
}
