package importer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/jobspec"
)

// corpus reads the files of testdata, by format.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for _, format := range Formats() {
		paths, err := filepath.Glob(filepath.Join("testdata", format, "*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no corpus for %s: %v", format, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = text
		}
	}
	return files
}

func show(t testing.TB, diagnostics jobspec.Diagnostics, language messages.Language) string {
	t.Helper()
	var out bytes.Buffer
	if err := diagnostics.Render(&out, jobspec.Style{Language: language}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCorpus compares what each file becomes with what was looked at.
func TestCorpus(t *testing.T) {
	for path, text := range corpus(t) {
		t.Run(path, func(t *testing.T) {
			result, diagnostics := Import(filepath.Base(path), text, Options{})
			got := show(t, diagnostics, messages.English)
			if result != nil {
				if got != "" {
					t.Errorf("a result and diagnostics:\n%s", got)
				}
				if want := filepath.Base(filepath.Dir(path)); string(result.Format) != want {
					t.Errorf("taken for %s, is %s", result.Format, want)
				}
				got = string(result.File)
			}
			golden.Assert(t, filepath.Join("testdata", "golden", filepath.Base(filepath.Dir(path)), filepath.Base(path)+".hcl"), got)
		})
	}
}

// TestWhole holds for every file, in both languages: the result is a job file that
// is valid and formatted, no text of a message is missing, and each directive's
// line is named in it.
func TestWhole(t *testing.T) {
	for path, text := range corpus(t) {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			result, _ := Import(filepath.Base(path), text, Options{Language: language})
			if result == nil {
				continue
			}
			if _, _, diagnostics := jobspec.Parse("job.hcl", result.File, jobspec.Options{}); diagnostics.HasErrors() {
				t.Errorf("%s: %s", path, show(t, diagnostics, language))
			}
			if formatted, _ := jobspec.Format("job.hcl", result.File); !bytes.Equal(formatted, result.File) {
				t.Errorf("%s is not formatted", path)
			}
			if missing := regexp.MustCompile(`import\.[a-z_.]+|\{[a-z]+\}`).FindString(commentsOf(string(result.File))); missing != "" {
				t.Errorf("%s: %s", path, missing)
			}
			if language == messages.English && result.Format == FormatSlurm {
				named(t, path, string(text), string(result.File))
			}
		}
	}
}

// commentsOf are the lines in front of the job.
func commentsOf(file string) string {
	head, _, _ := strings.Cut(file, "\njob ")
	return head
}

// named holds that no line of directives went away in silence.
func named(t *testing.T, path, text, file string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), slurmMark) && !strings.Contains(file, fmt.Sprintf("line %d:", i+1)) {
			t.Errorf("%s: line %d, %q, is nowhere", path, i+1, line)
		}
	}
}

