package notify

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// What tells why a task failed is found at the end of its log, and comes without colours
// and progress bars.
func TestErrorLines(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = strings.Repeat("step ", 3)
	}
	for name, c := range map[string]struct {
		log  string
		want []string
	}{
		"nothing":        {"\n \n", nil},
		"an exception":   {"epoch 1\nTraceback (most recent call last):\n  File \"train.py\", line 3\nValueError: boom\n", []string{"epoch 1", "Traceback (most recent call last):", `  File "train.py", line 3`, "ValueError: boom"}},
		"colours":        {"\x1b[1;31mRuntimeError: CUDA out of memory\x1b[0m\x1b]0;title\x07\n", []string{"RuntimeError: CUDA out of memory"}},
		"a progress bar": {" 10%\r 20%\r 30%\nKilled\r\n", []string{" 30%", "Killed"}},
		"lines behind":   {"ValueError: boom\na\nb\nc\nd\n", []string{"ValueError: boom", "a", "b"}},
		"control":        {"error: \x00\u202egnp.exe\u2028\n", []string{"error:   gnp.exe"}},
		"no error named": {strings.Join(many, "\n"), slices.Repeat([]string{"step step step"}, structs.NotifyLinesMax)},
	} {
		if got := ErrorLines(c.log); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever a task prints, the lines are few, short, and one line each.
func TestErrorLinesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"\n", "\r", "\x1b[31m", "\x1b]8;;http://x\x07", "ValueError: ", "\xff\xfe", "\u202e", strings.Repeat("x", 900), strings.Repeat("é", 700),
		}))).Draw(t, "log")
		size := 0
		lines := ErrorLines(strings.Join(parts, ""))
		for _, line := range lines {
			size += len(line)
			if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) || strings.TrimSpace(line) == "" || len(line) > lineMax {
				t.Fatalf("%q", line)
			}
		}
		if len(lines) > structs.NotifyLinesMax || size > structs.NotifyLinesSizeMax {
			t.Fatalf("%d lines of %d bytes", len(lines), size)
		}
	})
}
