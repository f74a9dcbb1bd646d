package ascend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
)

// Config is the plugin's configuration, as JSON. Every field may be left out.
type Config struct {
	// Library is the path, or the name, of the vendor's library; empty: it is
	// looked for at the usual places.
	Library string `json:"library,omitempty"`
	// SMI is the path of npu-smi; empty: looked for at the usual places.
	SMI string `json:"npu_smi,omitempty"`
	// Poll is how often everything is read, "5s" by default, Glance how often
	// health alone is, "250ms".
	Poll   string `json:"poll,omitempty"`
	Glance string `json:"glance,omitempty"`
	// Ignore lists chips that are not offered, by id, PCI address or physical
	// number.
	Ignore []string `json:"ignore,omitempty"`
	// Codes is put over the built-in table, CodesFile the same in a file. The
	// vendor's own list of fault codes has the same form.
	Codes     json.RawMessage `json:"codes,omitempty"`
	CodesFile string          `json:"codes_file,omitempty"`
	// Reset lets a chip be reset with npu-smi: "auto", or "never", which is
	// the default, since on many boards a reset hits the chips beside it.
	Reset string `json:"reset,omitempty"`
	// LeftoverMemory is how many bytes may be in use on a chip that nobody
	// uses. Chips keep some gigabytes for themselves.
	LeftoverMemory int64 `json:"leftover_memory,omitempty"`
	// Root stands in for "/" where sysfs, /dev and /etc are looked at.
	Root string `json:"root,omitempty"`
}

// Limits and defaults of the configuration.
const (
	configBytesMax        = 1 << 20
	pollDefault           = 5 * time.Second
	glanceDefault         = 250 * time.Millisecond
	pollMin               = 50 * time.Millisecond
	leftoverMemoryDefault = 6 << 30
	resetAuto             = "auto"
	resetNever            = "never"
)

// Settings is a checked configuration.
type Settings struct {
	Config
	poll, glance time.Duration
	codes        *Codes
}

// ParseConfig reads and checks a configuration. The error is a *structs.Error.
func ParseConfig(text []byte) (*Settings, error) {
	s := &Settings{poll: pollDefault, glance: glanceDefault}
	bad := func(problem string, args ...any) (*Settings, error) {
		return nil, structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", "ascend", "problem", fmt.Sprintf(problem, args...))
	}
	if len(text) > configBytesMax {
		return bad("it has %d bytes, at most %d are allowed", len(text), configBytesMax)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&s.Config); err != nil {
			return bad("%v", err)
		}
	}
	for _, each := range []struct {
		name, word string
		into       *time.Duration
	}{{"poll", s.Poll, &s.poll}, {"glance", s.Glance, &s.glance}} {
		if each.word == "" {
			continue
		}
		length, err := time.ParseDuration(each.word)
		if err != nil || length < pollMin {
			return bad("%s %.40q is no length of time of %s or more", each.name, each.word, pollMin)
		}
		*each.into = length
	}
	if s.Reset == "" {
		s.Reset = resetNever
	}
	if s.Reset != resetAuto && s.Reset != resetNever {
		return bad("reset %.40q is neither %q nor %q", s.Reset, resetAuto, resetNever)
	}
	if s.LeftoverMemory < 0 {
		return bad("leftover_memory is negative")
	}
	if s.LeftoverMemory == 0 {
		s.LeftoverMemory = leftoverMemoryDefault
	}
	if s.Root == "" {
		s.Root = "/"
	}
	override := []byte(s.Codes)
	if s.CodesFile != "" {
		if len(override) > 0 {
			return bad("codes and codes_file exclude each other")
		}
		var err error
		if override, err = readFile(s.CodesFile, codesBytesMax); err != nil {
			return bad("codes_file: %v", err)
		}
	}
	codes, err := ReadCodes(override)
	if err != nil {
		return bad("%v", err)
	}
	s.codes = codes
	return s, nil
}

// ignored reports whether a chip is not offered.
func (s *Settings) ignored(chip *Chip) bool {
	for _, each := range s.Ignore {
		if each == chip.ID || each == chip.Bus || each == strconv.Itoa(chip.Physical) {
			return true
		}
	}
	return false
}

func readFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}
