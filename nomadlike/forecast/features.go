package forecast

import (
	"math"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// The features of a forecast, by index. Spans are in seconds.
const (
	FeatureP10      = iota // wait that a tenth of the futures does not exceed
	FeatureP50             // half of them
	FeatureP90             // nine tenths of them
	FeatureMean            // mean over the futures
	FeatureOpen            // share of futures in which it has not started when they end
	FeatureWaited          // how long it has been queued already
	FeaturePosition        // in its queue, from 1
	FeatureNodes           // that it asks for
	FeatureDevices         // of the first alternative, on all nodes
	FeatureTier            // 0 normal, 1 urgent, 2 critical
	FeatureSpan            // run time that the scheduler reckons with; 0: not known
	FeatureAhead           // devices asked for before it in its queue, its own not counted
	Features               // how many there are
)

// about describes a forecast and what it is of.
func (f *Futures) about(m *member, samples []sample) About {
	return About{Pool: m.pool, At: f.now, Features: f.features(m, samples)}
}

// features describes a forecast to a calibration. It sorts the samples.
func (f *Futures) features(m *member, samples []sample) []float64 {
	x := make([]float64, Features)
	waits := make([]float64, len(samples))
	sorted := append([]sample(nil), samples...)
	sortSamples(sorted)
	for i, s := range sorted {
		waits[i] = s.at.Sub(f.now).Seconds()
		x[FeatureMean] += waits[i] / float64(len(waits))
		if s.open {
			x[FeatureOpen] += 1 / float64(len(waits))
		}
	}
	if len(waits) > 0 {
		x[FeatureP10], x[FeatureP50], x[FeatureP90] = rank(waits, 0.1), rank(waits, 0.5), rank(waits, 0.9)
	}
	if m.subjob.QueuedAt > 0 {
		x[FeatureWaited] = max(f.now.Sub(m.subjob.QueuedAt).Seconds(), 0)
	}
	x[FeaturePosition], x[FeatureNodes] = float64(m.position), float64(m.job.Nodes)
	x[FeatureDevices] = float64(devicesOf(m.job))
	x[FeatureTier] = float64(m.job.Priority.Rank())
	x[FeatureSpan] = m.span.Seconds()
	x[FeatureAhead] = float64(m.ahead)
	for i := range x {
		if math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
			x[i] = 0
		}
	}
	return x
}

// devicesOf counts the devices that a job asks for under its first alternative.
func devicesOf(job *structs.Job) int {
	return (job.Nodes-1)*job.SpecAt(0).DeviceCount() + job.SpecOf(0, job.Nodes-1, job.Nodes).DeviceCount()
}

// likeness is all of a queued subjob that the scheduler looks at, but for its
// place.
type likeness struct {
	pool, project, needs string
	tier, nodes, least   int
	span                 time.Duration
	limit                structs.Duration
	job                  string // set where its own identity counts
}

func (f *Futures) likenessOf(m *member) likeness {
	k := likeness{
		pool: m.pool, project: m.job.Project, tier: m.job.Priority.Rank(), nodes: m.job.Nodes, least: m.job.NodesMin(), span: m.span,
		limit: m.job.TimeLimit,
	}
	var needs strings.Builder
	for i := range m.job.Resources {
		need := placement.NeedOf(m.job, i)
		needs.WriteString(need.Key())
		needs.WriteString(strconv.Itoa(i))
	}
	k.needs = needs.String()
	if m.job.VIP != nil || m.subjob.Moved || m.subjob.NotBefore > f.now || m.subjob.Nomination != nil {
		k.job = m.subjob.JobID
	}
	return k
}
