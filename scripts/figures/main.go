// Figures shows what scripts/bench measures beside what was measured before,
// and keeps it. It is run by `make bench` and `make figures`.
//
// Flow: lines of scripts/bench come in; each is shown with the figure that the
// ledger (website/reference/figures.json) has, and marked when it is worse by more
// than a fifth. With -write the ledger keeps them under a revision, and the table
// of website/reference/figures.md is written anew from it, never by hand.
//
// Limits: what no line speaks of stays as it is, with its own revision.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	dir := flag.String("dir", "website/reference", "where figures.json and figures.md are")
	write := flag.Bool("write", false, "keep what comes in")
	revision := flag.String("revision", "", "with -write: what was measured")
	date := flag.String("date", time.Now().Format(time.DateOnly), "with -write: when")
	machine := flag.String("machine", "", "with -write: on what, in words, if that is another than before")
	flag.Parse()
	if err := run(os.Stdin, os.Stderr, *dir, *machine, *revision, *date, *write); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, dir, machine, revision, date string, write bool) error {
	if write && revision == "" {
		return errors.New("-write needs the -revision that was measured")
	}
	data, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	if err != nil {
		return err
	}
	l, err := readLedger(data)
	if err != nil {
		return err
	}
	if machine != "" {
		l.Machine = machine
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var now line
		if err := json.Unmarshal(lines.Bytes(), &now); err != nil || now.Name == "" {
			return fmt.Errorf("%q is no line of scripts/bench: %w", lines.Text(), errors.Join(err, errors.New("a JSON object with a name is")))
		}
		fmt.Fprintln(out, l.compare(now))
		if write {
			l.record(now.Name, now.measured(revision, date))
		}
	}
	if err := lines.Err(); err != nil || !write {
		return err
	}
	return l.save(dir)
}

// save writes the ledger and the page.
func (l *ledger) save(dir string) error {
	if err := l.problem(); err != nil {
		return err
	}
	path := filepath.Join(dir, "figures.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := l.put(string(page))
	if err != nil {
		return err
	}
	data, err := l.marshal()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "figures.json"), data, 0o644), os.WriteFile(path, []byte(text), 0o644))
}
