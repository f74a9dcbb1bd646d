package ascend

import (
	"encoding/json"
	"time"

	"nomadlike/plugins/device/runtime"
)

// Config is the plugin's configuration, as JSON. Every field may be left out.
type Config struct {
	// Library is the path, or the name, of the vendor's library; empty: it is
	// looked for at the usual places.
	Library string `json:"library,omitempty"`
	// SMI is the path of npu-smi; empty: looked for at the usual places.
	SMI string `json:"npu_smi,omitempty"`
	// Config has what all vendors have. Chips are ignored by id, PCI address or
	// physical number, and keep some gigabytes of memory for themselves. Resets
	// are "never" by default: on many boards one hits the chips beside it.
	runtime.Config
	// Glance is how often health alone is read, "250ms" by default.
	Glance string `json:"glance,omitempty"`
	// Codes is put over the built-in table, CodesFile the same in a file. The
	// vendor's own list of fault codes has the same form.
	Codes     json.RawMessage `json:"codes,omitempty"`
	CodesFile string          `json:"codes_file,omitempty"`
}

// Limits and defaults of the configuration.
const (
	glanceDefault         = 250 * time.Millisecond
	pollMin               = 50 * time.Millisecond
	leftoverMemoryDefault = 6 << 30
)

// Settings is a checked configuration.
type Settings struct {
	Config
	poll, glance time.Duration
	codes        *Codes
}

// ParseConfig reads and checks a configuration. The error is a *structs.Error.
func ParseConfig(text []byte) (*Settings, error) {
	s := &Settings{}
	if err := runtime.ReadConfig(Name, text, &s.Config, s.check); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Settings) check() (err error) {
	if s.poll, err = s.Check(runtime.Defaults{PollMin: pollMin, Reset: runtime.ResetNever, LeftoverMemory: leftoverMemoryDefault}); err != nil {
		return err
	}
	if s.glance, err = runtime.Interval("glance", s.Glance, glanceDefault, pollMin); err != nil {
		return err
	}
	override, err := runtime.Override("codes", s.Codes, s.CodesFile, codesBytesMax)
	if err != nil {
		return err
	}
	s.codes, err = ReadCodes(override)
	return err
}

// ignored reports whether a chip is not offered.
func (s *Settings) ignored(chip *Chip) bool {
	return runtime.Named(s.Ignore, chip.ID, chip.Bus, chip.Physical)
}
