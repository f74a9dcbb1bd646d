package tasklog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// masked is a text on its way through a masker, in pieces of a size.
func masked(t *testing.T, text string, size int, texts ...Masked) string {
	t.Helper()
	var out bytes.Buffer
	m := NewMasker(&out, texts)
	for len(text) > 0 {
		n := min(size, len(text))
		if written, err := m.Write([]byte(text[:n])); err != nil || written != n {
			t.Fatal(written, err)
		}
		text = text[n:]
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A text is masked wherever writes are cut, in base64 behind anything, and as URLs
// spell it; what only begins like it comes through.
func TestMasker(t *testing.T) {
	const value = "hunter2/is+24=characters"
	texts := []Masked{{"token", []byte(value)}, {"longer", []byte(value + "-and-more")}, {"other", []byte("s3cret")}}
	behind := func(before string) string { return base64.StdEncoding.EncodeToString([]byte(before + value + "!?")) }
	for text, want := range map[string]string{
		"a " + value + " b\n":               "a [masked: token] b\n",
		value + value:                       "[masked: token][masked: token]",
		value + "-and-more":                 "[masked: longer]",
		value + "-and-mo":                   "[masked: token]-and-mo",
		"hunter2/is+24=character":           "hunter2/is+24=character",
		"hhunter2/is+24=characters":         "h[masked: token]",
		"huntehunter2/is+24=characters":     "hunte[masked: token]",
		"s3cres3cret":                       "s3cre[masked: other]",
		"q=" + url.QueryEscape(value) + "&": "q=[masked: token]&",
		"nothing of that kind\n":            "nothing of that kind\n",
	} {
		for size := 1; size <= len(text); size++ {
			if got := masked(t, text, size, texts...); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
	for _, before := range []string{"", "u", "us", "use", "user:"} {
		for size := 1; size < 80; size += 7 {
			got := masked(t, "Basic "+behind(before), size, texts...)
			if !strings.Contains(got, "[masked: token]") || strings.Contains(got, base64.RawStdEncoding.EncodeToString([]byte(value))[4:20]) {
				t.Errorf("behind %q in pieces of %d: %q", before, size, got)
			}
		}
	}
	if NewMasker(io.Discard, nil) != nil {
		t.Error("a masker of nothing")
	}
}

// At random, what a masker writes is what replacing in the whole text gives.
func TestMaskerIsAReplacement(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		for range random.IntN(40) {
			text.WriteString([]string{"abcabd", "abc", "ab", "a", "d", "x", "\n"}[random.IntN(7)])
		}
		want := strings.ReplaceAll(text.String(), "abcabd", MaskedText("s"))
		if got := masked(t, text.String(), 1+random.IntN(9), Masked{"s", []byte("abcabd")}); got != want {
			t.Fatalf("%q: %q, want %q", text.String(), got, want)
		}
	}
}

// BenchmarkMasker measures what masking adds to a log: nothing without secrets, since
// there is no masker then.
func BenchmarkMasker(b *testing.B) {
	line := []byte(strings.Repeat("step 1200 loss 0.1234 lr 1e-4 tokens/s 51234.2 gnorm 0.72\n", 512))
	for _, secrets := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("secrets=%d", secrets), func(b *testing.B) {
			var texts []Masked
			for i := range secrets {
				texts = append(texts, Masked{fmt.Sprint(i), []byte(fmt.Sprintf("%cHunter-%d-%x", 'A'+i, i, rand.Uint64()))})
			}
			to := io.Discard
			if m := NewMasker(io.Discard, texts); m != nil {
				to = m
			}
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if _, err := to.Write(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
