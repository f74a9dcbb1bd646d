package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/pcie"
)

// Limits and defaults of configurations.
const (
	configBytesMax = 1 << 20
	pollDefault    = 5 * time.Second
	// ResetAuto lets cards be reset, ResetNever does not.
	ResetAuto  = "auto"
	ResetNever = "never"
)

// Config is what the configurations of all vendors have, as JSON; a vendor
// embeds it in its own. Every field may be left out.
type Config struct {
	// Poll is how often everything is read, "5s" by default.
	Poll string `json:"poll,omitempty"`
	// Ignore lists cards that are not offered, by id, PCI address or number.
	Ignore []string `json:"ignore,omitempty"`
	// Reset lets cards be reset with the vendor's tool: "auto", or "never".
	Reset string `json:"reset,omitempty"`
	// LeftoverMemory is how many bytes may be in use on a card that nobody
	// uses.
	LeftoverMemory int64 `json:"leftover_memory,omitempty"`
	// Root stands in for "/" where sysfs, /proc, /dev and /etc are looked at.
	Root string `json:"root,omitempty"`
}

// Defaults are what a vendor's configuration has where it says nothing.
type Defaults struct {
	PollMin        time.Duration
	Reset          string
	LeftoverMemory int64
}

// ReadConfig reads the configuration of a plugin into a vendor's form and has
// it checked. The error is a *structs.Error.
func ReadConfig(plugin string, text []byte, into any, check func() error) error {
	err := decodeStrictly(text, into)
	if err == nil {
		err = check()
	}
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", plugin, "problem", err)
	}
	return nil
}

func decodeStrictly(text []byte, into any) error {
	if len(text) > configBytesMax {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), configBytesMax)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// Check checks what all vendors have, fills in what was left out, and returns
// how often everything is read.
func (c *Config) Check(d Defaults) (poll time.Duration, err error) {
	if poll, err = Interval("poll", c.Poll, pollDefault, d.PollMin); err != nil {
		return 0, err
	}
	if c.Reset == "" {
		c.Reset = d.Reset
	}
	if c.Reset != ResetAuto && c.Reset != ResetNever {
		return 0, fmt.Errorf("reset %.40q is neither %q nor %q", c.Reset, ResetAuto, ResetNever)
	}
	if c.LeftoverMemory < 0 {
		return 0, errors.New("leftover_memory is negative")
	}
	if c.LeftoverMemory == 0 {
		c.LeftoverMemory = d.LeftoverMemory
	}
	if c.Root == "" {
		c.Root = "/"
	}
	return poll, nil
}

// Interval reads a length of time of a configuration.
func Interval(name, text string, otherwise, least time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < least {
		return 0, fmt.Errorf("%s %.40q is no length of time of %s or more", name, text, least)
	}
	return length, nil
}

// Override returns what an administrator puts over a built-in table, in the
// configuration itself or in a file. name is that of the field.
func Override(name string, inline []byte, file string, most int64) ([]byte, error) {
	if file == "" {
		return inline, nil
	}
	if len(inline) > 0 {
		return nil, fmt.Errorf("%s and %s_file exclude each other", name, name)
	}
	text, err := ReadFile(file, most)
	if err != nil {
		return nil, fmt.Errorf("%s_file: %w", name, err)
	}
	return text, nil
}

// ParseAction reads an action of a table.
func ParseAction(word string) (device.Action, error) {
	if action := device.Action(word); action.Known() {
		return action, nil
	}
	return "", fmt.Errorf("%.40q is no action; want notice, task, cordon, reset, reboot, service, or nothing", word)
}

// Named reports whether a list of ids, PCI addresses and numbers names a card.
func Named(list []string, id, bus string, number int) bool {
	return slices.ContainsFunc(list, func(each string) bool { return each == id || each == bus || each == strconv.Itoa(number) })
}

// Exists reports whether one of some paths is there, below root.
func Exists(root string, paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	})
}

// Cards lists the PCI addresses of a vendor's cards, as a text for people; "":
// there are none. Vendor and classes are as pcie.Vendors takes them.
func Cards(root, vendor string, classes ...string) string {
	const most = 16
	buses := pcie.Vendors(root, vendor, classes...)
	return strings.Join(buses[:min(len(buses), most)], ", ")
}
