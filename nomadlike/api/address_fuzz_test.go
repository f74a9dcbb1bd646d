package api

import "testing"

// FuzzParseAddress: an address that is taken is an https one with a port, and
// nothing in it leads to a path or carries a password.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"gpu-01", "https://10.0.0.1:4646", "http://a", "https://u:p@a", "[::1]", "a/b", "a?b", "a#b", "https://a:99999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		base, err := parseAddress(text)
		if err == nil && (base.Scheme != "https" || base.Host == "" || base.Port() == "" || base.Path != "" || base.User != nil || base.RawQuery != "") {
			t.Errorf("%q becomes %q", text, base)
		}
	})
}
