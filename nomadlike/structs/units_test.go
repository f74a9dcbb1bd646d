package structs

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	cases := []struct {
		text string
		want int64
		err  error
	}{
		{"512MiB", 512 * MiB, nil},
		{" 1.5 gib ", 3 * GiB / 2, nil},
		{"0B", 0, nil},
		{"8191PiB", 8191 * PiB, nil},
		{"8192PiB", 0, ErrOutOfRange},
		{"0.3B", 0, ErrOutOfRange},
		{"2GB", 0, ErrUnitDecimal},
		{"2G", 0, ErrUnitDecimal},
		{"2", 0, ErrUnitMissing},
		{"2 apples", 0, ErrUnitUnknown},
		{"-2GiB", 0, ErrNumberInvalid},
		{"1.2.3GiB", 0, ErrNumberInvalid},
		{"1e9B", 0, ErrUnitUnknown},
		{"", 0, ErrNumberInvalid},
		{"00000000000000000000000000000000000000000000000000000000000000001B", 0, ErrTextTooLong},
	}
	for _, c := range cases {
		got, err := ParseSize(c.text)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseSize(%q) = %d, %v, want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	cases := []struct {
		text string
		want time.Duration
		err  error
	}{
		{"90s", 90 * time.Second, nil},
		{"6h30m", 6*time.Hour + 30*time.Minute, nil},
		{"2d", 48 * time.Hour, nil},
		{"1w1.5d", (7*24 + 36) * time.Hour, nil},
		{"250ms", 250 * time.Millisecond, nil},
		{"0s", 0, nil},
		{"100000w", 0, ErrOutOfRange},
		{"90", 0, ErrUnitMissing},
		{"1y", 0, ErrUnitUnknown},
		{"-1h", 0, ErrNumberInvalid},
		{".h", 0, ErrNumberInvalid},
		{"", 0, ErrNumberInvalid},
		{"h", 0, ErrNumberInvalid},
	}
	for _, c := range cases {
		got, err := ParseDuration(c.text)
		if got.Std() != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseDuration(%q) = %s, %v, want %s, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func FuzzUnits(f *testing.F) {
	for _, seed := range []string{"1.5GiB", "2d6h", "9223372036854775807B", ".", "1µs", ""} {
		f.Add(seed, int64(1<<40))
	}
	f.Fuzz(func(t *testing.T, text string, bytes int64) {
		if size, err := ParseSize(text); err == nil && size < 0 {
			t.Errorf("ParseSize(%q) = %d", text, size)
		}
		if span, err := ParseDuration(text); err == nil && span < 0 {
			t.Errorf("ParseDuration(%q) = %s", text, span)
		}
		span := Duration(bytes & math.MaxInt64)
		if again, err := ParseDuration(FormatDuration(span)); err != nil || again != span {
			t.Errorf("%d ns are written as %s and read as %d, %v", span, FormatDuration(span), again, err)
		}
		if bytes &= math.MaxInt64; bytes >= 0 {
			if again, err := ParseSize(FormatSize(bytes)); err != nil || again != bytes {
				t.Errorf("%d bytes are written as %s and read as %d, %v", bytes, FormatSize(bytes), again, err)
			}
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"nodes", "command", "memory", "normal", "cpu"}
	for word, want := range map[string]string{
		"nodess": "nodes", "ndoes": "nodes", "NODES": "nodes", "comand": "command", "gpu": "cpu",
		"replicas": "", "": "", "nodes": "", "x": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
