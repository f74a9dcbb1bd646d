package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
)

// What checkJSON lets through is JSON, and means the same to every decoder:
// decoding and encoding it again changes nothing any more.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `[{"a":{"a":[]}},{"a":1}]`, `{"a":{"b":1},"b":1}`, `"x" {}`, `[[[[`, `{"a":}`, "\xff", `]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := checkJSON(data)
		var value any
		if strictJSON(data, &value) != nil {
			return
		}
		if err != nil {
			return // double keys, or too deep
		}
		once, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkJSON(once); err != nil && !bytes.Contains(data, []byte(`\u`)) && !bytes.ContainsRune(data, '\uFFFD') {
			t.Fatalf("%q was let through, %q is not: %v", data, once, err)
		}
	})
}

// A request's body never breaks the agent, whatever it holds.
func FuzzJobRequest(f *testing.F) {
	f.Add([]byte(`{"job":{"name":"x","nodes":3,"resources":[{"cpu":1,"memory":1}],"task":{"command":"true"}}}`))
	f.Add([]byte(`{"hcl":"job \"x\" {}","variables":{"a":"b"}}`))
	s := &site{store: state.New()}
	f.Fuzz(func(t *testing.T, data []byte) {
		body := new(api.JobRequest)
		if checkJSON(data) != nil || strictJSON(data, body) != nil {
			return
		}
		job, err := requestedJob(body)
		if err != nil {
			return
		}
		job.SetDefaults()
		_, _ = s.admit(job) // the refusal, or nil; it must not panic
	})
}

// A gossip key that is read is one of 32 bytes, and what is written of it is
// read as the same key; of another length nothing is made.
func FuzzGossipKey(f *testing.F) {
	key := bytes.Repeat([]byte{7}, gossipKeySize)
	for _, seed := range []string{
		base64.StdEncoding.EncodeToString(key), base64.StdEncoding.EncodeToString(key[1:]), base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, gossipKeySize)),
		base64.RawStdEncoding.EncodeToString(key), string(key), "", "====", "\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseGossipKey(text)
		if err != nil {
			return
		}
		written := base64.StdEncoding.EncodeToString(key)
		again, err := parseGossipKey(written)
		if err != nil || len(key) != gossipKeySize || !bytes.Equal(key, again) {
			t.Fatalf("%q is read as %x, and written as %q, which gives %x, %v", text, key, written, again, err)
		}
	})
}
