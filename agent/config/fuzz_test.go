package config

import (
	"os"
	"path/filepath"
	"testing"

	"nomadlike/internal/messages"
)

// A configuration is read or refused with diagnostics, never with a panic.
func FuzzConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/config/*/*.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		l := newLoader(messages.English)
		layer := l.layer("fuzz.hcl", source)
		if l.diagnostics.HasErrors() {
			return
		}
		config, problems := resolve(layer, paperMachine())
		if len(problems) == 0 && config.Server.Enabled && (config.Server.BootstrapExpect < 1 || config.Bind == "") {
			t.Fatalf("accepted %+v", config)
		}
	})
}
