package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// worseBy is the part by which a figure may be worse than the one before
// until it is marked.
const worseBy = 0.2

// ledger is every figure that is kept, in the order of the table.
type ledger struct {
	Machine string   `json:"machine"` // on which they were measured, in words
	Figures []figure `json:"figures"`
}

// figure is one quantity: what it is, and what was measured last and before.
type figure struct {
	Name   string  `json:"name"` // ends in the unit
	What   string  `json:"what,omitempty"`
	Higher bool    `json:"higher,omitempty"` // the more the better; otherwise the less
	Reach  float64 `json:"reach,omitempty"`  // what is wanted; 0: nothing is said
	Peers  string  `json:"peers,omitempty"`  // Nomad 2.0 / Slurm 22.05 on the same kind of machine
	By     string  `json:"by,omitempty"`     // the command that measures it; "": make bench

	Last   measured  `json:"last"`
	Before *measured `json:"before,omitempty"` // by another revision
}

// measured is what came of one run.
type measured struct {
	Value    float64 `json:"value"`         // the median
	P99      float64 `json:"p99,omitempty"` // 0: of too few values
	N        int     `json:"n,omitempty"`   // values, 0: not written down
	Revision string  `json:"revision"`
	Date     string  `json:"date"` // 2006-01-02
}

// line is one line that scripts/bench prints.
type line struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// p99Least is of how many values a p99 is told.
const p99Least = 20

// measured is what a line says.
func (l line) measured(revision, date string) measured {
	m := measured{Value: l.P50, N: l.N, Revision: revision, Date: date}
	if l.N >= p99Least {
		m.P99 = l.P99
	}
	return m
}

// find returns the figure of a name, nil for none.
func (l *ledger) find(name string) *figure {
	for i := range l.Figures {
		if l.Figures[i].Name == name {
			return &l.Figures[i]
		}
	}
	return nil
}

// record writes what was measured beside what was measured before by another
// revision; the same revision measured again takes the place of its own. A
// figure that is new stands at the end, without words.
func (l *ledger) record(name string, m measured) {
	f := l.find(name)
	switch {
	case f == nil:
		l.Figures = append(l.Figures, figure{Name: name, Last: m})
	case f.Last.Revision == m.Revision:
		f.Last = m
	default:
		before := f.Last
		f.Before, f.Last = &before, m
	}
}

// worse reports by what part a value is worse than another, 0 for not at all.
func (f *figure) worse(now, before float64) float64 {
	if f != nil && f.Higher {
		now, before = before, now
	}
	if now <= before {
		return 0
	}
	if before <= 0 {
		return math.Inf(1)
	}
	return now/before - 1
}

// missed reports whether a value is not as good as it is wanted.
func (f *figure) missed(value float64) bool {
	return f.Reach != 0 && (f.Higher && value < f.Reach || !f.Higher && value > f.Reach)
}

// compare writes what was measured beside what the ledger has, for people.
func (l *ledger) compare(now line) string {
	text := fmt.Sprintf("%-42s %10s", now.Name, number(now.P50))
	if now.N >= p99Least {
		text += fmt.Sprintf(" (p99 %s)", number(now.P99))
	}
	f := l.find(now.Name)
	if f == nil {
		return text + "  new"
	}
	text += fmt.Sprintf("  before %s at %s", number(f.Last.Value), f.Last.Revision)
	if by := f.worse(now.P50, f.Last.Value); by > worseBy {
		text += fmt.Sprintf("  WORSE by %.0f %%", by*100)
	}
	if f.missed(now.P50) {
		text += "  misses " + number(f.Reach)
	}
	return text
}

// number writes a value with as many digits as say something.
func number(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// table writes the ledger as the page of figures shows it.
func (l *ledger) table() string {
	var b strings.Builder
	b.WriteString("| figure | measured (p99) | by revision | before | wanted | Nomad 2.0 / Slurm 22.05 |\n|---|---|---|---|---|---|\n")
	for i := range l.Figures {
		f := &l.Figures[i]
		name := "`" + f.Name + "`"
		if f.What != "" {
			name += ": " + f.What
		}
		if f.By != "" {
			name += " (`" + f.By + "`)"
		}
		value := number(f.Last.Value)
		if f.Last.P99 > 0 {
			value += " (" + number(f.Last.P99) + ")"
		}
		before, wanted := "", ""
		if f.Before != nil {
			before = number(f.Before.Value) + " at " + f.Before.Revision
			if by := f.worse(f.Last.Value, f.Before.Value); by > worseBy {
				before += fmt.Sprintf(", **worse by %.0f %%**", by*100)
			}
		}
		if f.Reach != 0 {
			sign := "≤ "
			if f.Higher {
				sign = "≥ "
			}
			if wanted = sign + number(f.Reach); f.missed(f.Last.Value) {
				wanted += ", **missed**"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s, %s | %s | %s | %s |\n", name, value, f.Last.Revision, f.Last.Date, before, wanted, f.Peers)
	}
	return b.String()
}

// problem reports what is wrong with a ledger.
func (l *ledger) problem() error {
	seen := map[string]bool{}
	for _, f := range l.Figures {
		switch {
		case f.Name == "" || strings.ContainsAny(f.Name+f.What+f.Peers, "|\n"):
			return fmt.Errorf("figure %q cannot stand in a table", f.Name)
		case seen[f.Name]:
			return fmt.Errorf("figure %s stands there twice", f.Name)
		case f.Last.Revision == "" || f.Last.Date == "":
			return fmt.Errorf("figure %s has no revision or no date", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// The table stands between these lines of the page.
const (
	tableBegin = "<!-- written by `make figures` -->\n"
	tableEnd   = "<!-- end -->\n"
)

// put returns the page with the ledger's table in it.
func (l *ledger) put(page string) (string, error) {
	head, rest, ok := strings.Cut(page, tableBegin)
	_, tail, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the page has no place for the table: it stands between %q and %q", strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return head + tableBegin + "Measured on " + l.Machine + ".\n\n" + l.table() + tableEnd + tail, nil
}

// readLedger reads what marshal wrote.
func readLedger(data []byte) (*ledger, error) {
	l := new(ledger)
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read the ledger of figures: %w", err)
	}
	return l, l.problem()
}

func (l *ledger) marshal() ([]byte, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(l)
	return []byte(b.String()), err
}
