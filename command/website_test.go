package command

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nomadlike/internal/messages"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/structs"
)

// page is a text for people.
type page struct {
	path     string
	language messages.Language
	text     string
}

// fence is a block of code in a page.
type fence struct {
	kind string // what stands behind the opening ```
	line int
	text string
}

// guides reads every page of the guides, and the README.
func guides(t *testing.T) []page {
	t.Helper()
	var pages []page
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		paths, err := filepath.Glob(filepath.Join("..", "website", "guide", string(language), "*.md"))
		if err != nil || len(paths) < 6 {
			t.Fatalf("guides in %s: %d pages, %v", language, len(paths), err)
		}
		for _, path := range paths {
			pages = append(pages, readPage(t, path, language))
		}
	}
	return append(pages, readPage(t, "../README.md", messages.English))
}

func readPage(t *testing.T, path string, language messages.Language) page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return page{path, language, string(text)}
}

// fences lists the blocks of code of a page.
func (p page) fences() []fence {
	var list []fence
	open := false
	for n, line := range strings.Split(p.text, "\n") {
		rest, marks := strings.CutPrefix(line, "```")
		switch {
		case marks && !open:
			list, open = append(list, fence{kind: strings.TrimSpace(rest), line: n + 1}), true
		case marks:
			open = false
		case open:
			list[len(list)-1].text += line + "\n"
		}
	}
	return list
}

// TestGuideJobs: what the guides show as a job file is one, and is available
// unless it is marked as later.
func TestGuideJobs(t *testing.T) {
	jobs := 0
	for _, p := range guides(t) {
		for _, f := range p.fences() {
			if f.language() != "hcl" || !regexp.MustCompile(`(?m)^job "`).MatchString(f.text) {
				continue
			}
			jobs++
			checkJobFile(t, fmt.Sprintf("%s:%d", p.path, f.line), f.text, f.says("later"))
		}
	}
	if jobs < 16 {
		t.Errorf("only %d job files found", jobs)
	}
	paths, err := filepath.Glob("../website/examples/*.hcl")
	if err != nil || len(paths) < 4 {
		t.Fatalf("examples: %q, %v", paths, err)
	}
	index, err := os.ReadFile("../website/examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); !bytes.Contains(index, []byte("["+name+"]("+name+")")) {
			t.Errorf("website/examples/README.md does not name %s", name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checkJobFile(t, path, string(text), false)
		if formatted, _ := jobspec.Format(path, text); !bytes.Equal(formatted, text) {
			t.Errorf("%s is not formatted: nomadlike job fmt", path)
		}
	}
}

func checkJobFile(t *testing.T, name, text string, later bool) {
	t.Helper()
	job, _, diagnostics := jobspec.Parse(name, []byte(text), jobspec.Options{})
	if len(diagnostics) > 0 {
		var shown strings.Builder
		_ = diagnostics.Render(&shown, jobspec.Style{})
		t.Errorf("%s", shown.String())
	}
	if job == nil {
		return
	}
	switch missing := job.NotAvailable(); {
	case len(missing) > 0 && !later:
		t.Errorf("%s: not available yet: %v", name, missing)
	case len(missing) == 0 && later:
		t.Errorf("%s is marked as later, but all of it is available", name)
	}
}

// TestGuideCommands: commands and flags that the guides and the messages name
// exist.
func TestGuideCommands(t *testing.T) {
	commands := 0
	for _, p := range guides(t) {
		for _, f := range p.fences() {
			if f.language() == "hcl" {
				continue
			}
			for n, line := range strings.Split(f.text, "\n") {
				line, _, _ = strings.Cut(line, " #")
				for _, command := range strings.Split(line, " ; ") {
					command = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(command), "$ "), "bin/")
					if !strings.HasPrefix(command, "nomadlike ") {
						continue
					}
					commands++
					checkCommand(t, fmt.Sprintf("%s:%d", p.path, f.line+n+1), command)
				}
			}
		}
		for _, code := range regexp.MustCompile("`(nomadlike [^`]+)`").FindAllStringSubmatch(p.text, -1) {
			commands++
			checkCommand(t, p.path, code[1])
		}
	}
	if commands < 100 {
		t.Errorf("only %d commands found", commands)
	}
	for id, path := range readCatalogue(t) {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			for _, code := range regexp.MustCompile("`(nomadlike [^`]+)`").FindAllStringSubmatch(messages.Text(language, id, nil), -1) {
				checkCommand(t, path+" "+id, code[1])
			}
		}
	}
}

// checkCommand parses a command line without running it.
func checkCommand(t *testing.T, at, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " >")
	line = strings.TrimSuffix(strings.TrimSpace(line), "&")
	words, err := structs.SplitCommand(line)
	if err != nil {
		t.Errorf("%s: %s: %v", at, line, err)
		return
	}
	env, _, _ := paper()
	args := env.takeLanguage(words[1:])
	if len(args) > 0 && args[0] == "help" {
		if args[1] != "COMMAND" && args[1] != "命令" && args[1] != "{command}" && len(matching(strings.Join(args[1:], " "))) == 0 {
			t.Errorf("%s: %s: there is no such command", at, line)
		}
		return
	}
	v, rest, ok := find(args)
	if !ok {
		t.Errorf("%s: %s: there is no such command", at, line)
		return
	}
	set := flag.NewFlagSet(v.path, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	v.setup(set)
	rest = slices.DeleteFunc(rest, func(word string) bool { return strings.Contains(word, "…") })
	if _, err := parseFlags(set, rest, v.stopAtArg); err != nil {
		var told *usageError
		// "-join-token …" lost its value with the dots.
		if !errors.As(err, &told) || told.id != "cli.flag_needs_value" || !strings.Contains(line, "…") {
			t.Errorf("%s: %s: %v", at, line, err)
		}
	}
}

