package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// text renders a message in the user's language.
func (env *Env) text(id string, params ...any) string {
	return messages.Textf(env.Language, id, params...)
}

// printError writes a problem and, when there is one, its cure to stderr.
func (env *Env) printError(problem, hint string) {
	fmt.Fprintf(env.Stderr, "%s %s\n", env.Stderr.paint(colourRed, env.text("cli.error")), problem)
	if hint != "" {
		fmt.Fprintf(env.Stderr, "  %s\n", hint)
	}
}

// reportError renders whatever a verb returned. Errors of the cluster carry
// a message id; others are printed as they are, made safe for a terminal.
func (env *Env) reportError(err error) {
	var e *structs.Error
	if !errors.As(err, &e) {
		env.printError(safeText(err.Error()), "")
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
		return safeText(messages.Text(env.Language, e.ID, localTimes(e.Params)))
	}
	return safeText(e.Error())
}

// hintText is the hint that an error names, or the one that belongs to its
// id.
func (env *Env) hintText(e structs.Error) string {
	for _, id := range []string{e.Params["hint_id"], e.ID + ".hint"} {
		if id != "" && messages.Has(env.Language, id) {
			return safeText(messages.Text(env.Language, id, localTimes(e.Params)))
		}
	}
	return safeText(e.Hint)
}

// reasonText renders a reason or an event. The words of a state machine among
// its parameters are said in the user's language.
func (env *Env) reasonText(reason *structs.Reason) string {
	if reason == nil || reason.ID == "" {
		return ""
	}
	params := localTimes(reason.Params)
	if id := "cli.outcome." + params["outcome"]; messages.Has(env.Language, id) {
		params = maps.Clone(params)
		params["outcome"] = env.text(id)
	}
	return safe(messages.Text(env.Language, reason.ID, params))
}

// localTimes puts times into the zone of this machine, as people read them.
func localTimes(params map[string]string) map[string]string {
	var own map[string]string
	for name, value := range params {
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			continue
		}
		if own == nil {
			own = maps.Clone(params)
		}
		layout := "2006-01-02 15:04"
		if at.Second() != 0 {
			layout = "2006-01-02 15:04:05"
		}
		own[name] = at.Local().Format(layout)
	}
	if own == nil {
		return params
	}
	return own
}

// show prints value as -json or -t asks; otherwise it calls plain.
func (env *Env) show(flags outputFlags, value any, plain func()) error {
	switch {
	case flags.template.parsed != nil:
		var out strings.Builder
		if err := flags.template.parsed.Execute(&out, value); err != nil {
			return usagef("cli.bad_template", "problem", safe(err.Error()))
		}
		fmt.Fprintln(env.Stdout, safeText(out.String()))
	case *flags.json:
		return writeJSON(env.Stdout, value)
	default:
		plain()
	}
	return nil
}

// writeJSON writes value for programs, and harmless on a terminal, too: what
// JSON lets stand of control and bidirectional characters is escaped. They
// occur within its texts only, where an escape means the same.
func writeJSON(w io.Writer, value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, safeText(encoded.String()))
	return err
}

// all makes an empty list of none, so that JSON says [] and not null.
func all[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// table aligns rows by display width: a Chinese character takes two cells.
type table struct {
	on     *Screen
	header []string
	rows   [][]string
}

func newTable(on *Screen, header ...string) *table {
	return &table{on: on, header: header}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() {
	for _, line := range t.lines() {
		fmt.Fprintln(t.on, line)
	}
}

// lines returns the header, if there is one, and the rows, aligned.
func (t *table) lines() []string {
	widths := make([]int, len(t.header))
	rows := t.rows
	headed := strings.Join(t.header, "") != ""
	if headed {
		rows = append([][]string{t.header}, t.rows...)
	}
	for _, cells := range rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], displayWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for n, cells := range rows {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString(cell)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-displayWidth(cell)+2))
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
		if n == 0 && headed {
			lines[n] = t.on.paint(colourBold, lines[n])
		}
	}
	return lines
}

// clip cuts a line to a number of cells; its colours end with it.
func clip(line string, cells int) string {
	if displayWidth(line) <= cells {
		return line
	}
	used, colour, coloured := 0, false, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			colour, coloured = true, true
			continue
		case colour:
			colour = r != 'm'
			continue
		}
		used += displayWidth(string(r))
		if used > cells {
			line = line[:i]
			break
		}
	}
	if coloured {
		line += "\x1b[0m"
	}
	return line
}

// displayWidth is the number of cells that text takes on a terminal: colours
// none, wide characters two.
func displayWidth(text string) int {
	cells, colour := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			colour = true
		case colour:
			colour = r != 'm'
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			cells += 2
		default:
			cells++
		}
	}
	return cells
}

func wide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}

// safe makes one line of text from elsewhere, such as a name, harmless on a
// terminal: control characters, line breaks included, and bidirectional
// overrides are shown as escapes.
func safe(s string) string { return escape(s, false) }

// safeText is safe for text of several lines: tabs and line breaks stay.
func safeText(s string) string { return escape(s, true) }

func escape(s string, breaks bool) string {
	fine := func(r rune) bool { return harmless(r) || breaks && (r == '\n' || r == '\t') }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !fine(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case fine(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// harmless reports whether a terminal just draws a character where it stands.
func harmless(r rune) bool {
	switch {
	case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0: // C0 and C1 controls
		return false
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional
		return false
	case r == 0x2028, r == 0x2029: // line and paragraph separators
		return false
	}
	return true
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

// paint colours text when the screen wants colours.
func (s *Screen) paint(colour, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// rankColour returns the colour of a rank.
func rankColour(rank int) string {
	palette := []string{"36", "33", "35", "32", "34", "31"}
	return palette[rank%len(palette)]
}

// stateText names a job's state in the user's language, coloured for a
// screen.
func (env *Env) stateText(on *Screen, state structs.JobState) string {
	text := env.text("cli.state." + string(state))
	switch state {
	case structs.JobRunning, structs.JobSucceeded:
		return on.paint(colourGreen, text)
	case structs.JobFailed, structs.JobExpired:
		return on.paint(colourRed, text)
	case structs.JobQueued, structs.JobStarting, structs.JobPaused, structs.JobStopping:
		return on.paint(colourYellow, text)
	default:
		return text
	}
}

// allocText names an allocation's status in the user's language, and how far its
// preparation is.
func (env *Env) allocText(alloc *structs.Allocation) string {
	text := env.text("cli.alloc." + string(alloc.Status))
	if hold := alloc.Hold; hold != nil {
		return env.text("cli.alloc.held", "state", text, "left", span(max(0, time.Until(hold.Until.Time()).Round(time.Second))))
	}
	if alloc.Status != structs.AllocPreparing || alloc.Step == "" {
		return text
	}
	step := safe(alloc.Step)
	if id := "cli.step." + alloc.Step; messages.Has(env.Language, id) {
		step = env.text(id)
	}
	if alloc.Progress > 0 {
		return env.text("cli.alloc.step_percent", "state", text, "step", step, "percent", alloc.Progress)
	}
	return env.text("cli.alloc.step", "state", text, "step", step)
}

// yesNo answers in the user's language.
func (env *Env) yesNo(yes bool) string {
	if yes {
		return env.text("cli.yes")
	}
	return env.text("cli.no")
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

// short returns the first characters of an id, enough for people.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
