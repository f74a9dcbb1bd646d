package nvidia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Config is the plugin's configuration, as JSON. Every field may be left out.
type Config struct {
	// Library is the path, or the name, of the vendor's library.
	Library string `json:"library,omitempty"`
	// Poll is how often cards are looked at, "5s" by default; events come at
	// once besides.
	Poll string `json:"poll,omitempty"`
	// Ignore lists cards that are not offered, by UUID, PCI address or index.
	Ignore []string `json:"ignore,omitempty"`
	// Share divides cards.
	Share []Share `json:"share,omitempty"`
	// Actions is put over the built-in table, ActionsFile the same in a file.
	Actions     json.RawMessage `json:"actions,omitempty"`
	ActionsFile string          `json:"actions_file,omitempty"`
	// Reset says how a card is reset: "auto" with nvidia-smi, "never".
	Reset string `json:"reset,omitempty"`
	// SMI is the path of nvidia-smi; empty: looked for at the usual places.
	SMI string `json:"nvidia_smi,omitempty"`
	// MPSControl is the path of nvidia-cuda-mps-control; empty: looked for at
	// the usual places.
	MPSControl string `json:"mps_control,omitempty"`
	// LeftoverMemory is how many bytes may be in use on a card that nobody
	// uses, besides what the driver reserves.
	LeftoverMemory int64 `json:"leftover_memory,omitempty"`
	// Kernel is where the kernel's messages are read, "/dev/kmsg" by default;
	// "none": they are not.
	Kernel string `json:"kernel_messages,omitempty"`
	// Root stands in for "/" where sysfs, /proc and /dev are looked at.
	Root string `json:"root,omitempty"`
}

// Share divides cards into parts that several tasks may have at a time.
type Share struct {
	Cards []string `json:"cards,omitempty"` // by UUID, PCI address or index; empty: all
	How   string   `json:"how"`             // device.SharingMPS or device.SharingTimeSlice
	Parts int      `json:"parts"`           // of each card
	// Daemon says who runs the MPS daemon: "auto", the plugin, which starts it
	// when it is not there and ends it when the configuration has no use for
	// it any more; "own", the administrator.
	Daemon string `json:"daemon,omitempty"`
	// PipeDir is where the MPS daemon has its pipes; "/run/nvidia-mps" by
	// default, "/tmp/nvidia-mps" for one that the administrator runs. Shares
	// with one directory have one daemon.
	PipeDir string `json:"pipe_dir,omitempty"`
}

// Limits and defaults of the configuration.
const (
	configBytesMax        = 1 << 20
	pollDefault           = 5 * time.Second
	pollMin               = 100 * time.Millisecond
	partsMax              = 64
	leftoverMemoryDefault = 1 << 30
	libraryDefault        = "libnvidia-ml.so.1"
	kernelDefault         = "/dev/kmsg"
	pipeDirDefault        = "/run/nvidia-mps"
	pipeDirOwn            = "/tmp/nvidia-mps"
	daemonAuto            = "auto"
	daemonOwn             = "own"
	resetAuto             = "auto"
	resetNever            = "never"
	kernelNone            = "none"
)

// Settings is a checked configuration.
type Settings struct {
	Config
	poll    time.Duration
	actions *Actions
}

// ParseConfig reads and checks a configuration. The error is a *structs.Error.
func ParseConfig(text []byte) (*Settings, error) {
	s := &Settings{poll: pollDefault}
	bad := func(problem string, args ...any) (*Settings, error) {
		return nil, structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", "nvidia", "problem", fmt.Sprintf(problem, args...))
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
	s.fill()
	if s.Poll != "" {
		poll, err := time.ParseDuration(s.Poll)
		if err != nil || poll < pollMin {
			return bad("poll %.40q is no length of time of %s or more", s.Poll, pollMin)
		}
		s.poll = poll
	}
	if s.Reset != resetAuto && s.Reset != resetNever {
		return bad("reset %.40q is neither %q nor %q", s.Reset, resetAuto, resetNever)
	}
	if s.LeftoverMemory < 0 {
		return bad("leftover_memory is negative")
	}
	for i := range s.Share {
		share := &s.Share[i]
		if share.How != device.SharingMPS && share.How != device.SharingTimeSlice {
			return bad("share %d: how is %.40q, want %q or %q", i, share.How, device.SharingMPS, device.SharingTimeSlice)
		}
		if share.Parts < 2 || share.Parts > partsMax {
			return bad("share %d: %d parts, want 2 to %d", i, share.Parts, partsMax)
		}
		share.fill()
		if share.Daemon != daemonAuto && share.Daemon != daemonOwn {
			return bad("share %d: daemon is %.40q, want %q or %q", i, share.Daemon, daemonAuto, daemonOwn)
		}
		if !filepath.IsAbs(share.PipeDir) || filepath.Clean(share.PipeDir) != share.PipeDir {
			return bad("share %d: pipe_dir %.80q is not a clean absolute path", i, share.PipeDir)
		}
	}
	override := []byte(s.Actions)
	if s.ActionsFile != "" {
		if len(override) > 0 {
			return bad("actions and actions_file exclude each other")
		}
		var err error
		if override, err = readFile(s.ActionsFile, actionsBytesMax); err != nil {
			return bad("actions_file: %v", err)
		}
	}
	actions, err := ReadActions(override)
	if err != nil {
		return bad("%v", err)
	}
	s.actions = actions
	return s, nil
}

// fill puts in what was left out.
func (s *Settings) fill() {
	if s.Library == "" {
		s.Library = libraryDefault
	}
	if s.Reset == "" {
		s.Reset = resetAuto
	}
	if s.LeftoverMemory == 0 {
		s.LeftoverMemory = leftoverMemoryDefault
	}
	if s.Kernel == "" {
		s.Kernel = kernelDefault
	}
	if s.Root == "" {
		s.Root = "/"
	}
}

// fill puts in what was left out.
func (s *Share) fill() {
	if s.Daemon == "" {
		s.Daemon = daemonAuto
	}
	if s.PipeDir == "" && s.Daemon == daemonOwn {
		s.PipeDir = pipeDirOwn
	}
	if s.PipeDir == "" {
		s.PipeDir = pipeDirDefault
	}
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

// names reports whether a list of UUIDs, PCI addresses and indexes has the card.
func names(list []string, card *Card) bool {
	for _, each := range list {
		if each == card.UUID || each == card.Bus || each == strconv.Itoa(card.Index) {
			return true
		}
	}
	return false
}

// shareOf gives how a card is divided; nil: it is not.
func (s *Settings) shareOf(card *Card) *Share {
	for i := range s.Share {
		if len(s.Share[i].Cards) == 0 || names(s.Share[i].Cards, card) {
			return &s.Share[i]
		}
	}
	return nil
}
