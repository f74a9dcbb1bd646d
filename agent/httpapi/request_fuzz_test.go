package httpapi

import (
	"testing"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
)

// A request's body never breaks the agent, whatever it holds.
func FuzzJobRequest(f *testing.F) {
	f.Add([]byte(`{"job":{"name":"x","nodes":3,"resources":[{"cpu":1,"memory":1}],"task":{"command":"true"}}}`))
	f.Add([]byte(`{"hcl":"job \"x\" {}","variables":{"a":"b"}}`))
	f.Add([]byte(`{"zone":"+08:00","job":{"name":"x","begin":"22:00","deadline":"2030-01-01T00:00","after":[{"job":"1","when":"ended","project":"p"}],"task":{"command":"true"}}}`))
	h := submissionHandlers{core: &core{store: state.New(), now: time.Now}, members: &FakeMembership{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		body := new(api.JobRequest)
		if front.DecodeJSON(data, body) != nil {
			return
		}
		job, err := requestedJob(body)
		if err != nil {
			return
		}
		job.SetDefaults()
		_, _ = h.admit(&front.Request{}, job) // the refusal, or nil; it must not panic
	})
}
