package predict

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// Strengths of priors, in runs.
const (
	candidateStrength = 1.0 // of the average behind a session's form
	ownStrength       = 2.0 // of a candidate behind what the session shows itself
	baseStrength      = 3.0 // of the level above behind an average
	evidenceMax       = 5.0 // what a session shows chooses among candidates as so many runs at most
	baseRecency       = 50  // sessions over which the weight in an average falls to 37 %
)

// Model is what was learned from ended runs. It belongs to one goroutine.
type Model struct {
	shelves  map[shelfKey]*shelf
	people   map[shelfKey][]*session // all sessions of one project, user and size in a pool
	sessions []*session              // all
	clock    uint64                  // rises with each question
	made     uint64                  // sessions begun so far
	expected *ratios
	limit    *ratios
	priors   struct{ expected, limit *hazards }
	living   []*session // sessions that the newest outlook saw running
}

// NewModel gives a model that has learned nothing.
func NewModel() *Model {
	m := &Model{
		shelves: make(map[shelfKey]*shelf), people: make(map[shelfKey][]*session), expected: newRatios(), limit: newRatios(),
	}
	m.priors.expected, m.priors.limit = expectedPrior(), limitPrior()
	return m
}

// Learn takes an ended attempt. Runs are learned in the order of the calls,
// which should be that of their ends. Times that make no sense are bent to the
// nearest that do. Estimates and outlooks made before are of no use after.
func (m *Model) Learn(run Run) {
	seconds := min(max(run.Runtime, time.Second), longest).Seconds()
	w := whoRan(&run)
	submitted := run.EndedAt.Add(-max(run.Runtime, 0) - max(run.Waited, 0))
	s := m.session(&w, submitted)
	people := ratioKey{w.project, w.user}
	if run.whole() && !s.judged {
		m.judge(s, &run, seconds)
	}
	if run.whole() {
		s.tally.end(seconds, 1)
	} else {
		s.tally.survive(seconds)
	}
	m.changed(s)
	if run.Expected > 0 {
		// What failed or was stopped tells no more than that it had not come to its end.
		m.expected.learn(people, seconds, run.Expected.Seconds(), run.Outcome == structs.OutcomeSucceeded)
	}
	if run.TimeLimit > 0 {
		m.limit.learn(people, seconds, run.TimeLimit.Seconds(), run.whole())
	}
}

// judge lets the levels learn from the first end of a session.
func (m *Model) judge(s *session, run *Run, seconds float64) {
	s.judged = true
	bin, _ := binOf(seconds)
	var chances [levels]float64
	for l := range sessionLevels {
		total, sum := 0.0, 0.0
		m.candidates(s, level(l), func(c *session, _, weight float64) {
			total += weight
			sum += weight * m.formOf(c).density(bin)
		})
		if total > 0 {
			chances[l] = sum / total
		}
	}
	chances[levelBase] = newForm(&tally{}, m.base(s)).density(bin)
	people := ratioKey{s.shelves[levelUser].key.project, s.shelves[levelUser].key.user}
	if run.TimeLimit > 0 {
		chances[levelLimit] = m.limit.form(people, run.TimeLimit, m.priors.limit).density(bin)
	}
	s.shelves[levelPool].trust.learn(&chances)
}

// session finds the session that a submission belongs to, or begins one.
func (m *Model) session(w *who, at structs.UnixNano) *session {
	at = min(max(at, -farthest), farthest)
	m.clock++
	keys := w.keys()
	people := m.people[keys[levelUser]]
	after, _ := slices.BinarySearchFunc(people, at, func(s *session, at structs.UnixNano) int { return cmp.Compare(s.first, at) })
	for i := max(0, after-1); i < min(after+1, len(people)); i++ {
		if s := people[i]; s.near(at) {
			s.join(at)
			s.touched = m.clock
			return s
		}
	}
	if len(m.sessions) == sessionsMax {
		m.forget()
		people = m.people[keys[levelUser]]
	}
	m.made++
	s := &session{id: m.made, first: at, last: at, touched: m.clock}
	m.sessions = append(m.sessions, s)
	m.people[keys[levelUser]] = insert(people, s)
	for l, key := range keys {
		s.shelves[l] = m.shelf(key)
		s.shelves[l].put(s)
	}
	return s
}

