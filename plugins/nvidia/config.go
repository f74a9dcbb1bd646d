package nvidia

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Config is the plugin's configuration, as JSON. Every field may be left out.
type Config struct {
	// Library is the path, or the name, of the vendor's library.
	Library string `json:"library,omitempty"`
	// Config has what all vendors have. Events come at once besides Poll; cards
	// are ignored by UUID, PCI address or index; memory in use is counted
	// besides what the driver reserves; resets are "auto" by default.
	runtime.Config
	// Share divides cards.
	Share []Share `json:"share,omitempty"`
	// Actions is put over the built-in table, ActionsFile the same in a file.
	Actions     json.RawMessage `json:"actions,omitempty"`
	ActionsFile string          `json:"actions_file,omitempty"`
	// SMI is the path of nvidia-smi; empty: looked for at the usual places.
	SMI string `json:"nvidia_smi,omitempty"`
	// MPSControl is the path of nvidia-cuda-mps-control; empty: looked for at
	// the usual places.
	MPSControl string `json:"mps_control,omitempty"`
	// Kernel is where the kernel's messages are read, "/dev/kmsg" by default;
	// "none": they are not.
	Kernel string `json:"kernel_messages,omitempty"`
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
	pollMin               = 100 * time.Millisecond
	partsMax              = 64
	leftoverMemoryDefault = 1 << 30
	libraryDefault        = "libnvidia-ml.so.1"
	kernelDefault         = "/dev/kmsg"
	pipeDirDefault        = "/run/nvidia-mps"
	pipeDirOwn            = "/tmp/nvidia-mps"
	daemonAuto            = "auto"
	daemonOwn             = "own"
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
	s := &Settings{}
	if err := runtime.ReadConfig(Name, text, &s.Config, s.check); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Settings) check() (err error) {
	s.Library, s.Kernel = cmp.Or(s.Library, libraryDefault), cmp.Or(s.Kernel, kernelDefault)
	if s.poll, err = s.Check(runtime.Defaults{PollMin: pollMin, Reset: runtime.ResetAuto, LeftoverMemory: leftoverMemoryDefault}); err != nil {
		return err
	}
	for i := range s.Share {
		if err := s.Share[i].check(); err != nil {
			return fmt.Errorf("share %d: %w", i, err)
		}
	}
	override, err := runtime.Override("actions", s.Actions, s.ActionsFile, actionsBytesMax)
	if err != nil {
		return err
	}
	s.actions, err = ReadActions(override)
	return err
}

func (s *Share) check() error {
	if s.How != device.SharingMPS && s.How != device.SharingTimeSlice {
		return fmt.Errorf("how is %.40q, want %q or %q", s.How, device.SharingMPS, device.SharingTimeSlice)
	}
	if s.Parts < 2 || s.Parts > partsMax {
		return fmt.Errorf("%d parts, want 2 to %d", s.Parts, partsMax)
	}
	s.fill()
	if s.Daemon != daemonAuto && s.Daemon != daemonOwn {
		return fmt.Errorf("daemon is %.40q, want %q or %q", s.Daemon, daemonAuto, daemonOwn)
	}
	if !filepath.IsAbs(s.PipeDir) || filepath.Clean(s.PipeDir) != s.PipeDir {
		return fmt.Errorf("pipe_dir %.80q is not a clean absolute path", s.PipeDir)
	}
	return nil
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

// names reports whether a list of UUIDs, PCI addresses and indexes has the card.
func names(list []string, card *Card) bool {
	return runtime.Named(list, card.UUID, card.Bus, card.Index)
}

// shareOf returns how a card is divided; nil: it is not.
func (s *Settings) shareOf(card *Card) *Share {
	for i := range s.Share {
		if len(s.Share[i].Cards) == 0 || names(s.Share[i].Cards, card) {
			return &s.Share[i]
		}
	}
	return nil
}
