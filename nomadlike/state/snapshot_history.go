package state

import (
	"iter"
	"slices"
	"sort"

	"nomadlike/nomadlike/structs"
)

// PastRuns returns the ended attempts after the sequence number since, oldest
// first; 0 returns all that are kept. Numbers rise by one, so a reader sees from
// the first whether it missed some.
func (s *Snapshot) PastRuns(since uint64) []*structs.PastRun {
	runs := s.meta().runs
	from := sort.Search(len(runs), func(i int) bool { return runs[i].Seq > since })
	return slices.Clip(runs[from:])
}

// PastRunSeq is the number of the newest ended attempt, 0 when none has ended.
func (s *Snapshot) PastRunSeq() uint64 { return s.meta().RunSeq }

// WatchPastRuns is the Watch twin of PastRuns.
func (s *Snapshot) WatchPastRuns() <-chan struct{} { return s.WatchIndex() }

// Forecast returns what was said about the start of one attempt: the first
// answer, and the newest, oldest first; nil when nothing is kept.
func (s *Snapshot) Forecast(jobID string, subjob int, attempt uint64) []structs.Forecast {
	row, ok := first[*forecastRow](s.db, tableForecasts, indexID, attemptKey(jobID, subjob, attempt))
	if !ok {
		return nil
	}
	return slices.Clip(row.Given)
}

// Forecasts iterates what was said about a job, each attempt of a subjob as
// Forecast returns it. What was said about deleted jobs is kept too.
func (s *Snapshot) Forecasts(jobID string) iter.Seq[[]structs.Forecast] {
	return func(yield func([]structs.Forecast) bool) {
		for row := range each[*forecastRow](s.db, tableForecasts, indexID, idKey(jobID)) {
			if !yield(slices.Clip(row.Given)) {
				return
			}
		}
	}
}

// WatchForecasts is the Watch twin of Forecasts.
func (s *Snapshot) WatchForecasts(jobID string) <-chan struct{} {
	return s.watchPrefix(tableForecasts, indexID, idKey(jobID))
}

// FirstForecasts iterates the first answer about each attempt, in the order in
// which attempts were spoken of first, with a number that rises; after the number
// since, 0 for all that are kept.
func (s *Snapshot) FirstForecasts(since uint64) iter.Seq2[uint64, structs.Forecast] {
	return func(yield func(uint64, structs.Forecast) bool) {
		iterator, err := s.db.LowerBound(tableForecasts, indexCreated, indexKey(since+1))
		if err != nil {
			panic("read state table " + tableForecasts + ": " + err.Error())
		}
		for row := iterator.Next(); row != nil; row = iterator.Next() {
			spoken := row.(*forecastRow)
			if !yield(spoken.Seq, spoken.Given[0]) {
				return
			}
		}
	}
}

// EndedForecasts iterates, after the log index since and oldest first, the
// attempts that began or were withdrawn: the log index at which that happened,
// and what had been said about them.
func (s *Snapshot) EndedForecasts(since uint64) iter.Seq2[uint64, []structs.Forecast] {
	return func(yield func(uint64, []structs.Forecast) bool) {
		iterator, err := s.db.LowerBound(tableForecasts, indexEnded, indexKey(since+1))
		if err != nil {
			panic("read state table " + tableForecasts + ": " + err.Error())
		}
		for row := iterator.Next(); row != nil; row = iterator.Next() {
			ended := row.(*forecastRow)
			if !yield(ended.Ended, slices.Clip(ended.Given)) {
				return
			}
		}
	}
}

// WatchEndedForecasts is the Watch twin of EndedForecasts.
func (s *Snapshot) WatchEndedForecasts() <-chan struct{} {
	return s.watchPrefix(tableForecasts, indexEnded, nil)
}
