package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Bounds and strengths of a Calibrator. Lengths are measured on the scale of
// toScale, where 0.2 is as far as a forecast may miss and still be called right.
const (
	calibratorPast = 512  // newest forecasts with a known start that are remembered
	calibratorOpen = 256  // newest forecasts without one that are
	futuresCount   = 10.0 // earlier forecasts that all futures together weigh as much as
	alikeMiddle    = 0.5  // how far the medians of two forecasts are apart when one says 37 % as much of the other
	alikeWidth     = 0.5  // the same of their widths
	otherPool      = 0.3  // what a forecast of another pool says, as a share
	saysLeast      = 1e-3 // what says less is not asked
	saysNothing    = 7    // how far apart two forecasts say less than that, and are not weighed
	pastRecency    = 100  // newer ones, after which a forecast says 37 % as much
	widthLeast     = 0.1  // added to widths, so that certainty can be wrong too
	// coverage is the share of starts that lie before a P90, as far as the past
	// says: more than nine tenths, because forecasts that were made together come
	// out together, so the past holds fewer surprises than it seems to.
	coverage = 0.93
)

// Calibrator corrects forecasts by how earlier ones came out. Each of these
// reports by how much, measured in its own width, the futures were wrong; the
// errors of forecasts that were like the one in question, and the futures
// themselves, are stirred into one distribution of its wait. Those that still
// wait for longer than they should count for the P90: they are the first to
// know that things go worse than usual.
//
//	kept forecasts ──Learn──► errors, by likeness ─┐
//	futures of the job ────────────────────────────┴──► distribution ──► point, P50, P90
//
// It is deterministic, remembers a bounded number of forecasts, and belongs to
// one goroutine at a time. The zero value is not usable: NewCalibrator.
type Calibrator struct {
	past    []*told // by error
	open    []*told // by when they were given
	waiting map[toldKey]*told
	learned int // starts so far
}

// toldKey names a forecast.
type toldKey struct {
	job      string
	subjob   int
	attempt  uint64
	revision int
}

// told is a forecast that was given.
type told struct {
	key           toldKey
	pool          string
	given         structs.UnixNano
	middle, width float64 // of what its futures said, on the scale
	miss          float64 // true wait minus middle, in widths
	order         int     // rises with each start learned
}

// NewCalibrator returns a calibrator that has learned nothing: what it says is
// nearly what the futures say.
func NewCalibrator() *Calibrator { return &Calibrator{waiting: make(map[toldKey]*told)} }

// Learn takes a forecast as the state keeps it, again when its start is known or
// it was withdrawn. Starts are best learned in their order. One without features
// says nothing.
func (c *Calibrator) Learn(f *structs.Forecast) {
	key := toldKey{f.JobID, f.Subjob, f.Attempt, f.Revision}
	t := c.waiting[key]
	if t == nil {
		if len(f.Features) != Features || f.Withdrawn {
			return
		}
		t = newTold(f.Pool, f.GivenAt, f.Features)
		t.key = key
		if f.StartedAt == 0 {
			c.wait(t)
			return
		}
	} else if f.StartedAt == 0 && !f.Withdrawn {
		return
	}
	c.forget(t)
	if f.Withdrawn {
		return
	}
	c.learned++
	t.order = c.learned
	t.miss = t.missOf(f.StartedAt.Sub(t.given).Seconds())
	at, _ := slices.BinarySearchFunc(c.past, t.miss, func(p *told, miss float64) int { return cmp.Compare(p.miss, miss) })
	c.past = slices.Insert(c.past, at, t)
	if len(c.past) > calibratorPast {
		c.past = slices.DeleteFunc(c.past, func(p *told) bool { return p.order <= c.learned-calibratorPast })
	}
}

// wait remembers a forecast whose start is not known.
func (c *Calibrator) wait(t *told) {
	if len(c.open) == calibratorOpen {
		c.forget(c.open[0])
	}
	c.open = append(c.open, t)
	c.waiting[t.key] = t
}

func (c *Calibrator) forget(t *told) {
	if c.waiting[t.key] == t {
		delete(c.waiting, t.key)
		c.open = slices.DeleteFunc(c.open, func(o *told) bool { return o == t })
	}
}

// toScale is a scale of waits in seconds on which equal steps are equally bad:
// a fifth of a long wait, and five minutes of a short one.
func toScale(wait float64) float64 { return math.Log(scaleKnee + max(wait, 0)) }
func ofScale(x float64) float64    { return max(math.Exp(x)-scaleKnee, 0) }

// scaleKnee is the wait of which five minutes are a fifth.
const scaleKnee = 1500

func newTold(pool string, given structs.UnixNano, features []float64) *told {
	low, high := toScale(features[FeatureP10]), toScale(features[FeatureP90])
	return &told{pool: pooled(pool), given: given, middle: toScale(features[FeatureP50]), width: max(high-low, 0) / 2}
}

