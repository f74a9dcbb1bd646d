package structs

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a span of time written as text such as "48h" or "6h30m" in
// job files and JSON. On the Raft and RPC wire it is nanoseconds.
type Duration time.Duration

// Std returns the standard form.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String renders the span as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the span as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads text such as "90s", or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		span, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("parse duration %q: %w", text, err)
		}
		*d = Duration(span)
		return nil
	}
	var nanoseconds int64
	if err := json.Unmarshal(data, &nanoseconds); err != nil {
		return fmt.Errorf("parse duration %s: want text such as \"90s\"", data)
	}
	*d = Duration(nanoseconds)
	return nil
}
