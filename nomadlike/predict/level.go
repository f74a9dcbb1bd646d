package predict

import "slices"

// level is how much a candidate has in common with the burst that is
// estimated.
type level int

// The levels, the most particular first. The first five are cohorts of
// bursts; the others are made of all that is known.
const (
	levelProgram level = iota // same project, user, program and size
	levelUser                 // same pool, project, user and size
	levelSize                 // same pool and size
	levelPool                 // same pool
	levelAll                  // any
	levelBase                 // the average of its like
	levelLimit                // the ratio to the time_limit of such jobs
	levels
)

// cohortLevels are the levels that are cohorts.
const cohortLevels = int(levelAll) + 1

// Limits of cohorts, in bursts.
const (
	cohortMax = 200 // in one
	closeMax  = 100 // the newest of which are candidates
	wideMax   = 30  // the same in the cohort of a pool, and in that of all
	recency   = 30  // newer ones, after which the weight of one falls to 37 %
)

// cohortKey names a cohort.
type cohortKey struct {
	level                     level
	pool, project, user, stem string
	size                      int
}

// keys are the cohorts of a job, by level.
func (w *identity) keys() [cohortLevels]cohortKey {
	return [cohortLevels]cohortKey{
		levelProgram: {level: levelProgram, project: w.project, user: w.user, stem: w.stem, size: w.size},
		levelUser:    {level: levelUser, pool: w.pool, project: w.project, user: w.user, size: w.size},
		levelSize:    {level: levelSize, pool: w.pool, size: w.size},
		levelPool:    {level: levelPool, pool: w.pool},
		levelAll:     {level: levelAll},
	}
}

// cohort is the newest bursts that have something in common, oldest first.
type cohort struct {
	key     cohortKey
	bursts  []*burst
	users   int      // bursts that are in it or were
	base    *hazards // the average of its bursts; nil: to be made
	showing []*burst // those that show anything, newest first; nil: to be looked for
	trust   *trust   // of its pool
}

// add puts a burst in its place and drops the oldest of too many.
func (s *cohort) add(x *burst) {
	s.users++
	s.bursts = insert(s.bursts, x)
	if len(s.bursts) > cohortMax {
		s.bursts = slices.Delete(s.bursts, 0, 1)
		s.showing = nil
	}
}

// withRuns are the bursts that show anything, newest first. Between two
// outlooks only those who end or begin to run change that, but every burst
// that is estimated asks.
func (s *cohort) withRuns() []*burst {
	if s.showing == nil {
		s.showing = make([]*burst, 0, len(s.bursts))
		for _, x := range slices.Backward(s.bursts) {
			if x.seen().runs() >= 0.5 {
				s.showing = append(s.showing, x)
			}
		}
	}
	return s.showing
}

// trust is how well each level has foretold the first ends of new bursts in
// a pool: the weights of a mixture, learned one end at a time.
type trust [levels]float64

// newTrust is what is believed at first.
func newTrust() *trust {
	return &trust{
		levelProgram: 0.35, levelUser: 0.2, levelSize: 0.2, levelPool: 0.06, levelAll: 0.02, levelBase: 0.05,
		levelLimit: 0.04,
	}
}

// trustStep is how far one end moves the weights, and trustMin what every
// level keeps, so that it can come back.
const (
	trustStep = 0.02
	trustMin  = 0.01
)

// learn moves the weights towards the levels that gave an end the best chance.
// A level that had nothing to say keeps its weight.
func (t *trust) learn(chances *[levels]float64) {
	spoke, total := 0.0, 0.0
	for l, chance := range chances {
		if chance > 0 {
			spoke += t[l]
			total += t[l] * chance
		}
	}
	if !(total > 0) {
		return
	}
	for l, chance := range chances {
		if chance > 0 {
			due := spoke * t[l] * chance / total
			t[l] = max(t[l]+trustStep*(due-t[l]), trustMin)
		}
	}
}