// TestRefusals are files of which nothing can be made: each has the line, the cause
// and the cure.
func TestRefusals(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --mem=1G\n"
	for _, c := range []struct {
		name, text string
		format     Format
		line       int
		id         string
	}{
		{"gbk", head + "# \xc4\xe3\xba\xc3\npython a.py\n", "", 3, "import.utf8"},
		{"utf16", "\xff\xfe#\x00!\x00", "", 1, "import.utf16"},
		{"nul", head + "echo \x00\n", "", 3, "import.nul"},
		{"empty", " \n\n", "", 1, "import.empty"},
		{"long", head + strings.Repeat("# long\n", 200_000), "", 0, "import.too_long"},
		{"unknown", "hello\n", "", 0, "import.unknown"},
		{"format", head, "lsf", 0, "import.format"},
		{"hetjob", head + "#SBATCH hetjob\n#SBATCH --mem=2G\nsrun ./a\n", "", 3, "import.slurm.hetjob"},
		{"no command", head + "# nothing\n", "", 4, "import.slurm.no_command"},
		{"interpreter", "#!/usr/bin/lua\n#SBATCH --mem=1G\nprint(1)\n", "", 1, "import.slurm.interpreter"},
		{"much memory", "#!/bin/bash\n#SBATCH --nodes=9000 --array=0-99 --mem=1G\n./a\n", "", 2, "job.batch.ranks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, diagnostics := Import("x", []byte(c.text), Options{Format: c.format})
			if result != nil || len(diagnostics) == 0 {
				t.Fatalf("imported:\n%s", result.File)
			}
			d := diagnostics[0]
			if d.ID != c.id || d.Range.Start.Line != c.line {
				t.Errorf("%s at line %d, want %s at %d", d.ID, d.Range.Start.Line, c.id, c.line)
			}
			if strings.HasPrefix(d.ID, "import.") && (d.Hint(messages.English) == "" || d.Hint(messages.Chinese) == "") {
				t.Errorf("%s has no cure", d.ID)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	text := "#!/bin/bash\n#SBATCH -J a -d afterok:7 --mem=1G\n./a\n"
	result, _ := Import("x", []byte(text), Options{Name: "b", Jobs: map[string]string{"7": "prep"}})
	if result == nil || !strings.Contains(string(result.File), `after "prep" {}`) || !strings.Contains(string(result.File), `job "b" {`) {
		t.Errorf("%+v", result)
	}
	if !Known("sbatch") || Known("lsf") || Looks("x", []byte(text)) != FormatSlurm || Looks("x", []byte("job \"a\" {}\n")) != "" {
		t.Error("formats are not told apart")
	}
}

// FuzzImport: no file makes the importer panic; there is a valid job file, or a
// diagnostic with words inside of the file.
func FuzzImport(f *testing.F) {
	for _, text := range corpus(f) {
		for i := range Formats() {
			f.Add(text, i)
		}
	}
	for _, c := range []string{"#SBATCH --array=0-99999999999", "#SBATCH\nsrun", "#SBATCH -w gpu[1-\na", "#SBATCH --time=9999999-9\nsrun -w ''\n$(srun)"} {
		f.Add([]byte(c), 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, format int) {
		formats := Formats()
		result, diagnostics := Import("fuzz", text, Options{Format: Format(formats[(format%len(formats)+len(formats))%len(formats)])})
		if (result == nil) == (len(diagnostics) == 0) {
			t.Fatalf("result %v and %d diagnostics", result != nil, len(diagnostics))
		}
		for _, d := range diagnostics {
			if !messages.Has(messages.English, d.ID) || d.Range.Start.Line > 1+bytes.Count(text, []byte("\n")) {
				t.Errorf("%s at line %d", d.ID, d.Range.Start.Line)
			}
		}
		show(t, diagnostics, messages.Chinese)
		if result == nil {
			return
		}
		if _, _, problems := jobspec.Parse("job.hcl", result.File, jobspec.Options{}); problems.HasErrors() {
			t.Errorf("no job file: %s", show(t, problems, messages.English))
		}
	})
}

// TestTexts: what is put into a job file comes out of it as it was.
func TestTexts(t *testing.T) {
	for _, text := range []string{
		"a", "$${x} $$${x} $x ${x} %{y} %%{y} %%%{y} $", `it's "quoted" \ \n`, "tab\there", "SCRIPT\nSCRIPT_", "$$", "a$${", "\n\n  indented\n\tand\n",
		"${", "$$${", "%", "%%{", "\\${x}", "\\", "é 中文 🎉", "trail $",
	} {
		file := "job \"a\" {\n  description = " + literal(text) + "\n  task {\n    command = " + heredoc(shellCommand("bash", []string{"-c"}, text)) + "\n  }\n}\n"
		job, _, diagnostics := jobspec.Parse("job.hcl", []byte(file), jobspec.Options{})
		if job == nil {
			t.Errorf("%q: %s", text, show(t, diagnostics, messages.English))
			continue
		}
		if job.Description != text {
			t.Errorf("%q came out as %q", text, job.Description)
		}
		if want := shellCommand("bash", []string{"-c"}, text) + "\n"; job.Task.Command != want {
			t.Errorf("%q came out as %q", want, job.Task.Command)
		}
	}
}
