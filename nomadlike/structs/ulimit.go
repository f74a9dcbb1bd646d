package structs

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// UlimitUnlimited is the word for no limit, and UlimitInfinite its number.
const (
	UlimitUnlimited = "unlimited"
	UlimitInfinite  = -1
)

// ErrUlimit is returned for text that is no limit.
var ErrUlimit = errors.New("not a limit")

// UlimitNames lists the limits of processes that Linux knows, without
// "RLIMIT_" and in lower case, sorted.
func UlimitNames() []string {
	return []string{
		"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc",
		"rss", "rtprio", "rttime", "sigpending", "stack",
	}
}

// UlimitInBytes reports whether a limit is an amount of memory or of disk.
func UlimitInBytes(name string) bool {
	return slices.Contains([]string{"core", "data", "fsize", "memlock", "msgqueue", "rss", "stack"}, name)
}

// ParseUlimit reads a limit of processes: one value for the soft and the hard
// limit, or "soft:hard". A value is a number, "unlimited", or, of limits in
// bytes, an amount such as "64MiB". The soft limit is not above the hard one.
// UlimitInfinite stands for none. Pure.
func ParseUlimit(name, text string) (soft, hard int64, err error) {
	if !slices.Contains(UlimitNames(), name) {
		return 0, 0, ErrUlimit
	}
	first, second, two := strings.Cut(text, ":")
	if soft, err = ulimitValue(name, first); err != nil {
		return 0, 0, err
	}
	hard = soft
	if two {
		if hard, err = ulimitValue(name, second); err != nil {
			return 0, 0, err
		}
	}
	if UlimitAbove(soft, hard) {
		return 0, 0, ErrUlimit
	}
	return soft, hard, nil
}

// UlimitAbove reports whether one limit allows more than another.
func UlimitAbove(a, b int64) bool { return b >= 0 && (a < 0 || a > b) }

func ulimitValue(name, text string) (int64, error) {
	if text == UlimitUnlimited {
		return UlimitInfinite, nil
	}
	if value, err := strconv.ParseInt(text, 10, 64); err == nil {
		if value < 0 {
			return 0, ErrUlimit
		}
		return value, nil
	}
	if !UlimitInBytes(name) {
		return 0, ErrUlimit
	}
	value, err := ParseSize(text)
	if err != nil || value < 0 {
		return 0, ErrUlimit
	}
	return value, nil
}

// FormatUlimit writes one value of a limit as ParseUlimit reads it.
func FormatUlimit(name string, value int64) string {
	switch {
	case value < 0:
		return UlimitUnlimited
	case value > 0 && UlimitInBytes(name):
		return FormatSize(value)
	}
	return strconv.FormatInt(value, 10)
}
