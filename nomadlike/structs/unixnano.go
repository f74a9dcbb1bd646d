package structs

import (
	"encoding/json"
	"fmt"
	"time"
)

// UnixNano is a point in time as nanoseconds since 1970 UTC; 0 means unset.
// It is a number so that replicated state is byte-equal on all servers; in
// JSON it is RFC 3339 text in UTC, for people and for browsers.
type UnixNano int64

// At converts from the standard form; the zero time is 0.
func At(t time.Time) UnixNano {
	if t.IsZero() {
		return 0
	}
	return UnixNano(t.UnixNano())
}

// Time converts to the standard form, in UTC; 0 is the zero time.
func (u UnixNano) Time() time.Time {
	if u == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(u)).UTC()
}

// Add returns the time d later.
func (u UnixNano) Add(d time.Duration) UnixNano { return u + UnixNano(d) }

// Sub returns the span from earlier to u.
func (u UnixNano) Sub(earlier UnixNano) time.Duration { return time.Duration(u - earlier) }

// MarshalJSON writes RFC 3339 text, or null when unset.
func (u UnixNano) MarshalJSON() ([]byte, error) {
	if u == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(u.Time().Format(time.RFC3339Nano))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *UnixNano) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("parse time %s: want RFC 3339 text", data)
	}
	if text == nil || *text == "" {
		*u = 0
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		return fmt.Errorf("parse time %q: %w", *text, err)
	}
	*u = At(t)
	return nil
}
