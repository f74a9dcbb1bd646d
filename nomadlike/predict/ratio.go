package predict

import (
	"math"
	"time"
)

// The ratio of a run time to what a user said of it, in the bins of run times:
// ratioOne is the bin of a ratio of one.
const (
	ratioOne     = 16 * perOctave
	ratioUnit    = float64(1 << 16) // seconds of a ratio of one
	usersMax     = 1024             // users whose ratios are kept
	ratioBelief  = 4                // runs that the average of all users counts for
	ratioForget  = 0.99             // what a tally of ratios keeps at each end
	ratioAverage = 0.999
)

// ratios is what is known of what users say, of one kind.
type ratios struct {
	all   tally
	users map[ratioKey]*tally
	order []ratioKey // by first appearance
}

type ratioKey struct{ project, user string }

func newRatios() *ratios { return &ratios{users: make(map[ratioKey]*tally)} }

// learn counts a run of which its user had said something.
func (r *ratios) learn(key ratioKey, seconds, said float64, whole bool) {
	t := r.users[key]
	if t == nil {
		if len(r.order) == usersMax {
			delete(r.users, r.order[0])
			r.order = append(r.order[:0], r.order[1:]...)
		}
		t = &tally{}
		r.users[key] = t
		r.order = append(r.order, key)
	}
	t.fade(ratioForget)
	r.all.fade(ratioAverage)
	for _, into := range []*tally{t, &r.all} {
		if whole {
			into.end(seconds/said*ratioUnit, 1)
		} else {
			into.survive(seconds / said * ratioUnit)
		}
	}
}

// fade lets a tally forget.
func (t *tally) fade(keep float64) {
	for k := range t.risk {
		t.ended[k] *= keep
		t.risk[k] *= keep
	}
}

// form is how long jobs of a user run that say so.
func (r *ratios) form(key ratioKey, said time.Duration, prior *hazards) *form {
	var average, own hazards
	posterior(&r.all, prior, ratioBelief, &average)
	own = average
	if t := r.users[key]; t != nil {
		posterior(t, &average, ratioBelief, &own)
	}
	shift := int(math.Round(math.Log2(max(said.Seconds(), 1))*perOctave)) - ratioOne
	f := &form{}
	for k := range f.hazards {
		switch from := k - shift; {
		case from < 0:
			f.hazards[k] = hazardMin
		case from < bins:
			f.hazards[k] = own[from]
		default:
			f.hazards[k] = lindy
		}
	}
	f.finish()
	return f
}

// expectedPrior believes that a run takes about as long as its user expects,
// within a factor of two or so; limitPrior that the limit says nothing but
// where a run must end.
func expectedPrior() *hazards {
	h := &hazards{}
	normal := func(octaves float64) float64 { return 0.5 * math.Erfc(octaves/math.Sqrt2) } // share above
	for k := range h {
		low, high := float64(k-ratioOne)/perOctave, float64(k+1-ratioOne)/perOctave
		reach := normal(low)
		if reach < 1e-9 {
			h[k] = lindy
			continue
		}
		h[k] = min(max(1-normal(high)/reach, hazardMin), hazardMax)
	}
	return h
}

func limitPrior() *hazards {
	h := &hazards{}
	for k := range h {
		h[k] = lindy
	}
	return h
}
