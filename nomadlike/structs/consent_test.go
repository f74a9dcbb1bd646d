package structs

import (
	"testing"
	"time"
)

// What may be done to a gang follows its owner's word, and the time only where there
// is none.
func TestConsentAllows(t *testing.T) {
	const asked, until = UnixNano(1000), UnixNano(2000)
	tests := map[string]struct {
		answer  ConsentAnswer
		silence string
		before  bool
		after   bool
	}{
		"no answer, which means wait": {ConsentNone, BusyWait, false, false},
		"no answer, which means kill": {ConsentNone, BusyKill, false, true},
		"nothing is said of silence":  {ConsentNone, "", false, false},
		"yes":                         {ConsentYes, BusyWait, true, true},
		"no, whatever silence means":  {ConsentNo, BusyKill, false, false},
	}
	for name, test := range tests {
		c := Consent{AskedAt: asked, Until: until, Answer: test.answer}
		ask := &VIPAsk{Silence: test.silence}
		if c.Allows(ask, until-1) != test.before || c.Allows(ask, until) != test.after {
			t.Errorf("%s: %t before, %t from then on", name, c.Allows(ask, until-1), c.Allows(ask, until))
		}
	}
}

// The next look is when the first who has not answered runs out of time, and never
// where silence stops nobody.
func TestSilenceAt(t *testing.T) {
	job := &Job{VIP: &VIP{Ask: &VIPAsk{Silence: BusyKill}}}
	subjob := &Subjob{Consents: []Consent{
		{Of: AttemptKey{JobID: "a"}, Until: 300}, {Of: AttemptKey{JobID: "b"}, Until: 200}, {Of: AttemptKey{JobID: "c"}, Until: 100, Answer: ConsentNo},
	}}
	for now, want := range map[UnixNano]UnixNano{0: 200, 200: 300, 300: 0} {
		if next := subjob.SilenceAt(job, now); next != want {
			t.Errorf("at %d the next look is at %d, want %d", now, next, want)
		}
	}
	if !subjob.Consented(job, AttemptKey{JobID: "b"}, 200) || subjob.Consented(job, AttemptKey{JobID: "a"}, 200) || subjob.Consented(job, AttemptKey{JobID: "d"}, 900) {
		t.Error("each gang has its own time, and who was not asked has none")
	}
	job.VIP.Ask.Silence = BusyWait
	if next := subjob.SilenceAt(job, 0); next != 0 {
		t.Errorf("nobody is stopped by waiting, and a look is due at %d", next)
	}
}

// A job that asks says for how long and what silence means, unless its author did.
func TestAskDefaults(t *testing.T) {
	job := &Job{VIP: &VIP{Machines: []VIPMachine{{Node: "a", Busy: BusyAsk}, {Node: "b"}}}}
	job.SetDefaults()
	if ask := job.VIP.Ask; ask == nil || ask.For != Duration(30*time.Minute) || ask.Silence != BusyWait {
		t.Errorf("asks with %+v", ask)
	}
	calm := &Job{VIP: &VIP{Machines: []VIPMachine{{Node: "a", Busy: BusyKill}}}}
	if calm.SetDefaults(); calm.VIP.Ask != nil {
		t.Errorf("who asks nobody has %+v", calm.VIP.Ask)
	}
}
