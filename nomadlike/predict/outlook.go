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
	model *Model
	views map[viewKey]*view
	byJob map[*structs.Job]*view // futures ask for the same jobs many times, and whose they are takes as long as the answer
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
			w := whoIs(run.Job)
			s := m.session(&w, run.Job.SubmittedAt)
			if s.live == nil {
				live := s.tally
				s.live = &live
				m.living = append(m.living, s)
			}
			s.live.survive(max(now.Sub(run.Since), 0).Seconds(), 1)
		}
	}
	for _, s := range m.living {
		m.changed(s)
	}
	return &Outlook{model: m, views: make(map[viewKey]*view), byJob: make(map[*structs.Job]*view)}
}

// Estimate tells how long a job will run, or does, when nothing is known of
// what runs now.
func (m *Model) Estimate(job *structs.Job) Estimate { return m.Outlook(0, nil).Estimate(job) }

// Estimate tells how long a job will run, or does.
func (o *Outlook) Estimate(job *structs.Job) Estimate {
	v := o.view(job)
	return Estimate{curve: v.average(), limit: v.key.limit}
}

// Draw gives one of the possible futures, the same for the same seed.
func (o *Outlook) Draw(seed uint64) *Draw {
	return &Draw{outlook: o, seed: seed, curves: make(map[viewKey]*curve)}
}

// Draw is one possible future: in it the jobs of a session have one
// distribution of run times, drawn from those that are likely.
type Draw struct {
	outlook *Outlook
	seed    uint64
	curves  map[viewKey]*curve
}

// Estimate tells how long a job runs in this future, as a distribution: take a
// sample of it, with a chance of your own.
func (d *Draw) Estimate(job *structs.Job) Estimate {
	v := d.outlook.view(job)
	c := d.curves[v.key]
	if c == nil {
		c = v.draw(mix(d.seed, v.key.session.id))
		d.curves[v.key] = c
	}
	return Estimate{curve: c, limit: v.key.limit}
}

// viewKey is what jobs share whose run times look alike.
type viewKey struct {
	session         *session
	expected, limit time.Duration
}

// view is the candidates of jobs that look alike, with their weights.
type view struct {
	key     viewKey
	forms   []*form
	weights []float64 // running sums, the last is that of all
	mean    *curve    // nil: to be made
}

// view finds or makes the view of a job.
func (o *Outlook) view(job *structs.Job) *view {
	if v := o.byJob[job]; v != nil {
		return v
	}
	w := whoIs(job)
	key := viewKey{o.model.session(&w, job.SubmittedAt), max(job.ExpectedRuntime.Std(), 0), max(job.TimeLimit.Std(), 0)}
	v := o.views[key]
	if v == nil {
		v = o.model.newView(key)
		o.views[key] = v
	}
	o.byJob[job] = v
	return v
}

// newView weighs the candidates of a session: by the trust in their level, by
// how new they are on their shelf, and by how well they explain what the
// session shows itself.
func (m *Model) newView(key viewKey) *view {
	v := &view{key: key}
	s := key.session
	seen := s.seen()
	evidence := 1.0
	if runs := seen.runs(); runs > evidenceMax {
		evidence = evidenceMax / runs
	}
	trusted := s.shelves[levelPool].trust
	var logs []float64
	add := func(f *form, weight float64) {
		v.forms = append(v.forms, f)
		logs = append(logs, math.Log(weight)+evidence*f.explains(seen))
	}
	for l := range level(sessionLevels) {
		from, total := len(v.forms), 0.0
		m.candidates(s, l, func(c *session, weight float64) {
			total += weight
			add(m.formOf(c), weight)
		})
		for i := from; i < len(logs); i++ {
			logs[i] += math.Log(trusted[l] / total)
		}
	}
	add(newForm(&tally{}, m.base(s), 1), trusted[levelBase])
	people := ratioKey{s.shelves[levelUser].key.project, s.shelves[levelUser].key.user}
	if key.expected > 0 {
		add(m.expected.form(people, key.expected, m.priors.expected), trusted[levelExpected])
	}
	if key.limit > 0 {
		add(m.limit.form(people, key.limit, m.priors.limit), trusted[levelLimit])
	}
	best, sum := slices.Max(logs), 0.0
	v.weights = make([]float64, len(logs))
	for i, x := range logs {
		sum += math.Exp(x - best)
		v.weights[i] = sum
	}
	return v
}

// average is the curve over all candidates.
func (v *view) average() *curve {
	if v.mean != nil {
		return v.mean
	}
	v.mean = &curve{}
	var c curve
	seen := v.key.session.seen()
	before, total := 0.0, v.weights[len(v.weights)-1]
	for i, f := range v.forms {
		share := (v.weights[i] - before) / total
		before = v.weights[i]
		if share < 1e-4 {
			continue
		}
		f.with(seen, &c)
		for k := range c {
			v.mean[k] += share * c[k]
		}
	}
	for k, whole := 0, v.mean[0]; k < len(v.mean); k++ {
		v.mean[k] /= whole
	}
	return v.mean
}

// draw is the curve over one candidate, chosen by weight.
func (v *view) draw(chance uint64) *curve {
	at := unit(chance) * v.weights[len(v.weights)-1]
	i, _ := slices.BinarySearchFunc(v.weights, at, cmp.Compare[float64])
	c := &curve{}
	v.forms[min(i, len(v.forms)-1)].with(v.key.session.seen(), c)
	return c
}
