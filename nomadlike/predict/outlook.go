package predict

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Ongoing is an attempt that runs.
type Ongoing struct {
	Job   *structs.Job
	Since structs.UnixNano // when it got its nodes
}

// Outlook is what a model foretells at one instant. It is good until the next
// call of Learn or Outlook, and belongs to the goroutine of its model. Jobs that
// it was asked about never change. Estimates and draws taken from it stay good.
type Outlook struct {
	model   *Model
	beliefs map[*burst]*belief
	views   map[viewKey]*view
	byJob   map[*structs.Job]*view // futures ask for the same jobs many times, and whose they are takes as long as the answer
}

// Outlook fixes the view at now, with what runs then; running may be nil. The
// order of running does not matter.
func (m *Model) Outlook(now structs.UnixNano, running iter.Seq[Ongoing]) *Outlook {
	for _, s := range m.living {
		s.live = nil
		m.changed(s)
	}
	m.living = m.living[:0]
	if running != nil {
		for run := range running {
			w := identityOf(run.Job)
			s := m.burst(&w, run.Job.SubmittedAt)
			if s.live == nil {
				live := s.tally
				s.live = &live
				m.living = append(m.living, s)
			}
			s.live.survive(max(now.Sub(run.Since), 0).Seconds())
		}
	}
	for _, s := range m.living {
		m.changed(s)
	}
	return &Outlook{
		model: m, beliefs: make(map[*burst]*belief), views: make(map[viewKey]*view), byJob: make(map[*structs.Job]*view),
	}
}

// Estimate reports how long a job will run, or does, when nothing is known of
// what runs now.
func (m *Model) Estimate(job *structs.Job) Estimate { return m.Outlook(0, nil).Estimate(job) }

// Estimate reports how long a job will run, or does.
func (o *Outlook) Estimate(job *structs.Job) Estimate {
	v := o.view(job)
	return Estimate{curve: v.average(), limit: v.key.limit}
}

// Draw returns one of the possible futures, the same for the same seed.
func (o *Outlook) Draw(seed uint64) *Draw {
	return &Draw{outlook: o, seed: seed, curves: make(map[viewKey]*curve)}
}

// Draw is one possible future: in it the jobs of a burst have one
// distribution of run times, drawn from those that are likely.
type Draw struct {
	outlook *Outlook
	seed    uint64
	curves  map[viewKey]*curve
}

// Estimate reports how long a job runs in this future, as a distribution: take a
// sample of it, with a chance of your own.
func (d *Draw) Estimate(job *structs.Job) Estimate {
	v := d.outlook.view(job)
	c := d.curves[v.key]
	if c == nil {
		c = v.draw(mix(d.seed, v.key.burst.id))
		d.curves[v.key] = c
	}
	return Estimate{curve: c, limit: v.key.limit}
}

// viewKey is what jobs share whose run times look alike.
type viewKey struct {
	burst           *burst
	expected, limit time.Duration
}

// mixture is candidates with their weights.
type mixture struct {
	forms []*form
	logs  []float64 // logarithms of the weights
	most  float64   // the largest of them
	sums  []float64 // running sums of the weights over the largest
}

func (x *mixture) add(f *form, log float64) {
	x.forms, x.logs = append(x.forms, f), append(x.logs, log)
}

// weigh is called once all candidates are there; there is one at least.
func (x *mixture) weigh() {
	x.most = slices.Max(x.logs)
	x.sums = make([]float64, len(x.logs))
	sum := 0.0
	for i, log := range x.logs {
		sum += math.Exp(log - x.most)
		x.sums[i] = sum
	}
}

// total is the weight of all over the largest.
func (x *mixture) total() float64 { return x.sums[len(x.sums)-1] }

// at is the candidate at a place between zero and the total.
func (x *mixture) at(place float64) *form {
	i, _ := slices.BinarySearchFunc(x.sums, place, cmp.Compare[float64])
	return x.forms[min(i, len(x.forms)-1)]
}

// blend adds the curves of all, once a tally is seen, each by its weight times
// scale; one of less than a ten-thousandth is left out.
func (x *mixture) blend(seen *tally, scale float64, into *curve) {
	var c curve
	before := 0.0
	for i, f := range x.forms {
		weight := x.sums[i] - before
		before = x.sums[i]
		if weight < 1e-4*x.total() {
			continue
		}
		f.with(seen, &c)
		for k := range c {
			into[k] += scale * weight * c[k]
		}
	}
}

// belief is the candidates of a burst, whatever the users said of its jobs:
// most of what is to be reckoned for a view is the same for all of them.
type belief struct {
	mixture
	mean *curve // the blend of all; nil: to be made
}

