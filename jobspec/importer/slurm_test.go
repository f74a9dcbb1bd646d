package importer

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSlurmTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Minute, "90:30": 90*time.Minute + 30*time.Second, "2:00:00": 2 * time.Hour, "1-0": 24 * time.Hour, "1-12": 36 * time.Hour,
		"1-12:30": 36*time.Hour + 30*time.Minute, "1-12:30:15": 36*time.Hour + 30*time.Minute + 15*time.Second,
		"0": 0, "UNLIMITED": 0, "infinite": 0,
		"": -1, "x": -1, "1:2:3:4": -1, "-5": -1, "1-": -1, "99999999-0": -1, "4000-0": -1,
	} {
		got, none, ok := slurmTime(text)
		if !ok {
			got = -1
		}
		if got != want || ok && none != (want == 0) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestSlurmSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1024": 1 << 30, "64G": 64 << 30, "64GB": 64 << 30, "64gib": 64 << 30, "512M": 512 << 20, "2T": 2 << 40, "1048576K": 1 << 30, "0": 0,
		"": -1, "G": -1, "1.5G": -1, "-1": -1, "999999999T": -1,
	} {
		got, ok := slurmSize(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestSlurmLists(t *testing.T) {
	for text, want := range map[string]string{
		"gpu[01-03,07]": "gpu01 gpu02 gpu03 gpu07", "a,b": "a b", "n[9-11]-ib,login1": "n9-ib n10-ib n11-ib login1",
		"n[1-": "", "n]1[": "", "n[1-3][1-2]": "", "n[3-1]": "", "n[0-99999]": "",
	} {
		hosts, ok := hostlist(text)
		if got := strings.Join(hosts, " "); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for want, ids := range map[int][]int{1: {0, 1, 2, 3}, 2: {1, 3, 5}, 0: {0, 6, 16, 17}} {
		if got := apart(ids); got != want {
			t.Errorf("%v lie %d apart, want %d", ids, got, want)
		}
	}
}

func TestSlurmSignal(t *testing.T) {
	for text, want := range map[string]string{
		"USR1@300": "SIGUSR1 5m0s false", "B:TERM@60": "SIGTERM 1m0s true", "SIGUSR2": "SIGUSR2 1m0s false", "10@90": "SIGUSR1 1m30s false", "RB:INT@5": "SIGINT 5s true",
		"KILL@3": "", "USR1@x": "", "USR1@0": "", "": "",
	} {
		name, before, shell, ok := slurmSignal(text)
		got := ""
		if ok {
			got = name + " " + before.String()
			if shell {
				got += " true"
			} else {
				got += " false"
			}
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestSlurmWords(t *testing.T) {
	for text, want := range map[string]string{
		` -N 2 --mem=1G`: "-N|2|--mem=1G", ` -J "a b" # why`: "-J|a b", ` --comment='#1 "x"'`: `--comment=#1 "x"`, ` --job-name=a\ b`: "--job-name=a b", `=x`: "=x", ``: "",
	} {
		words, open := slurmWords(text)
		if got := strings.Join(words, "|"); got != want || open {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if _, open := slurmWords(` -J "a`); !open {
		t.Error("a quote that is not closed was not seen")
	}
}

// TestSlurmTable: every option is told of by one of its ways, names and letters are
// there once, and beginnings are found as getopt_long finds them.
func TestSlurmTable(t *testing.T) {
	counted := strings.Fields(`nodes ntasks ntasks-per-node cpus-per-task cpus-per-gpu mincpus mem mem-per-cpu mem-per-gpu gres gpus gpus-per-node gpus-per-task
		ntasks-per-gpu exclusive time input export get-user-env container-image container-mounts container-workdir`)
	names := make(map[string]bool)
	letters := make(map[byte]bool)
	for _, one := range slurmTable() {
		for _, name := range append([]string{one.name}, one.also...) {
			if names[name] {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
		}
		if one.short != 0 && letters[one.short] {
			t.Errorf("-%c is there twice", one.short)
		}
		letters[one.short] = true
		ways := 0
		for _, way := range []bool{one.take != nil, one.text != "", slices.Contains(counted, one.name)} {
			if way {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s is told of in %d ways", one.name, ways)
		}
	}
	for name, want := range map[string]string{"out": "output", "err": "error", "tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "part": "partition", "job": "job-name", "n": "", "frob": ""} {
		option, problem := longOption(name)
		if option.name != want || (problem == "") != (want != "") {
			t.Errorf("--%s is %q, want %q", name, option.name, want)
		}
	}
}

// TestSlurmGuide holds the table of the guides and that of the code to the same
// options.
func TestSlurmGuide(t *testing.T) {
	names := regexp.MustCompile("`(--?)([a-z-]+|[A-Za-z])(?:=[^`]*)?`")
	for language, title := range map[string]string{"en": "\n## Directives\n", "zh": "\n## 指令\n"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "website", "guide", language, "from-slurm.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(page), title)
		part, _, _ := strings.Cut(rest, "\n## ")
		if !found {
			t.Fatalf("%s has no table", language)
		}
		told := make(map[string]bool)
		for _, line := range strings.Split(part, "\n") {
			cells := strings.Split(line, " | ")
			for _, m := range names.FindAllStringSubmatch(cells[0], -1) {
				told[m[1]+m[2]] = true
			}
		}
		for _, one := range slurmTable() {
			if !told["--"+one.name] {
				t.Errorf("%s: the guide does not name --%s", language, one.name)
			}
			if one.short != 0 && !told["-"+string(one.short)] {
				t.Errorf("%s: the guide does not name -%c of --%s", language, one.short, one.name)
			}
			delete(told, "--"+one.name)
			delete(told, "-"+string(one.short))
		}
		for name := range told {
			t.Errorf("%s: the guide names %s, which is not known", language, name)
		}
	}
}
