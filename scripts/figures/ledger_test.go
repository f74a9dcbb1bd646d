package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const reference = "../../website/reference"

// The page is what the ledger says, and nobody wrote into either by hand.
func TestPageIsTheLedgers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(reference, "figures.json"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLedger(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.marshal()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(again), string(data)); diff != "" {
		t.Errorf("the ledger is not as it is written (-as written +there):\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(reference, "figures.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := l.put(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("the page is not the ledger's (-ledger +page):\n%s", diff)
	}
}

// What is measured is shown beside what was, kept under its revision, and marked
// when it is worse by more than a fifth, for times and for rates.
func TestFiguresAreKeptAndCompared(t *testing.T) {
	dir := t.TempDir()
	begun := `{"machine": "a desk", "figures": [
		{"name": "start_ms", "what": "to the process", "reach": 10, "last": {"value": 8, "revision": "aaa", "date": "2026-01-01"}},
		{"name": "rate_per_s", "higher": true, "reach": 250, "last": {"value": 200, "revision": "aaa", "date": "2026-01-01"}},
		{"name": "left_alone", "last": {"value": 1, "revision": "aaa", "date": "2026-01-01"}}]}`
	for name, text := range map[string]string{"figures.json": begun, "figures.md": "# Figures\n\n" + tableBegin + "old\n" + tableEnd + "\nThe end.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := `{"name":"start_ms","unit":"ms","n":100,"p50":11,"p90":12,"p99":20.25}
{"name":"rate_per_s","unit":"1/s","n":5,"p50":300,"p90":310,"p99":310}
{"name":"brand_new_s","unit":"s","n":1,"p50":0.1234,"p90":0.1234,"p99":0.1234}
`
	var told strings.Builder
	if err := run(strings.NewReader(lines), &told, dir, "", "", "", false); err != nil {
		t.Fatal(err)
	}
	want := `start_ms                                           11 (p99 20.2)  before 8 at aaa  WORSE by 38 %  misses 10
rate_per_s                                        300  before 200 at aaa
brand_new_s                                     0.123  new
`
	if diff := cmp.Diff(want, told.String()); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "figures.json")); err != nil || string(data) != begun {
		t.Errorf("the ledger was changed without -write: %v", err)
	}
	if err := run(strings.NewReader(lines), &told, dir, "", "", "2026-02-02", true); err == nil {
		t.Error("figures are kept without a revision")
	}
	if err := run(strings.NewReader("measuring submit\n"), &told, dir, "", "bbb", "2026-02-02", true); err == nil {
		t.Error("what is no figure is kept")
	}
	for range 2 { // measured again by the same revision it takes its own place
		if err := run(strings.NewReader(lines), &told, dir, "", "bbb", "2026-02-02", true); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "figures.md"))
	if err != nil {
		t.Fatal(err)
	}
	want = "# Figures\n\n" + tableBegin + `Measured on a desk.

| figure | measured (p99) | by revision | before | wanted | Nomad 2.0 / Slurm 22.05 |
|---|---|---|---|---|---|
| ` + "`start_ms`" + `: to the process | 11 (20.2) | bbb, 2026-02-02 | 8 at aaa, **worse by 38 %** | ≤ 10, **missed** |  |
| ` + "`rate_per_s`" + ` | 300 | bbb, 2026-02-02 | 200 at aaa | ≥ 250 |  |
| ` + "`left_alone`" + ` | 1 | aaa, 2026-01-01 |  |  |  |
| ` + "`brand_new_s`" + ` | 0.123 | bbb, 2026-02-02 |  |  |  |
` + tableEnd + "\nThe end.\n"
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
}
