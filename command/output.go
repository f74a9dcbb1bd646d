package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// text renders a message in the user's language.
func (env *Env) text(id string, params ...any) string {
	return messages.Textf(env.Language, id, params...)
}

// printError writes a problem and, when there is one, its cure to stderr.
func (env *Env) printError(problem, hint string) {
	fmt.Fprintf(env.Stderr, "%s %s\n", env.paint(colourRed, env.text("cli.error")), problem)
	if hint != "" {
		fmt.Fprintf(env.Stderr, "  %s\n", hint)
	}
}

// reportError renders whatever a verb returned. Errors of the cluster carry
// a message id; others are printed as they are, made safe for a terminal.
func (env *Env) reportError(err error) {
	var e *structs.Error
	if !errors.As(err, &e) {
		env.printError(safe(err.Error()), "")
		return
	}
	env.printError(env.errorText(*e), env.hintText(*e))
	for _, detail := range e.Details {
		fmt.Fprintf(env.Stderr, "  - %s\n", env.errorText(detail))
		if hint := env.hintText(detail); hint != "" {
			fmt.Fprintf(env.Stderr, "    %s\n", hint)
		}
	}
}

func (env *Env) errorText(e structs.Error) string {
	if messages.Has(env.Language, e.ID) {
		return safe(messages.Text(env.Language, e.ID, e.Params))
	}
	return safe(e.Error())
}

func (env *Env) hintText(e structs.Error) string {
	if id := e.ID + ".hint"; messages.Has(env.Language, id) {
		return safe(messages.Text(env.Language, id, e.Params))
	}
	return safe(e.Hint)
}

func (env *Env) reasonText(reason *structs.Reason) string {
	if reason == nil || reason.ID == "" {
		return ""
	}
	return safe(messages.Text(env.Language, reason.ID, reason.Params))
}

// show prints value as -json or -t asks; otherwise it calls plain.
func (env *Env) show(flags outputFlags, value any, plain func()) error {
	switch {
	case *flags.template != "":
		parsed, err := template.New("-t").Parse(*flags.template)
		if err != nil {
			return usagef("cli.bad_template", "problem", err.Error())
		}
		if err := parsed.Execute(env.Stdout, value); err != nil {
			return usagef("cli.bad_template", "problem", err.Error())
		}
		fmt.Fprintln(env.Stdout)
	case *flags.json:
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	default:
		plain()
	}
	return nil
}

// table aligns rows by display width: a Chinese character takes two cells.
type table struct {
	env    *Env
	header []string
	rows   [][]string
}

func newTable(env *Env, header ...string) *table {
	return &table{env: env, header: header}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() {
	widths := make([]int, len(t.header))
	lines := t.rows
	if strings.Join(t.header, "") != "" {
		lines = append([][]string{t.header}, t.rows...)
	}
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	for n, cells := range lines {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString(cell)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-displayWidth(cell)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 && len(lines) > len(t.rows) {
			line = t.env.paint(colourBold, line)
		}
		fmt.Fprintln(t.env.Stdout, line)
	}
}

func displayWidth(s string) int {
	width := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60):
			width += 2
		default:
			width++
		}
	}
	return width
}

// safe makes text from elsewhere harmless on a terminal: control characters
// and bidirectional overrides are shown as escapes, tabs and newlines stay.
func safe(s string) string {
	clean := true
	for _, r := range s {
		if !harmless(r) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if harmless(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

func harmless(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0:
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
		return false
	}
	return r != utf8.RuneError
}

// The colours used on terminals.
const (
	colourRed    = "31"
	colourGreen  = "32"
	colourYellow = "33"
	colourBlue   = "34"
	colourBold   = "1"
	colourDim    = "2"
)

// paint colours text when stdout is a terminal and NO_COLOR is not set.
func (env *Env) paint(colour, text string) string {
	if !env.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// rankColour gives each rank a colour of its own.
func (env *Env) rankColour(rank int, text string) string {
	palette := []string{"36", "33", "35", "32", "34", "31"}
	return env.paint(palette[rank%len(palette)], text)
}

// stateText names a job's state in the user's language, coloured.
func (env *Env) stateText(state structs.JobState) string {
	text := env.text("cli.state." + string(state))
	switch state {
	case structs.JobRunning, structs.JobSucceeded:
		return env.paint(colourGreen, text)
	case structs.JobFailed, structs.JobExpired:
		return env.paint(colourRed, text)
	case structs.JobQueued, structs.JobStarting, structs.JobPaused, structs.JobStopping:
		return env.paint(colourYellow, text)
	default:
		return text
	}
}

// when shows a time in the user's zone.
func when(at structs.UnixNano) string {
	if at == 0 {
		return "-"
	}
	return at.Time().Local().Format("2006-01-02 15:04:05")
}

// span shows a duration with at most two units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// size shows bytes with an IEC unit.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	text := fmt.Sprintf("%.1f", value)
	return strings.TrimSuffix(text, ".0") + units[unit]
}

// short gives the first characters of an id, enough for people.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
