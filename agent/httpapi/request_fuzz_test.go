package httpapi

import (
	"testing"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
)

// A request's body never breaks the agent, whatever it holds.
func FuzzJobRequest(f *testing.F) {
	f.Add([]byte(`{"job":{"name":"x","nodes":3,"resources":[{"cpu":1,"memory":1}],"task":{"command":"true"}}}`))
	f.Add([]byte(`{"hcl":"job \"x\" {}","variables":{"a":"b"}}`))
	h := submissionHandlers{core: &core{store: state.New()}}
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
		_, _ = h.admit(job) // the refusal, or nil; it must not panic
	})
}
