package forecast

import "nomadlike/nomadlike/structs"

// chances draws every member an even chance for each future, by member and
// future. Those of one member are spread over the whole range: with n futures
// one lies in each n-th of it, in an order of its own. So thirty futures tell a
// quantile of one run time as well as some hundred would by plain chance.
// They depend on the seed and on who the member is, not on who else is there, so
// that two looks at slightly different boards draw alike.
func chances(seed uint64, members []member, futures int) []float64 {
	all := make([]float64, len(members)*futures)
	for m := range members {
		own := all[m*futures : (m+1)*futures]
		state := mix(seed, members[m].identity())
		for i := range own {
			state = mix(state, uint64(i))
			own[i] = (float64(i) + unit(state)) / float64(futures)
		}
		for i := futures - 1; i > 0; i-- {
			state = mix(state, uint64(i))
			other := int(state % uint64(i+1))
			own[i], own[other] = own[other], own[i]
		}
	}
	return all
}

// mix stirs two numbers into one that depends on every bit of both.
func mix(a, b uint64) uint64 {
	x := a + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit turns a number into an even chance below one.
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// identity is a number that is a subjob's own.
func (m *member) identity() uint64 { return identityOf(m.subjob) }

func identityOf(subjob *structs.Subjob) uint64 {
	const (
		fnvOffset = 14695981039346656037
		fnvPrime  = 1099511628211
	)
	h := uint64(fnvOffset)
	for i := range len(subjob.JobID) {
		h = (h ^ uint64(subjob.JobID[i])) * fnvPrime
	}
	return mix(h, uint64(subjob.Index))
}
