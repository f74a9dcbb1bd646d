package capacity

import "math/bits"

// Set is a set of small numbers: devices of a node by their place, or nodes by
// their position. Sets that are compared have one size.
type Set []uint64

// WordsFor is how many words a set of the numbers below n has.
func WordsFor(n int) int { return (n + 63) / 64 }

// NewSet returns an empty set of numbers below n.
func NewSet(n int) Set { return make(Set, WordsFor(n)) }

// Has reports whether i is a member.
func (s Set) Has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Add makes i a member.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Drop makes i no member.
func (s Set) Drop(i int) { s[i>>6] &^= 1 << (i & 63) }

// Count counts the members.
func (s Set) Count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// CountIn counts the members of both sets, which are of one size.
func (s Set) CountIn(other Set) int {
	n := 0
	for i, word := range s {
		n += bits.OnesCount64(word & other[i])
	}
	return n
}

// CountSpan counts the members from lo to below hi.
func (s Set) CountSpan(lo, hi int) int {
	n := 0
	for w := lo >> 6; w<<6 < hi; w++ {
		n += bits.OnesCount64(s[w] & SpanMask(w, lo, hi))
	}
	return n
}

// SpanMask has the bits of word w that stand for numbers from lo to below hi.
func SpanMask(w, lo, hi int) uint64 {
	mask := ^uint64(0)
	if first := w << 6; lo > first {
		mask <<= uint(min(lo-first, 64))
	}
	if end := (w + 1) << 6; hi < end {
		mask &= ^uint64(0) >> uint(min(end-hi, 64))
	}
	return mask
}

// Members lists them, lowest first.
func (s Set) Members() (list []int32) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return list
}
