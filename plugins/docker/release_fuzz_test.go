package docker

import "testing"

// FuzzRelease: what the engine calls its runtime's version is read or not.
func FuzzRelease(f *testing.F) {
	for _, text := range []string{"1.1.12", "1.2.0-rc1", "", "..", "-1.2.3", "1.2", "99999999999999999999.1.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if numbers, ok := parseRelease(text); ok && (numbers[0] < 0 || numbers[1] < 0 || numbers[2] < 0) {
			t.Errorf("%q is %v", text, numbers)
		}
	})
}
