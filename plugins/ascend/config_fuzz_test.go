package ascend

import "testing"

// FuzzParseConfig: a configuration is taken with usable settings, or refused.
func FuzzParseConfig(f *testing.F) {
	for _, text := range []string{"", "{}", `{"poll":"1s"}`, `{"poll":"-1s"}`, `{"poll":1e999}`, "null", "[", `{"unknown":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if settings, err := ParseConfig(text); err == nil && (settings == nil || settings.poll <= 0) {
			t.Errorf("%q gives %+v", text, settings)
		}
	})
}
