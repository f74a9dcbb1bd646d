package placement

import "math/bits"

// bitset is a set of small numbers: devices of a node, or positions on a floor.
type bitset []uint64

// onesOf counts the bits of a word.
func onesOf(word uint64) int { return bits.OnesCount64(word) }

func wordsFor(n int) int { return (n + 63) / 64 }

func newBitset(n int) bitset { return make(bitset, wordsFor(n)) }

func (s bitset) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

func (s bitset) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s bitset) drop(i int) { s[i>>6] &^= 1 << (i & 63) }

func (s bitset) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// countIn counts the members of both sets, which are of one size.
func (s bitset) countIn(other bitset) int {
	n := 0
	for i, word := range s {
		n += bits.OnesCount64(word & other[i])
	}
	return n
}

// countSpan counts the members from lo to below hi.
func (s bitset) countSpan(lo, hi int) int {
	n := 0
	for w := lo >> 6; w<<6 < hi; w++ {
		n += bits.OnesCount64(s[w] & spanMask(w, lo, hi))
	}
	return n
}

// spanMask has the bits of word w that stand for numbers from lo to below hi.
func spanMask(w, lo, hi int) uint64 {
	mask := ^uint64(0)
	if first := w << 6; lo > first {
		mask <<= uint(min(lo-first, 64))
	}
	if end := (w + 1) << 6; hi < end {
		mask &= ^uint64(0) >> uint(min(end-hi, 64))
	}
	return mask
}

// members lists them, lowest first.
func (s bitset) members() (list []int32) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return list
}