// insert keeps sessions in the order of their first submission.
func insert(sessions []*session, s *session) []*session {
	i := len(sessions)
	for i > 0 && sessions[i-1].first > s.first {
		i--
	}
	return slices.Insert(sessions, i, s)
}

// forget drops the eighth of the sessions that nothing has asked for longest.
func (m *Model) forget() {
	slices.SortFunc(m.sessions, func(a, b *session) int { return cmp.Compare(a.touched, b.touched) })
	gone := make(map[*session]bool)
	for _, s := range m.sessions[:sessionsMax/8] {
		gone[s] = true
	}
	isGone := func(s *session) bool { return gone[s] }
	for s := range gone {
		key := s.shelves[levelUser].key
		if m.people[key] = slices.DeleteFunc(m.people[key], isGone); len(m.people[key]) == 0 {
			delete(m.people, key)
		}
		for _, on := range s.shelves {
			on.sessions = slices.DeleteFunc(on.sessions, isGone)
			on.base, on.telling = nil, nil
			if on.users--; on.users == 0 {
				delete(m.shelves, on.key)
			}
		}
	}
	m.sessions = slices.Delete(m.sessions, 0, sessionsMax/8)
	m.living = slices.DeleteFunc(m.living, isGone)
}

// shelf finds a shelf or puts up an empty one.
func (m *Model) shelf(key shelfKey) *shelf {
	s := m.shelves[key]
	if s == nil {
		s = &shelf{key: key}
		m.shelves[key] = s
		if key.level == levelPool {
			s.trust = newTrust()
		}
	}
	return s
}

// changed makes stale what follows from a session.
func (m *Model) changed(s *session) {
	s.form = nil
	for _, on := range s.shelves {
		on.base, on.telling = nil, nil
	}
}

// candidates yields the sessions of a shelf other than s that show anything,
// the newest first, with their weights and the logarithms of those.
func (m *Model) candidates(s *session, l level, yield func(c *session, log, weight float64)) {
	most := closeMax
	if l >= levelPool {
		most = wideMax
	}
	weights := recencies()
	rank := 0
	for _, c := range s.shelves[l].tellers() {
		if rank == most {
			return
		}
		if c != s {
			yield(c, -float64(rank)/recency, weights[rank])
			rank++
		}
	}
}

// recencies are the weights of candidates by how many newer ones there are.
var recencies = sync.OnceValue(func() *[closeMax]float64 {
	weights := &[closeMax]float64{}
	for rank := range weights {
		weights[rank] = math.Exp(-float64(rank) / recency)
	}
	return weights
})

// formOf gives a session's form as a candidate.
func (m *Model) formOf(s *session) *form {
	if s.form == nil {
		s.form = newForm(s.seen(), m.base(s))
	}
	return s.form
}

// base is the average of the sessions of a program, seen against that of its
// user, that against all of the size in the pool, and so on.
func (m *Model) base(s *session) *hazards {
	prior := m.priors.limit
	for l := sessionLevels - 1; l >= 0; l-- {
		on := s.shelves[l]
		if on.base == nil {
			on.base = average(on.sessions, prior)
		}
		prior = on.base
	}
	return prior
}

// average is the hazard in many sessions, newer and larger ones counting more,
// but a session of a hundred runs only ten times as much as one of one.
func average(sessions []*session, prior *hazards) *hazards {
	var sum tally
	rank := 0
	for i := len(sessions) - 1; i >= 0; i-- {
		seen := sessions[i].seen()
		if runs := seen.runs(); runs > 0 {
			sum.add(seen, math.Exp(-float64(rank)/baseRecency)/math.Sqrt(runs))
			rank++
		}
	}
	h := &hazards{}
	posterior(&sum, prior, baseStrength, h)
	return h
}
