package structs

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Units of memory, in bytes.
const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
	GiB int64 = 1 << 30
	TiB int64 = 1 << 40
	PiB int64 = 1 << 50
)

// What is wrong with a text that should be a size or a span of time.
var (
	ErrUnitMissing   = errors.New("a unit is missing")                         // is returned for "512"
	ErrUnitUnknown   = errors.New("the unit is not known")                     // is returned for "5 parsecs"
	ErrUnitDecimal   = errors.New("decimal units are ambiguous")               // is returned for "2GB" and "2G": 10^9 to some, 2^30 to others
	ErrNumberInvalid = errors.New("the number is not readable")                // is returned for "-2GiB", "1.2.3s" and ""
	ErrOutOfRange    = errors.New("the value is too large or too small")       // is returned for what does not fit 63 bits, or is no whole number of bytes
	ErrTextTooLong   = errors.New("the text is too long to be a size or span") // is returned above unitTextMax bytes
)

const unitTextMax = 64 // bytes of a text that names a size or a span

// ParseSize reads an amount of memory such as "512MiB", "1.5GiB" or "0B" as
// bytes. Units are B, KiB, MiB, GiB, TiB and PiB in any letter case. Decimal
// units (MB, G) are refused, because people mean two different things by
// them, and so is a bare number.
func ParseSize(text string) (int64, error) {
	number, unit, err := splitUnit(text)
	if err != nil {
		return 0, err
	}
	var factor int64
	switch strings.ToLower(unit) {
	case "b":
		factor = 1
	case "kib":
		factor = KiB
	case "mib":
		factor = MiB
	case "gib":
		factor = GiB
	case "tib":
		factor = TiB
	case "pib":
		factor = PiB
	case "":
		return 0, ErrUnitMissing
	case "k", "m", "g", "t", "p", "kb", "mb", "gb", "tb", "pb":
		return 0, ErrUnitDecimal
	default:
		return 0, ErrUnitUnknown
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, ErrNumberInvalid
	}
	value.Mul(value, new(big.Rat).SetInt64(factor))
	if !value.IsInt() || !value.Num().IsInt64() {
		return 0, ErrOutOfRange
	}
	return value.Num().Int64(), nil
}

// FormatSize writes an amount of memory with the largest unit that divides it,
// so that ParseSize reads it back exactly.
func FormatSize(bytes int64) string {
	type unit struct {
		bytes int64
		name  string
	}
	for _, u := range [...]unit{{PiB, "PiB"}, {TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// ParseDuration reads a span of time such as "90s", "6h30m", "1.5h" or "2d"
// (a day is 24 hours, a week, "w", seven of them). Units are w, d, h, m, s, ms,
// us and ns. Negative spans and bare numbers are refused.
func ParseDuration(text string) (Duration, error) {
	if len(text) > unitTextMax {
		return 0, ErrTextTooLong
	}
	rest := strings.TrimSpace(text)
	if rest == "" {
		return 0, ErrNumberInvalid
	}
	total := new(big.Rat)
	for rest != "" {
		end := numberEnd(rest)
		value, ok := new(big.Rat).SetString(rest[:end])
		if end == 0 || !ok {
			return 0, ErrNumberInvalid
		}
		rest = rest[end:]
		end = 0
		for end < len(rest) && !digitOrDot(rest[end]) {
			end++
		}
		factor, err := spanUnit(rest[:end])
		if err != nil {
			return 0, err
		}
		total.Add(total, value.Mul(value, new(big.Rat).SetInt64(int64(factor))))
		rest = rest[end:]
	}
	whole := new(big.Int).Quo(total.Num(), total.Denom())
	if !whole.IsInt64() {
		return 0, ErrOutOfRange
	}
	return Duration(whole.Int64()), nil
}

// FormatDuration writes a span without the parts that are zero: "48h" where
// Go writes "48h0m0s". ParseDuration reads it back exactly.
func FormatDuration(d Duration) string {
	text := d.String()
	if short, found := strings.CutSuffix(text, "m0s"); found {
		text = short + "m"
	}
	if short, found := strings.CutSuffix(text, "h0m"); found {
		text = short + "h"
	}
	return text
}

// spanUnit is the length of one of what unit names.
func spanUnit(unit string) (time.Duration, error) {
	switch unit {
	case "w":
		return 7 * 24 * time.Hour, nil
	case "d":
		return 24 * time.Hour, nil
	case "h":
		return time.Hour, nil
	case "m":
		return time.Minute, nil
	case "s":
		return time.Second, nil
	case "ms":
		return time.Millisecond, nil
	case "us", "µs":
		return time.Microsecond, nil
	case "ns":
		return time.Nanosecond, nil
	case "":
		return 0, ErrUnitMissing
	}
	return 0, ErrUnitUnknown
}

// splitUnit parts a text such as "1.5 GiB" into its number and its unit.
func splitUnit(text string) (number, unit string, err error) {
	if len(text) > unitTextMax {
		return "", "", ErrTextTooLong
	}
	text = strings.TrimSpace(text)
	end := numberEnd(text)
	if end == 0 {
		return "", "", ErrNumberInvalid
	}
	return text[:end], strings.TrimSpace(text[end:]), nil
}

func numberEnd(text string) int {
	end := 0
	for end < len(text) && digitOrDot(text[end]) {
		end++
	}
	return end
}

func digitOrDot(c byte) bool { return c >= '0' && c <= '9' || c == '.' }

// finite reports whether f is an ordinary number.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// FormatCount writes a whole number.
func FormatCount(n int64) string { return strconv.FormatInt(n, 10) }
