package predict

import "slices"

// level is how much a candidate has in common with the session that is
// estimated.
type level int

// The levels, the most particular first. The first five are shelves of
// sessions; the others are made of all that is known.
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

// sessionLevels are the levels that are shelves.
const sessionLevels = int(levelAll) + 1

// Limits of shelves, in sessions.
const (
	shelfMax = 200 // that stand on one
	closeMax = 100 // the newest of which are candidates
	wideMax  = 30  // the same on the shelf of a pool, and on that of all
	recency  = 30  // newer ones, after which the weight of one falls to 37 %
)

// shelfKey names a shelf.
type shelfKey struct {
	level                     level
	pool, project, user, stem string
	size                      int
}

// keys are the shelves of a job, by level.
func (w *who) keys() [sessionLevels]shelfKey {
	return [sessionLevels]shelfKey{
		levelProgram: {level: levelProgram, project: w.project, user: w.user, stem: w.stem, size: w.size},
		levelUser:    {level: levelUser, pool: w.pool, project: w.project, user: w.user, size: w.size},
		levelSize:    {level: levelSize, pool: w.pool, size: w.size},
		levelPool:    {level: levelPool, pool: w.pool},
		levelAll:     {level: levelAll},
	}
}

// shelf is the newest sessions that have something in common, oldest first.
type shelf struct {
	key      shelfKey
	sessions []*session
	users    int        // sessions that stand on it or did
	base     *hazards   // the average of its sessions; nil: to be made
	telling  []*session // those that show anything, newest first; nil: to be looked for
	trust    *trust     // of its pool
}

// put adds a session in its place and drops the oldest of too many.
func (s *shelf) put(x *session) {
	s.users++
	s.sessions = insert(s.sessions, x)
	if len(s.sessions) > shelfMax {
		s.sessions = slices.Delete(s.sessions, 0, 1)
		s.telling = nil
	}
}

// tellers are the sessions that show anything, newest first. Between two
// outlooks only those who end or begin to run change that, but every session
// that is estimated asks.
func (s *shelf) tellers() []*session {
	if s.telling == nil {
		s.telling = make([]*session, 0, len(s.sessions))
		for _, x := range slices.Backward(s.sessions) {
			if x.seen().runs() >= 0.5 {
				s.telling = append(s.telling, x)
			}
		}
	}
	return s.telling
}

// trust is how well each level has foretold the first ends of new sessions in
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
