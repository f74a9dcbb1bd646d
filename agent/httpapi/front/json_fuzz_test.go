package front

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What checkJSON lets through is JSON, and means the same to every decoder:
// decoding and encoding it again changes nothing any more.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `[{"a":{"a":[]}},{"a":1}]`, `{"a":{"b":1},"b":1}`, `"x" {}`, `[[[[`, `{"a":}`, "\xff", `]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := CheckJSON(data)
		var value any
		if StrictJSON(data, &value) != nil {
			return
		}
		if err != nil {
			return // double keys, or too deep
		}
		once, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckJSON(once); err != nil && !bytes.Contains(data, []byte(`\u`)) && !bytes.ContainsRune(data, '\uFFFD') {
			t.Fatalf("%q was let through, %q is not: %v", data, once, err)
		}
	})
}
