package structs

import "testing"

// FuzzUlimit: what is taken is in order and is written as it is read.
func FuzzUlimit(f *testing.F) {
	for _, text := range []string{"unlimited", "64MiB", "1:2", "0", ":", "-1", "9223372036854775808", "1:unlimited"} {
		f.Add("memlock", text)
		f.Add("nofile", text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		soft, hard, err := ParseUlimit(name, text)
		if err != nil {
			return
		}
		if UlimitAbove(soft, hard) || soft < UlimitInfinite || hard < UlimitInfinite {
			t.Fatalf("%s = %q gives %d and %d", name, text, soft, hard)
		}
		again, most, err := ParseUlimit(name, FormatUlimit(name, soft)+":"+FormatUlimit(name, hard))
		if err != nil || again != soft || most != hard {
			t.Fatalf("%s = %q is written as %s:%s", name, text, FormatUlimit(name, soft), FormatUlimit(name, hard))
		}
	})
}
