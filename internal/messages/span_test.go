package messages

import (
	"strings"
	"testing"
)

// TestNoRawSpans renders every message with lengths of time as programs write
// them.
func TestNoRawSpans(t *testing.T) {
	for _, language := range []Language{English, Chinese} {
		for id, text := range load(t, language) {
			params := map[string]string{}
			for _, part := range strings.Split(text, "{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				if !strings.Contains(name, ":") {
					params[name] = "2h42m43.713342491s"
				}
			}
			if got := Text(language, id, params); strings.Contains(got, "713") {
				t.Errorf("%s shows people a length of time as programs write it: %s", id, got)
			}
		}
	}
	for value, want := range map[string]string{
		"2h42m43.713342491s": "2h42m44s", "1h0m0s": "1h", "10m0s": "10m", "1h5m0s": "1h5m", "5.123456789s": "5.123s", "1.5s": "1.5s", "250ms": "250ms", "0s": "0s",
		"1.123456ms": "1.123ms", "10m": "10m", "v1.2s": "v1.2s", "n1": "n1", "12": "12", "": "",
	} {
		if got := spanText(value); got != want {
			t.Errorf("%q becomes %q, not %q", value, got, want)
		}
	}
}
