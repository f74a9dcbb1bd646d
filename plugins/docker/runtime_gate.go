package docker

import (
	"strconv"
	"strings"
)

// runcSafe is the first runc release of each line without the known ways out
// of a container (CVE-2024-21626, CVE-2025-31133, -52565, -52881).
func runcSafe() map[string][3]int {
	return map[string][3]int{"1.1": {1, 1, 99}, "1.2": {1, 2, 8}, "1.3": {1, 3, 3}}
}

// runtimeConcern says in a few words why a version of runc is known to be
// unsafe, "" when it is not. Distributions repair old releases, so their
// builds are told by the package's version, not by the release's. Pure.
func runtimeConcern(version string) string {
	release, packaged, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	if base, rest, ok := strings.Cut(release, "-"); ok && strings.Contains(rest, "ubuntu") {
		release, packaged = base, rest
	}
	numbers, ok := parseRelease(release)
	switch {
	case !ok && version == "":
		return ""
	case !ok:
		return "unknown version " + version
	case strings.Contains(packaged, "deb") || strings.Contains(packaged, "ubuntu"):
		return distributionConcern(release, packaged)
	}
	line := strconv.Itoa(numbers[0]) + "." + strconv.Itoa(numbers[1])
	first, known := runcSafe()[line]
	newest := numbers[0] > 1 || numbers[0] == 1 && numbers[1] > 3
	if !newest && (!known || less(numbers, first)) {
		return "runc " + version + " has known ways out of a container"
	}
	return ""
}

// distributionConcern judges packages: only those older than the first with
// the repairs of 2024 are named.
func distributionConcern(release, packaged string) string {
	if release == "1.1.5" && strings.HasPrefix(packaged, "ds1-1") && !strings.Contains(packaged, "deb12u") {
		return "runc " + release + "+" + packaged + " lacks the distribution's repairs of 2024"
	}
	return ""
}

func parseRelease(text string) (numbers [3]int, ok bool) {
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != len(numbers) {
		return numbers, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return numbers, false
		}
		numbers[i] = n
	}
	return numbers, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
