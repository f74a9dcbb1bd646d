// Program pictures holds the web pages against stored pictures.
//
// Flow: it sets up demonstration clusters whose clock stands still (package stage),
// has a browser take every page of them in both languages, themes and three widths
// (ui/e2e/pictures.mjs), and compares what came with what is stored (package look). It
// writes a page of differences, and fails when there are any, when a page moves while
// it loads, or when axe finds something.
//
// Limits: pictures depend on the version of the browser; a new one may need new
// pictures, which a person looks at.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nomadlike/scripts/pictures/look"
	"nomadlike/scripts/pictures/stage"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", filepath.Join(os.TempDir(), "nomadlike-pictures"), "`folder` for what was taken and for the page of differences")
	flag.StringVar(&o.stored, "stored", "ui/e2e/pictures", "`folder` of the stored pictures")
	flag.StringVar(&o.only, "only", "", "only pages whose name has this `text` in it; commas part several")
	flag.IntVar(&o.width, "width", 0, "only at this `width`, in pixels: 1440, 1024 or 390")
	flag.StringVar(&o.chromium, "chromium", "/usr/bin/chromium", "`path` of the browser")
	flag.BoolVar(&o.update, "update", false, "store what was taken")
	flag.BoolVar(&o.smooth, "smooth", false, "take pictures for people, with smooth letters; nothing is compared")
	flag.StringVar(&o.serve, "serve", "", "serve one cluster (demo, four or thousand) until interrupted, and take nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

type options struct {
	out, stored, only, chromium, serve string
	update, smooth                     bool
	width                              int
}

// place is where the browser finds one cluster.
type place struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// tour is what the browser is told.
type tour struct {
	Now    string           `json:"now"`
	Zone   string           `json:"zone"`
	Out    string           `json:"out"`
	Only   string           `json:"only"`
	Width  int              `json:"width"`
	Places map[string]place `json:"places"`
}

func run(ctx context.Context, o *options) error {
	begun := time.Now()
	stages := map[string]stage.Story{"demo": stage.Demo, "four": stage.Four, "thousand": stage.Thousand}
	if o.serve != "" {
		return serve(ctx, stages[o.serve])
	}
	told := tour{Now: stage.Now.Format(time.RFC3339), Zone: stage.Zone, Out: o.out, Only: o.only, Width: o.width, Places: map[string]place{}}
	for name, story := range stages {
		opened, err := stage.Open(ctx, story)
		if err != nil {
			return fmt.Errorf("set up the cluster %s: %w", name, err)
		}
		defer opened.Close()
		told.Places[name] = place{Address: opened.Address, Token: opened.Token}
	}
	if err := clear(o.out); err != nil {
		return err
	}
	faults, err := o.take(ctx, &told)
	if err != nil {
		return err
	}
	if o.smooth {
		fmt.Printf("pictures for people are in %s\n", o.out)
		return nil
	}
	report, err := look.Compare(o.stored, o.out, look.Choice{Only: o.only, Width: o.width}, o.update)
	if err != nil {
		return err
	}
	report.Faults = faults
	page, err := report.Write(o.out)
	if err != nil {
		return err
	}
	fmt.Printf("%d pictures in %d s: %s\npage of differences: %s\n", report.Taken, int(time.Since(begun).Seconds()), report.Summary(), page)
	if !report.Good() {
		return errors.New(report.Summary())
	}
	return nil
}

// serve lets people look at a cluster themselves.
func serve(ctx context.Context, story stage.Story) error {
	if story == nil {
		return errors.New("no such cluster: there are demo, four and thousand")
	}
	opened, err := stage.Open(ctx, story)
	if err != nil {
		return err
	}
	defer opened.Close()
	fmt.Printf("%s\ntoken %s\nthe clock stands at %s\n", opened.Address, opened.Token, stage.Now.Format(time.RFC3339))
	<-ctx.Done()
	return nil
}

// clear makes an empty folder of the program's own: only one that it wrote, or that
// is empty, is emptied.
func clear(folder string) error {
	const mark = ".pictures"
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(folder, mark)); err != nil {
			return fmt.Errorf("%s holds something else: name another folder with -out", folder)
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, mark), nil, 0o600)
}

// take has the browser take the pictures, and returns what it found wrong with pages
// besides.
func (o *options) take(ctx context.Context, told *tour) ([]string, error) {
	input, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	browser := exec.CommandContext(ctx, "node", "e2e/pictures.mjs", "--chromium", o.chromium)
	browser.Dir, browser.Stdin, browser.Stderr = "ui", strings.NewReader(string(input)), os.Stderr
	browser.Cancel = func() error { return browser.Process.Signal(syscall.SIGTERM) }
	browser.Env = os.Environ()
	if !o.smooth {
		fonts, err := look.Fonts(o.out)
		if err != nil {
			return nil, err
		}
		browser.Env = append(browser.Env, "FONTCONFIG_FILE="+fonts)
	}
	output, err := browser.Output()
	if err != nil {
		return nil, fmt.Errorf("take pictures: %w", err)
	}
	var found struct {
		Faults []string `json:"faults"`
	}
	if err := json.Unmarshal(output, &found); err != nil {
		return nil, fmt.Errorf("read what the browser found: %w", err)
	}
	return found.Faults, nil
}
