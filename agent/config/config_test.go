package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

// paperMachine is a machine whose facts are the same on every developer's.
func paperMachine() surroundings {
	return surroundings{
		hostname: func() (string, error) { return "GPU-01.example.org", nil },
		address:  func(string) (string, error) { return "10.0.0.9", nil },
		readFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
		workDir:  func() (string, error) { return "/home/li", nil },
	}
}

func TestConfigDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/config/bad/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("find test files: %v", err)
	}
	for _, file := range files {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			t.Run(filepath.Base(file)+"/"+string(language), func(t *testing.T) {
				_, err := load([]string{file}, Settings{}, language, paperMachine())
				var failure *Error
				if !errors.As(err, &failure) {
					t.Fatalf("got %v", err)
				}
				var text bytes.Buffer
				if err := failure.Render(&text, 78, false); err != nil {
					t.Fatal(err)
				}
				golden.Assert(t, strings.TrimSuffix(file, ".hcl")+"."+string(language)+".txt", text.String())
			})
		}
	}
}

func TestConfigDirectoriesMergeAndFlagsWin(t *testing.T) {
	yes, level := true, "error"
	config, err := load([]string{"testdata/config/good"}, Settings{
		Client: &ClientBlock{Enabled: &yes},
		Log:    &LogBlock{Level: &level},
	}, messages.English, paperMachine())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/config/good/merged.json", string(text)+"\n")
}

func TestConfigOfDevelopmentMode(t *testing.T) {
	yes, dir, everywhere := true, "data", "0.0.0.0"
	config, err := load(nil, Settings{Dev: &yes, DataDir: &dir}, messages.English, paperMachine())
	if err != nil {
		t.Fatal(err)
	}
	got := []any{config.Server.Enabled, config.Client.Enabled, config.Bind, config.Advertise, config.DataDir, config.Name}
	want := []any{true, true, "127.0.0.1", "127.0.0.1", "/home/li/data", "gpu-01"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err = load(nil, Settings{Dev: &yes, Bind: &everywhere}, messages.English, paperMachine()); err == nil {
		t.Error("development mode bound to every address")
	}
}

func TestLegalNames(t *testing.T) {
	for host, want := range map[string]string{
		"GPU-01.example.org":    "gpu-01",
		"10.0.0.1":              "n10",
		"under_score":           "underscore",
		"名字":                    "node",
		"localhost":             "node",
		strings.Repeat("a", 60): strings.Repeat("a", 40),
		"x--":                   "x",
	} {
		if got := legalName(host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

// -check-config reports everything: files that cannot be read, what is not known,
// and values that are wrong.
func TestEveryProblemAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.hcl")
	if err := os.WriteFile(file, []byte("nonsense = 1\nbind = \"no address\"\nserver {\n  enabled = true\n  backup {\n    path = \"here\"\n    keep = 0\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load([]string{filepath.Join(t.TempDir(), "absent.hcl"), file}, Settings{}, messages.English)
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"absent.hcl", "nonsense", "no address", "server.backup.path", "server.backup.keep"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
}
