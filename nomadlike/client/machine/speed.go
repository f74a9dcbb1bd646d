package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// linkSpeedUnknown stands for the speed of links that tell none, as those of virtual
// machines do not: a gigabit per second, in bytes.
const linkSpeedUnknown = 1_000_000_000 / 8

// LinkSpeed is how many bytes per second a network interface can do, as sysfs below root
// tells it.
func LinkSpeed(root, link string) int64 {
	if link != "" && filepath.Base(link) == link {
		text, err := os.ReadFile(filepath.Join(root, "/sys/class/net", link, "speed"))
		megabits, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && parseErr == nil && megabits > 0 && megabits < 1<<32-1 { // what is not known is -1, of 32 bits
			return megabits * 1_000_000 / 8
		}
	}
	return linkSpeedUnknown
}
