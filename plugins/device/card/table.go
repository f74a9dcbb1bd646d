package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Limits of a table that an administrator writes.
const (
	tableBytesMax = 256 << 10
	rulesMax      = 1024
	codeMax       = 64
)

// Codes of what the plugin itself finds. Others are the vendor's.
const (
	CodeECC         = "ecc-uncorrected"
	CodeLinkDown    = "link-down"
	CodePCIeNarrow  = "pcie-narrow"
	codeUnreadable  = "unreadable"
	codeLeftover    = "leftover"
	codeLeftoverMem = "leftover-memory"
)

// Table says what is done about what.
type Table struct {
	Unknown device.Action // about a finding that is in no line
	Rules   map[string]Rule
}

// Rule is one line of the table.
type Rule struct {
	Action device.Action
	After  time.Duration // it must hold that long
	Sticky bool          // measuring well again is not enough
}

// tableFile is the table's form in JSON.
type tableFile struct {
	Unknown *string   `json:"unknown"`
	Faults  []ruleRow `json:"faults"`
}

type ruleRow struct {
	Code   string  `json:"code"`
	Action *string `json:"action"`
	After  string  `json:"after"`
	Sticky *bool   `json:"sticky"`
}

// ReadTable returns the vendor's table with an administrator's lines put over
// it, line by line.
func ReadTable(builtIn, override []byte) (*Table, error) {
	t := &Table{Rules: make(map[string]Rule)}
	for _, text := range [][]byte{builtIn, override} {
		if len(text) == 0 {
			continue
		}
		if err := t.merge(text); err != nil {
			return nil, fmt.Errorf("read faults: %w", err)
		}
	}
	return t, nil
}

func (t *Table) merge(text []byte) error {
	if len(text) > tableBytesMax {
		return fmt.Errorf("%d bytes, at most %d are allowed", len(text), tableBytesMax)
	}
	var file tableFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return err
	}
	if len(file.Faults) > rulesMax {
		return fmt.Errorf("more than %d lines", rulesMax)
	}
	if file.Unknown != nil {
		action, err := runtime.ParseAction(*file.Unknown)
		if err != nil {
			return fmt.Errorf("unknown: %w", err)
		}
		t.Unknown = action
	}
	for _, row := range file.Faults {
		if row.Code == "" || len(row.Code) > codeMax {
			return fmt.Errorf("%.80q is no code of 1 to %d bytes", row.Code, codeMax)
		}
		if err := t.put(row); err != nil {
			return fmt.Errorf("fault %s: %w", row.Code, err)
		}
	}
	return nil
}

// put changes what a row says of its fault.
func (t *Table) put(row ruleRow) error {
	rule, known := t.Rules[row.Code]
	if !known {
		rule.Action = t.Unknown
	}
	if row.Action != nil {
		action, err := runtime.ParseAction(*row.Action)
		if err != nil {
			return err
		}
		rule.Action = action
	}
	if row.After != "" {
		after, err := time.ParseDuration(row.After)
		if err != nil || after < 0 {
			return fmt.Errorf("after %.40q is no length of time", row.After)
		}
		rule.After = after
	}
	if row.Sticky != nil {
		rule.Sticky = *row.Sticky
	}
	t.Rules[row.Code] = rule
	return nil
}

// rule returns what is done about a code.
func (t *Table) rule(code string) Rule {
	if rule, known := t.Rules[code]; known {
		return rule
	}
	return Rule{Action: t.Unknown}
}