// statedShare is the weight of what its user expects of a job, of all that is
// believed of it. What other jobs of the user did has the rest, whatever they
// show: a sweep that failed within seconds says nothing of the long run that
// comes next. As the job itself outlives what was expected of it, the rest gains
// by itself.
const statedShare = 0.95

// view is the candidates of jobs that look alike: those of their burst, and
// what their users said of them.
type view struct {
	key    viewKey
	belief *belief
	said   mixture // of their limit; may be empty
	share  float64 // of the belief in the weight of both
	stated *form   // of the run time that is expected; nil: nobody said
	mean   *curve  // nil: to be made
}

// view finds or makes the view of a job.
func (o *Outlook) view(job *structs.Job) *view {
	if v := o.byJob[job]; v != nil {
		return v
	}
	w := identityOf(job)
	key := viewKey{o.model.burst(&w, job.SubmittedAt), max(job.ExpectedRuntime.Std(), 0), max(job.TimeLimit.Std(), 0)}
	v := o.views[key]
	if v == nil {
		b := o.beliefs[key.burst]
		if b == nil {
			b = o.model.newBelief(key.burst)
			o.beliefs[key.burst] = b
		}
		v = o.model.newView(key, b)
		o.views[key] = v
	}
	o.byJob[job] = v
	return v
}

// newBelief weighs the candidates of a burst: by the trust in their level, by
// how new they are in their cohort, and by how well they explain what the
// burst shows itself.
func (m *Model) newBelief(s *burst) *belief {
	b := &belief{}
	seen, evidence, trusted := s.seen(), s.evidence(), s.cohorts[levelPool].trust
	for l := range level(cohortLevels) {
		from, total := len(b.forms), 0.0
		m.candidates(s, l, func(c *burst, log, weight float64) {
			total += weight
			f := m.formOf(c)
			b.add(f, log+evidence*f.explains(seen))
		})
		share := math.Log(trusted[l] / total)
		for i := from; i < len(b.logs); i++ {
			b.logs[i] += share
		}
	}
	base := newForm(&tally{}, m.base(s))
	b.add(base, math.Log(trusted[levelBase])+evidence*base.explains(seen))
	b.weigh()
	return b
}

// evidence is how much each run that a burst shows counts for in the choice
// among its candidates.
func (s *burst) evidence() float64 {
	if runs := s.seen().runs(); runs > evidenceMax {
		return evidenceMax / runs
	}
	return 1
}

// newView adds what users said to what is believed of their burst.
func (m *Model) newView(key viewKey, b *belief) *view {
	v := &view{key: key, belief: b, share: 1}
	s := key.burst
	seen, evidence, trusted := s.seen(), s.evidence(), s.cohorts[levelPool].trust
	user := ratioKey{s.cohorts[levelUser].key.project, s.cohorts[levelUser].key.user}
	say := func(f *form, weight float64) { v.said.add(f, math.Log(weight)+evidence*f.explains(seen)) }
	if key.expected > 0 {
		v.stated = m.expected.form(user, key.expected, m.priors.expected)
	}
	if key.limit > 0 {
		say(m.limit.form(user, key.limit, m.priors.limit), trusted[levelLimit])
	}
	if len(v.said.forms) > 0 {
		v.said.weigh()
		v.share = 1 / (1 + math.Exp(v.said.most-b.most)*v.said.total()/b.total())
	}
	return v
}

// average is the curve over all candidates.
func (v *view) average() *curve {
	if v.mean != nil {
		return v.mean
	}
	seen := v.key.burst.seen()
	if v.belief.mean == nil {
		v.belief.mean = &curve{}
		v.belief.blend(seen, 1/v.belief.total(), v.belief.mean)
	}
	v.mean = &curve{}
	for k, c := range v.belief.mean {
		v.mean[k] = v.share * c
	}
	if v.share < 1 {
		v.said.blend(seen, (1-v.share)/v.said.total(), v.mean)
	}
	for k, whole := 0, v.mean[0]; k < len(v.mean); k++ {
		v.mean[k] /= whole
		if v.stated != nil {
			v.mean[k] = statedShare*v.stated.survival[k] + (1-statedShare)*v.mean[k]
		}
	}
	return v.mean
}

// draw is the curve over one candidate, chosen by weight.
func (v *view) draw(chance uint64) *curve {
	var f *form
	at := unit(chance)
	if v.stated != nil {
		if at < statedShare {
			return &v.stated.survival
		}
		at = (at - statedShare) / (1 - statedShare)
	}
	if at < v.share || len(v.said.forms) == 0 {
		f = v.belief.at(at / v.share * v.belief.total())
	} else {
		f = v.said.at((at - v.share) / (1 - v.share) * v.said.total())
	}
	seen := v.key.burst.seen()
	if seen.risk[0] == 0 {
		return &f.survival // what with says of a burst that has shown nothing, and forms never change
	}
	c := &curve{}
	f.with(seen, c)
	return c
}
