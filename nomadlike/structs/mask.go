package structs

import "bytes"

// MaskMin is the least length of what is masked in logs, in bytes: shorter texts would
// hide what has nothing to do with them.
const MaskMin = 6

// Mask is a text that logs show as the name of the secret that it comes from.
type Mask struct {
	Name    string
	Version uint64 // of the secret
	Text    SecretBytes
}

// Maskable lists what of a secret's value is masked in logs: the whole, and each of
// its lines, without white space around them, where they are long enough.
func Maskable(value []byte) [][]byte {
	var parts [][]byte
	add := func(part []byte) {
		if part = bytes.TrimSpace(part); len(part) >= MaskMin {
			parts = append(parts, part)
		}
	}
	lines := bytes.Split(value, []byte("\n"))
	if len(lines) > 1 {
		for _, line := range lines {
			add(line)
		}
		return parts // logs are masked line by line
	}
	add(value)
	return parts
}

// Unmasked reports whether a value, or one of its lines, is too short to be masked.
func Unmasked(value []byte) bool {
	for line := range bytes.SplitSeq(value, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 && len(line) < MaskMin {
			return true
		}
	}
	return false
}