// TestLinks: links between pages lead somewhere.
func TestLinks(t *testing.T) {
	pages := guides(t)
	for _, path := range []string{"../CONTRIBUTING.md", "../GLOSSARY.md", "../nomadlike/ARCHITECTURE.md"} {
		pages = append(pages, readPage(t, path, messages.English))
	}
	for _, p := range pages {
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(p.text, -1) {
			if made := filepath.Base(link[1]); made == "errors.md" || made == "events.md" {
				continue // made out of the catalogue when the pages are rendered: TestLinksOfSite follows it
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(p.path), link[1])); err != nil {
				t.Errorf("%s: %v", p.path, err)
			}
		}
	}
}

// TestTroubleshootingMessages: the messages that the page explains are those
// that the program says, with … for what varies.
func TestTroubleshootingMessages(t *testing.T) {
	ids := readCatalogue(t)
	parameter := regexp.MustCompile(`\{[a-z_]+(?::words?)?\}`)
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		p := readPage(t, "../website/guide/"+string(language)+"/troubleshooting.md", language)
		said := make(map[string]bool)
		for id := range ids {
			said[parameter.ReplaceAllString(messages.Text(language, id, nil), "…")] = true
		}
		rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(p.text, -1)
		if len(rows) < 30 {
			t.Errorf("%s: only %d rows", p.path, len(rows))
		}
		for _, row := range rows {
			found := said[row[1]]
			if begin, cut := strings.CutSuffix(row[1], "…"); cut && !found {
				for text := range said {
					found = found || strings.HasPrefix(text, begin)
				}
			}
			if !found {
				t.Errorf("%s: nothing says %q", p.path, row[1])
			}
		}
	}
}

// TestJobFilePageIsWhole: the page names every field of a job, every
// function, the limits as they are, and diagnostics as they look.
func TestJobFilePageIsWhole(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		p := readPage(t, "../website/guide/"+string(language)+"/job-files.md", language)
		for _, name := range jobFields(reflect.TypeFor[structs.Job](), nil) {
			if !regexp.MustCompile("[`{ (]" + name + "[`\" },(]").MatchString(p.text) {
				t.Errorf("%s does not name %s", p.path, name)
			}
		}
		for _, name := range jobspec.FunctionNames() {
			if !strings.Contains(p.text, "`"+name+"`") {
				t.Errorf("%s does not name the function %s", p.path, name)
			}
		}
		for _, limit := range []struct{ name, value string }{
			{"`nodes`", strconv.Itoa(structs.NodesMax)},
			{"`batch.count`", strconv.Itoa(structs.BatchCountMax)},
			{"", strconv.Itoa(structs.JobRanksMax)},
			{"`resources`", strconv.Itoa(structs.AlternativesMax)},
			{"`cpu`", strconv.Itoa(int(structs.CPUMax))},
			{"`memory`", structs.FormatSize(structs.MemoryMax)},
			{"`port`", strconv.Itoa(structs.PortsMax)},
			{"`procs_per_node`", strconv.Itoa(structs.ProcsMax)},
			{"`env`", strconv.Itoa(structs.EnvMax)},
			{"`max_restarts`", strconv.Itoa(structs.RestartsMax)},
			{"`time_limit`", structs.FormatDuration(structs.SpanMax)},
			{"`stop_grace`", structs.FormatDuration(structs.GraceMax)},
			{"", structs.FormatSize(jobspec.SourceSizeMax)},
		} {
			if !regexp.MustCompile(`(?m)^\| ` + limit.name + `[^|]* \| ` + limit.value + ` \|$`).MatchString(p.text) {
				t.Errorf("%s: no row gives %s as the limit of %s", p.path, limit.value, limit.name)
			}
		}
		const wrong = "job \"bad\" {\n  nods = 2\n  resources {\n    memory = \"2GB\"\n  }\n  task {\n    command = \"true\"\n  }\n}\n"
		_, _, diagnostics := jobspec.Parse("train.hcl", []byte(wrong), jobspec.Options{})
		var shown strings.Builder
		if err := diagnostics.Render(&shown, jobspec.Style{Language: language}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.text, shown.String()) {
			t.Errorf("%s does not show the diagnostics as they are:\n%s", p.path, shown.String())
		}
	}
}

// jobFields lists what authors of job files write: the names of all fields
// that are not fixed at admission, and not the label of a block.
func jobFields(of reflect.Type, names []string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return names
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "id", "user", "submitted_at", "idempotency_key", "source": // some are words of other blocks too
			continue
		case "name", "label", "kind", "when", "target", "mode", "node": // labels
			continue
		case "last_devices", "rdma_by_nodes", "resume", "patient_starts", "outside_yields", "saves_at_ends", "kills_last", "limit_warning", "before", "begin_at", "deadline_at", "number": // no word of job files
			continue
		case "subtasks", "devices", "ports", "hooks", "algorithms", "datasets", "models", "volumes", "mounts", "machines":
			name = strings.TrimSuffix(name, "s") // blocks that may repeat
		case "keep":
			name = "idle" // of a throttle: the log has the old name
		case "workdir":
			names = append(names, name)
			continue // what it holds is filled in from the folder
		}
		names = jobFields(field.Type, append(names, name))
	}
	return names
}
