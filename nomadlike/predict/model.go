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
	candidateStrength = 1.0 // of the average behind a burst's form
	ownStrength       = 2.0 // of a candidate behind what the burst shows itself
	baseStrength      = 3.0 // of the level above behind an average
	evidenceMax       = 5.0 // what a burst shows chooses among candidates as so many runs at most
	baseRecency       = 50  // bursts over which the weight in an average falls to 37 %
)

// Model is what was learned from ended runs. It belongs to one goroutine.
type Model struct {
	cohorts  map[cohortKey]*cohort
	byUser   map[cohortKey][]*burst // all bursts of one project, user and size in a pool
	bursts   []*burst               // all
	clock    uint64                 // rises with each question
	made     uint64                 // bursts begun so far
	expected *ratios
	limit    *ratios
	priors   struct{ expected, limit *hazards }
	living   []*burst // bursts that the newest outlook saw running
}

// NewModel returns a model that has learned nothing.
func NewModel() *Model {
	m := &Model{
		cohorts: make(map[cohortKey]*cohort), byUser: make(map[cohortKey][]*burst), expected: newRatios(), limit: newRatios(),
	}
	m.priors.expected, m.priors.limit = expectedPrior(), limitPrior()
	return m
}

// Learn takes an ended attempt. Runs are learned in the order of the calls,
// which should be that of their ends. Times that make no sense are bent to the
// nearest that do. Estimates and outlooks made before are of no use after.
func (m *Model) Learn(run Run) {
	seconds := min(max(run.Runtime, time.Second), longest).Seconds()
	w := identityOfRun(&run)
	submitted := run.EndedAt.Add(-max(run.Runtime, 0) - max(run.Waited, 0))
	s := m.burst(&w, submitted)
	user := ratioKey{w.project, w.user}
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
		// What failed or was stopped says no more than that it had not come to its end.
		m.expected.learn(user, seconds, run.Expected.Seconds(), run.Outcome == structs.OutcomeSucceeded)
	}
	if run.TimeLimit > 0 {
		m.limit.learn(user, seconds, run.TimeLimit.Seconds(), run.whole())
	}
}

// judge lets the levels learn from the first end of a burst.
func (m *Model) judge(s *burst, run *Run, seconds float64) {
	s.judged = true
	bin, _ := binOf(seconds)
	var chances [levels]float64
	for l := range cohortLevels {
		total, sum := 0.0, 0.0
		m.candidates(s, level(l), func(c *burst, _, weight float64) {
			total += weight
			sum += weight * m.formOf(c).density(bin)
		})
		if total > 0 {
			chances[l] = sum / total
		}
	}
	chances[levelBase] = newForm(&tally{}, m.base(s)).density(bin)
	user := ratioKey{s.cohorts[levelUser].key.project, s.cohorts[levelUser].key.user}
	if run.TimeLimit > 0 {
		chances[levelLimit] = m.limit.form(user, run.TimeLimit, m.priors.limit).density(bin)
	}
	s.cohorts[levelPool].trust.learn(&chances)
}

// burst finds the burst that a submission belongs to, or begins one.
func (m *Model) burst(w *identity, at structs.UnixNano) *burst {
	at = min(max(at, -farthest), farthest)
	m.clock++
	keys := w.keys()
	ofUser := m.byUser[keys[levelUser]]
	after, _ := slices.BinarySearchFunc(ofUser, at, func(s *burst, at structs.UnixNano) int { return cmp.Compare(s.first, at) })
	for i := max(0, after-1); i < min(after+1, len(ofUser)); i++ {
		if s := ofUser[i]; s.near(at) {
			s.join(at)
			s.touched = m.clock
			return s
		}
	}
	if len(m.bursts) == burstsMax {
		m.forget()
		ofUser = m.byUser[keys[levelUser]]
	}
	m.made++
	s := &burst{id: m.made, first: at, last: at, touched: m.clock}
	m.bursts = append(m.bursts, s)
	m.byUser[keys[levelUser]] = insert(ofUser, s)
	for l, key := range keys {
		s.cohorts[l] = m.cohort(key)
		s.cohorts[l].add(s)
	}
	return s
}

// insert keeps bursts in the order of their first submission.
func insert(bursts []*burst, s *burst) []*burst {
	i := len(bursts)
	for i > 0 && bursts[i-1].first > s.first {
		i--
	}
	return slices.Insert(bursts, i, s)
}

// forget drops the eighth of the bursts that nothing has asked for longest.
func (m *Model) forget() {
	slices.SortFunc(m.bursts, func(a, b *burst) int { return cmp.Compare(a.touched, b.touched) })
	gone := make(map[*burst]bool)
	for _, s := range m.bursts[:burstsMax/8] {
		gone[s] = true
	}
	isGone := func(s *burst) bool { return gone[s] }
	for s := range gone {
		key := s.cohorts[levelUser].key
		if m.byUser[key] = slices.DeleteFunc(m.byUser[key], isGone); len(m.byUser[key]) == 0 {
			delete(m.byUser, key)
		}
		for _, on := range s.cohorts {
			on.bursts = slices.DeleteFunc(on.bursts, isGone)
			on.base, on.showing = nil, nil
			if on.users--; on.users == 0 {
				delete(m.cohorts, on.key)
			}
		}
	}
	m.bursts = slices.Delete(m.bursts, 0, burstsMax/8)
	m.living = slices.DeleteFunc(m.living, isGone)
}

// cohort finds a cohort or adds an empty one.
func (m *Model) cohort(key cohortKey) *cohort {
	s := m.cohorts[key]
	if s == nil {
		s = &cohort{key: key}
		m.cohorts[key] = s
		if key.level == levelPool {
			s.trust = newTrust()
		}
	}
	return s
}

// changed makes stale what follows from a burst.
func (m *Model) changed(s *burst) {
	s.form = nil
	for _, on := range s.cohorts {
		on.base, on.showing = nil, nil
	}
}

// candidates yields the bursts of a cohort other than s that show anything,
// the newest first, with their weights and the logarithms of those.
func (m *Model) candidates(s *burst, l level, yield func(c *burst, log, weight float64)) {
	most := closeMax
	if l >= levelPool {
		most = wideMax
	}
	weights := recencies()
	rank := 0
	for _, c := range s.cohorts[l].withRuns() {
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

// formOf returns a burst's form as a candidate.
func (m *Model) formOf(s *burst) *form {
	if s.form == nil {
		s.form = newForm(s.seen(), m.base(s))
	}
	return s.form
}

// base is the average of the bursts of a program, seen against that of its
// user, that against all of the size in the pool, and so on.
func (m *Model) base(s *burst) *hazards {
	prior := m.priors.limit
	for l := cohortLevels - 1; l >= 0; l-- {
		on := s.cohorts[l]
		if on.base == nil {
			on.base = average(on.bursts, prior)
		}
		prior = on.base
	}
	return prior
}

// average is the hazard in many bursts, newer and larger ones counting more,
// but a burst of a hundred runs only ten times as much as one of one.
func average(bursts []*burst, prior *hazards) *hazards {
	var sum tally
	rank := 0
	for i := len(bursts) - 1; i >= 0; i-- {
		seen := bursts[i].seen()
		if runs := seen.runs(); runs > 0 {
			sum.add(seen, math.Exp(-float64(rank)/baseRecency)/math.Sqrt(runs))
			rank++
		}
	}
	h := &hazards{}
	posterior(&sum, prior, baseStrength, h)
	return h
}
