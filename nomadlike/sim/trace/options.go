package trace

import (
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Policy names the rules by which the queue is served. All but PolicyDefault
// are references to compare with, made of settings of the same scheduler.
type Policy string

// The policies.
const (
	PolicyFIFO    Policy = "fifo"    // strict order of submission within a pool: no job passes another
	PolicySJF     Policy = "sjf"     // shortest estimate first, and its head is never passed either
	PolicySRTF    Policy = "srtf"    // shortest remaining time first: shorter jobs end longer ones, which keep their progress
	PolicyEASY    Policy = "easy"    // submission order; the first job that waits keeps a reserved start, others fill in before it
	PolicyDefault Policy = "default" // what the product does
)

// Policies lists the policies for people.
func Policies() []string {
	return []string{string(PolicyFIFO), string(PolicySJF), string(PolicySRTF), string(PolicyEASY), string(PolicyDefault)}
}

// Estimate says what the scheduler believes of run times.
type Estimate string

// The estimates.
const (
	EstimateTrue    Estimate = "true"    // how long each job will really run
	EstimateLimit   Estimate = "limit"   // the time limit that its user asked for; without one it may run for ever
	EstimateLearned Estimate = "learned" // what package predict learns from the runs that ended before
)

// Estimates lists the estimates for people.
func Estimates() []string {
	return []string{string(EstimateTrue), string(EstimateLimit), string(EstimateLearned)}
}

// Place says how devices are handed out.
type Place string

// The ways of placing.
const (
	// PlaceConsolidate uses as few nodes as possible: a job of up to one node's
	// devices takes the node with the fewest free that still fits it; a larger one
	// takes empty nodes and puts what is left over on another empty one, or else on
	// the used one with the most free devices.
	PlaceConsolidate Place = "consolidate"
	// PlaceFungible treats a pool as one bag of devices.
	PlaceFungible Place = "fungible"
)

// Places lists the ways of placing for people.
func Places() []string { return []string{string(PlaceConsolidate), string(PlaceFungible)} }

// Predict asks for forecasts of when jobs start, to be scored.
type Predict struct {
	Sample     int    // how many submissions are forecast; 0: all
	Seed       uint64 // draws them
	OnlyQueued bool   // only of those that did not start in the instant of their submission
}

// check reports what is wrong with options.
func (o *Options) check() error {
	for _, choice := range []struct {
		name, value string
		known       []string
	}{
		{"-policy", string(o.Policy), Policies()}, {"-estimate", string(o.Estimate), Estimates()}, {"-place", string(o.Place), Places()},
	} {
		if err := known(choice.name, choice.value, choice.known); err != nil {
			return err
		}
	}
	switch {
	case o.Engine == EngineState && o.Policy == PolicySRTF:
		return structs.NewError(structs.CodeInvalid, "sim.trace.state_srtf")
	case len(o.Pools) == 0:
		return structs.NewError(structs.CodeInvalid, "sim.trace.no_pools")
	case o.To > 0 && o.To < o.From:
		return structs.NewError(structs.CodeInvalid, "sim.trace.window", "from", secondsText(o.From), "to", secondsText(o.To))
	}
	return nil
}

// known reports what is wrong with the value of a choice.
func known(name, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return structs.NewError(structs.CodeInvalid, "sim.trace.choice", "option", name, "value", shown(value), "known", strings.Join(choices, ", "))
}
