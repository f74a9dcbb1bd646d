package structs

// nearestWordMax bounds the words that Nearest compares, in bytes: longer
// ones are no typing errors.
const nearestWordMax = 40

// Nearest returns the candidate that word was probably meant to be, for "did you
// mean", or "" when none is close: the smallest edit distance wins, at most a
// third of the word's length; among equals the earlier candidate. Pure.
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > nearestWordMax {
		return ""
	}
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, candidate := range candidates {
		if len(candidate) > nearestWordMax || candidate == word {
			continue
		}
		if d := editDistance(word, candidate); d < bestDistance && d < len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b, ASCII letter case aside.
func editDistance(a, b string) int {
	var rows [3][nearestWordMax + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2] // rows i-2, i-1 and i
	for k := range b {
		last[k+1] = k + 1
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for k := 1; k <= len(b); k++ {
			cost := 1
			if lowerASCII(a[i-1]) == lowerASCII(b[k-1]) {
				cost = 0
			}
			row[k] = min(row[k-1]+1, last[k]+1, last[k-1]+cost)
			swapped := i > 1 && k > 1 && lowerASCII(a[i-1]) == lowerASCII(b[k-2]) && lowerASCII(a[i-2]) == lowerASCII(b[k-1])
			if swapped {
				row[k] = min(row[k], before[k-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
