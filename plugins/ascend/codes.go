package ascend

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

//go:embed codes.json
var builtInCodes []byte

// Limits of a table that an administrator writes.
const (
	codesBytesMax = 1 << 20
	codesMax      = 8192
	ringsMax      = 64
)

// Codes is the table of what is done about what. Its file has the keys of the
// vendor's own list of fault codes, so that one may be used as it is.
type Codes struct {
	Levels     map[int]device.Action // of health, for what no code explains
	Network    device.Action
	Unreadable device.Action
	Gone       device.Action
	Faults     map[uint32]device.Action
	Rings      []Ring
}

// Ring says how many chips of a model are joined by HCCS, where the library
// does not say it itself.
type Ring struct {
	Model string `json:"model"` // a part of the chip's name
	Size  int    `json:"size"`
}

// codesFile is the table's form in JSON. Lists that are absent change nothing.
type codesFile struct {
	Levels          map[string]string `json:"levels"`
	Network         *string           `json:"network"`
	Unreadable      *string           `json:"unreadable"`
	Gone            *string           `json:"gone"`
	NotHandle       []string          `json:"NotHandleFaultCodes"`
	RestartRequest  []string          `json:"RestartRequestCodes"`
	RestartBusiness []string          `json:"RestartBusinessCodes"`
	FreeRestart     []string          `json:"FreeRestartNPUCodes"`
	Restart         []string          `json:"RestartNPUCodes"`
	PreSeparate     []string          `json:"PreSeparateNPUCodes"`
	SubHealth       []string          `json:"SubHealthFaultCodes"`
	Separate        []string          `json:"SeparateNPUCodes"`
	Rings           []Ring            `json:"rings"`
}

// lists pairs the vendor's levels with what they mean here, mildest first: a
// code that stands in two lists counts as the worse.
func (f *codesFile) lists() []struct {
	codes  []string
	action device.Action
} {
	return []struct {
		codes  []string
		action device.Action
	}{
		{f.NotHandle, device.ActNotice},
		{f.SubHealth, device.ActNotice},
		{f.RestartRequest, device.ActTask},
		{f.RestartBusiness, device.ActTask},
		{f.FreeRestart, device.ActCordon}, // reset when it is free: running work goes on
		{f.PreSeparate, device.ActCordon},
		{f.Restart, device.ActReset},
		{f.Separate, device.ActService},
	}
}

// ReadCodes returns the built-in table with an administrator's put over it.
func ReadCodes(override []byte) (*Codes, error) {
	codes := &Codes{Levels: make(map[int]device.Action), Faults: make(map[uint32]device.Action)}
	if err := codes.merge(builtInCodes); err != nil {
		return nil, err
	}
	if len(override) > 0 {
		if err := codes.merge(override); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

func (c *Codes) merge(text []byte) error {
	if len(text) > codesBytesMax {
		return fmt.Errorf("read fault codes: %d bytes, at most %d are allowed", len(text), codesBytesMax)
	}
	var file codesFile
	// The vendor's file has lists for networks of other kinds, too: unknown
	// names are no mistake.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&file); err != nil {
		return fmt.Errorf("read fault codes: %w", err)
	}
	for level, word := range file.Levels {
		number, err := strconv.Atoi(level)
		if err != nil || number < 1 || number > 3 {
			return fmt.Errorf("read fault codes: %.40q is no level of health", level)
		}
		action, err := runtime.ParseAction(word)
		if err != nil {
			return fmt.Errorf("read fault codes: level %s: %w", level, err)
		}
		c.Levels[number] = action
	}
	for _, each := range []struct {
		word *string
		into *device.Action
	}{{file.Network, &c.Network}, {file.Unreadable, &c.Unreadable}, {file.Gone, &c.Gone}} {
		if each.word == nil {
			continue
		}
		action, err := runtime.ParseAction(*each.word)
		if err != nil {
			return fmt.Errorf("read fault codes: %w", err)
		}
		*each.into = action
	}
	told := make(map[uint32]device.Action)
	for _, list := range file.lists() {
		for _, text := range list.codes {
			code, err := parseCode(text)
			if err != nil {
				return err
			}
			told[code] = told[code].Worse(list.action)
		}
	}
	if len(told) > codesMax || len(file.Rings) > ringsMax {
		return fmt.Errorf("read fault codes: more than %d codes or %d rings", codesMax, ringsMax)
	}
	for code, action := range told {
		c.Faults[code] = action
	}
	for _, ring := range file.Rings {
		if ring.Model == "" || ring.Size < 1 || ring.Size > 1024 {
			return fmt.Errorf("read fault codes: ring %.40q of %d chips", ring.Model, ring.Size)
		}
	}
	c.Rings = append(append([]Ring(nil), file.Rings...), c.Rings...) // the newer first
	return nil
}

// parseCode reads a fault code as the vendor writes it: eight hexadecimal
// digits, with or without 0x.
func parseCode(text string) (uint32, error) {
	digits := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "0x")
	code, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("read fault codes: %.40q is no code", text)
	}
	return uint32(code), nil
}

// ring returns how many chips of a model are joined; 0: not known.
func (c *Codes) ring(name string) int {
	for _, ring := range c.Rings {
		if strings.Contains(strings.ToLower(name), strings.ToLower(ring.Model)) {
			return ring.Size
		}
	}
	return 0
}
