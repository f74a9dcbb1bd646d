package store

import (
	"context"
	"fmt"
	"slices"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// PartRowsMax is about how many rows a Part has.
const PartRowsMax = 4096

// Part returns rows behind an index and up to another, as far as they follow each other
// here and have reached the disk. Where the store has none right behind after, it begins
// where it has some; where it has none at all, Until is After.
func (s *Store) Part(ctx context.Context, after, until uint64) (structs.HistoryPart, error) {
	s.mu.Lock()
	segments := slices.Clone(s.mu.segments)
	type loose struct {
		after, through uint64
		rows           []structs.HistoryRow
	}
	var parts []loose
	for _, p := range s.mu.parts {
		parts = append(parts, loose{p.after, p.synced, p.rows[:p.written:p.written]})
	}
	s.mu.Unlock()
	out := structs.HistoryPart{After: after, Until: after}
	take := func(begin, end uint64, rows func() ([]structs.HistoryRow, error)) (bool, error) {
		if end <= out.Until || begin >= until {
			return true, nil
		}
		if begin > out.Until {
			if out.Until > out.After {
				return false, nil // what comes now does not follow
			}
			out.After, out.Until = begin, begin
		}
		all, err := rows()
		if err != nil {
			return false, err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(r structs.HistoryRow) bool { return r.Index <= out.Until || r.Index > until })
		if room := PartRowsMax - len(out.Rows); len(all) > room {
			if n := cutRows(all, max(room, 1)); n < len(all) {
				out.Rows, out.Until = append(out.Rows, all[:n]...), all[n-1].Index
				return false, nil
			}
		}
		out.Rows, out.Until = append(out.Rows, all...), min(end, until)
		return len(out.Rows) < PartRowsMax, nil
	}
	for _, g := range segments {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		more, err := take(g.after, g.through, func() (rows []structs.HistoryRow, err error) {
			lost := s.read(g, func(c history.Columns) error {
				rows, err = c.(*history.Segment).All()
				return err
			})
			if err == nil && lost == nil && !s.has(g) {
				lost = fmt.Errorf("segment %s is gone", g.name())
			}
			return rows, lost
		})
		if err != nil || !more {
			return out, err
		}
	}
	for _, p := range parts {
		more, err := take(p.after, p.through, func() ([]structs.HistoryRow, error) { return p.rows, nil })
		if err != nil || !more {
			return out, err
		}
	}
	return out, nil
}

// Fill closes a gap, or a piece of one, with all rows behind after and up to until that
// another server has.
func (s *Store) Fill(after, until uint64, rows []structs.HistoryRow) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !slices.ContainsFunc(s.Gaps(), func(gap Span) bool { return gap.After <= after && after < until && until <= gap.Until }) {
		return fmt.Errorf("fill history: entries %d to %d are not missing", after+1, until)
	}
	for i := range rows {
		if rows[i].Index <= after || rows[i].Index > until || i > 0 && !rows[i-1].Less(&rows[i]) {
			return fmt.Errorf("fill history: row %d of entry %d does not belong where it stands", rows[i].Ordinal, rows[i].Index)
		}
	}
	found, err := s.makeSegment(after, until, rows)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.segments = append(slices.Clone(s.mu.segments), found)
	slices.SortFunc(s.mu.segments, bySpan)
	return nil
}