func pooled(name string) string {
	if name == "" {
		return structs.PoolDefault
	}
	return name
}

func (t *told) unit() float64               { return math.Sqrt(t.width + widthLeast) }
func (t *told) missOf(wait float64) float64 { return (toScale(wait) - t.middle) / t.unit() }
func (t *told) waitOf(miss float64) float64 { return ofScale(t.middle + miss*t.unit()) }

// says is how much a forecast tells about another.
func (c *Calibrator) says(p, about *told) float64 {
	far := math.Abs(p.middle-about.middle)/alikeMiddle + math.Abs(p.width-about.width)/alikeWidth
	if p.order > 0 {
		far += float64(c.learned-p.order) / pastRecency
	}
	if far > saysNothing {
		return 0
	}
	weight := math.Exp(-far)
	if p.pool != about.pool {
		weight *= otherPool
	}
	return weight
}

// chance is a miss with its weight; open: at least that much.
type chance struct {
	miss, weight float64
	open         bool
}

func byMiss(a, b chance) int { return cmp.Compare(a.miss, b.miss) }

// merge makes one sorted list of two; of equal misses, those of a come first.
func merge(a, b []chance) []chance {
	all := make([]chance, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].miss < a[0].miss {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}

// Correct implements Calibration.
func (c *Calibrator) Correct(about About, waits []time.Duration, _ time.Duration) (point, p50, p90 time.Duration) {
	own := newTold(about.Pool, about.At, about.Features)
	past := make([]chance, 0, len(c.past)) // by miss, as c.past is
	for _, p := range c.past {
		if weight := c.says(p, own); weight > saysLeast {
			past = append(past, chance{p.miss, weight, false})
		}
	}
	futures := make([]chance, 0, len(waits))
	for _, w := range waits {
		futures = append(futures, chance{own.missOf(w.Seconds()), futuresCount / float64(len(waits)), false})
	}
	slices.SortFunc(futures, byMiss)
	chances := merge(past, futures)
	likely := settled(chances)
	var open []chance
	for _, o := range c.open {
		if weight := c.says(o, own); weight > saysLeast && o.given < about.At {
			open = append(open, chance{o.missOf(about.At.Sub(o.given).Seconds()), weight, true})
		}
	}
	slices.SortFunc(open, byMiss)
	chances = merge(chances, open)
	middle := own.waitOf(share(likely, 0.5))
	late := own.waitOf(share(settled(chances), coverage))
	return seconds(own.best(likely, middle)), seconds(middle), seconds(late)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, HorizonMax.Seconds()) * float64(time.Second))
}

// settled assigns each miss its share, all of them one: an open one's goes to those
// that are larger (the estimate of Kaplan and Meier). chances are sorted.
func settled(chances []chance) []chance {
	risk := 0.0
	for _, x := range chances {
		risk += x.weight
	}
	left := 1.0
	shares := make([]chance, 0, len(chances))
	for _, x := range chances {
		if !x.open && risk > 0 {
			part := left * min(x.weight/risk, 1)
			left -= part
			shares = append(shares, chance{miss: x.miss, weight: part})
		}
		risk -= x.weight
	}
	if last := len(shares) - 1; last >= 0 {
		shares[last].weight += left
	}
	return shares
}

// share is the miss that a share p of all does not exceed.
func share(shares []chance, p float64) float64 {
	sum := 0.0
	for _, x := range shares {
		if sum += x.weight; sum >= p {
			return x.miss
		}
	}
	return shares[len(shares)-1].miss
}

// How the best point is looked for, on the scale.
const (
	pointStep  = 0.05
	pointReach = 0.3 // misses within this count, the smaller the more
	pointStray = 1.0 // share that must be gained for one more to stray from the median
)

// best is the wait that is most likely to be called right, unless it is far
// from the median for little gain.
func (t *told) best(shares []chance, median float64) float64 {
	middle := toScale(median)
	best, at := math.Inf(-1), median
	places := make([]float64, len(shares)) // rising, as misses do
	for i, s := range shares {
		places[i] = t.middle + s.miss*t.unit()
	}
	begin := 0 // of those within reach of x, which rises
	for x := middle - 1; x <= middle+1; x += pointStep {
		sum := -pointStray * math.Abs(x-middle)
		for begin < len(places) && (places[begin]-x)/pointReach <= -1 {
			begin++
		}
		for i := begin; i < len(places); i++ {
			d := (places[i] - x) / pointReach
			if d >= 1 {
				break
			}
			sum += shares[i].weight * (1 - d*d)
		}
		if sum > best {
			best, at = sum, ofScale(x)
		}
	}
	return at
}
