package nvidia

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

//go:embed actions.json
var builtInActions []byte

// Limits of a table that an administrator writes.
const (
	actionsBytesMax = 256 << 10
	actionsMax      = 1024
	meaningMax      = 200
)

// Actions is the table of what is done about what: for the driver's numbered
// errors (XID), for its own verdict, and for the conditions that are polled.
type Actions struct {
	Unknown    device.Action
	XIDs       map[int]Rule
	Recoveries map[int]Rule
	Conditions map[string]Rule
}

// Rule is one line of the table.
type Rule struct {
	Action  device.Action
	Meaning string        // English, for numbers that the catalogue has no text for
	After   time.Duration // a condition must hold that long
	Repeat  *Repeat
}

// Repeat makes an event worse when it happens again and again.
type Repeat struct {
	Count  int
	Within time.Duration
	Action device.Action
}

// actionsFile is the table's form in JSON.
type actionsFile struct {
	Unknown   *string        `json:"unknown_xid"`
	XIDs      []numberRule   `json:"xid"`
	Recovery  []numberRule   `json:"recovery"`
	Condition []conditionRow `json:"condition"`
}

type numberRule struct {
	Code    int        `json:"code"`
	Action  *string    `json:"action"`
	Meaning string     `json:"meaning"`
	Repeat  *repeatRow `json:"repeat"`
}

type repeatRow struct {
	Count  int    `json:"count"`
	Within string `json:"within"`
	Action string `json:"action"`
}

type conditionRow struct {
	Name   string  `json:"name"`
	Action *string `json:"action"`
	After  string  `json:"after"`
}

// ReadActions returns the built-in table with an administrator's lines put over
// it, line by line.
func ReadActions(override []byte) (*Actions, error) {
	actions := &Actions{XIDs: map[int]Rule{}, Recoveries: map[int]Rule{}, Conditions: map[string]Rule{}}
	if err := actions.merge(builtInActions, true); err != nil {
		return nil, err
	}
	if len(override) == 0 {
		return actions, nil
	}
	if err := actions.merge(override, false); err != nil {
		return nil, err
	}
	return actions, nil
}

// merge puts a table over this one. Only the built-in one may name new
// conditions: nothing would look at others.
func (a *Actions) merge(text []byte, builtIn bool) error {
	if len(text) > actionsBytesMax {
		return fmt.Errorf("read actions: %d bytes, at most %d are allowed", len(text), actionsBytesMax)
	}
	var file actionsFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return fmt.Errorf("read actions: %w", err)
	}
	if len(file.XIDs)+len(file.Recovery)+len(file.Condition) > actionsMax {
		return fmt.Errorf("read actions: more than %d lines", actionsMax)
	}
	if file.Unknown != nil {
		action, err := runtime.ParseAction(*file.Unknown)
		if err != nil {
			return fmt.Errorf("read actions: unknown_xid: %w", err)
		}
		a.Unknown = action
	}
	if err := mergeNumbers(a.XIDs, file.XIDs, "xid"); err != nil {
		return err
	}
	if err := mergeNumbers(a.Recoveries, file.Recovery, "recovery"); err != nil {
		return err
	}
	for _, row := range file.Condition {
		rule, known := a.Conditions[row.Name]
		if !known && !builtIn {
			return fmt.Errorf("read actions: there is no condition %.40q", row.Name)
		}
		if row.Action != nil {
			action, err := runtime.ParseAction(*row.Action)
			if err != nil {
				return fmt.Errorf("read actions: condition %s: %w", row.Name, err)
			}
			rule.Action = action
		}
		if row.After != "" {
			after, err := time.ParseDuration(row.After)
			if err != nil || after < 0 {
				return fmt.Errorf("read actions: condition %s: after %.40q is no length of time", row.Name, row.After)
			}
			rule.After = after
		}
		a.Conditions[row.Name] = rule
	}
	return nil
}

func mergeNumbers(into map[int]Rule, rows []numberRule, what string) error {
	for _, row := range rows {
		rule := into[row.Code]
		if row.Code < 0 || row.Code > 1<<20 {
			return fmt.Errorf("read actions: %s %d is no code", what, row.Code)
		}
		if row.Action != nil {
			action, err := runtime.ParseAction(*row.Action)
			if err != nil {
				return fmt.Errorf("read actions: %s %d: %w", what, row.Code, err)
			}
			rule.Action, rule.Repeat = action, nil // a new action begins anew
		}
		if row.Meaning != "" {
			rule.Meaning = row.Meaning[:min(len(row.Meaning), meaningMax)]
		}
		if row.Repeat != nil {
			repeat, err := parseRepeat(*row.Repeat)
			if err != nil {
				return fmt.Errorf("read actions: %s %d: %w", what, row.Code, err)
			}
			rule.Repeat = repeat
		}
		into[row.Code] = rule
	}
	return nil
}

func parseRepeat(row repeatRow) (*Repeat, error) {
	within, err := time.ParseDuration(row.Within)
	if err != nil || within <= 0 || row.Count < 2 || row.Count > historyMax {
		return nil, fmt.Errorf("repeat wants a count of 2 to %d and a length of time within", historyMax)
	}
	action, err := runtime.ParseAction(row.Action)
	if err != nil {
		return nil, err
	}
	return &Repeat{Count: row.Count, Within: within, Action: action}, nil
}

// xid returns the rule for a numbered error.
func (a *Actions) xid(number int) Rule {
	if rule, known := a.XIDs[number]; known {
		return rule
	}
	return Rule{Action: a.Unknown, Meaning: "not in the table of actions"}
}
