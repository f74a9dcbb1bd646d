package structs

import "strings"

// PlainText reports whether a text holds nothing that could deceive a reader or a
// terminal, such as control and formatting characters, and at most lengthMax bytes.
func PlainText(text string, lengthMax int) bool {
	return len(text) <= lengthMax && !strings.ContainsFunc(text, func(c rune) bool {
		switch {
		case c < ' ', c == 0x7f, c == '\uFFFD', c >= 0x80 && c < 0xa0: // control, or invalid UTF-8
			return true
		case c >= 0x200b && c <= 0x200f, c >= 0x2028 && c <= 0x202e, c >= 0x2060 && c <= 0x206f, c == 0xfeff: // invisible, or changes direction
			return true
		}
		return false
	})
}
