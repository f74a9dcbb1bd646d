package driver_test

import (
	"testing"

	"nomadlike/plugins/driver"
)

// FuzzParseSignal: a signal that is taken is one of the kernel's, and has a name
// that is taken again.
func FuzzParseSignal(f *testing.F) {
	for _, text := range []string{"SIGTERM", "term", "9", "0", "-1", "65", "SIGRTMIN+1", "SIG34", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := driver.ParseSignal(text)
		if err != nil {
			return
		}
		if number < 1 || number > 64 {
			t.Fatalf("%q is signal %d", text, number)
		}
		if again, err := driver.ParseSignal(driver.SignalName(number)); err != nil || again != number {
			t.Errorf("%q is %s, which is %d, %v", text, driver.SignalName(number), again, err)
		}
	})
}
