package structs

import (
	"slices"
	"strconv"
	"strings"
)

// Array is the numbers of a batch as Slurm writes them.
type Array struct {
	IDs      []int // ascending, each once
	Parallel int   // behind %, 0 without
}

// ArrayIDMax bounds the numbers of an array.
const ArrayIDMax = 1_000_000_000

// ParseArray reads numbers and ranges with commas between, a step behind a colon, and at
// the end, behind %, how many may run at a time: 0-99:2%10, 0,6,16-32. See sbatch(1),
// --array. The error names the part that cannot be read.
func ParseArray(text string) (Array, error) {
	const textMax = 4 << 10
	var array Array
	bad := func(part, id string) (Array, error) {
		return Array{}, NewError(CodeInvalid, id, "part", printable(part), "max", ArrayIDMax, "count", BatchCountMax)
	}
	if len(text) > textMax {
		return bad(text, "job.array.long")
	}
	list, bound, bounded := strings.Cut(text, "%")
	if bounded {
		most, ok := arrayNumber(bound)
		if !ok || most < 1 || most > BatchCountMax {
			return bad("%"+bound, "job.array.bound")
		}
		array.Parallel = most
	}
	for part := range strings.SplitSeq(list, ",") {
		span, by, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(span, "-")
		low, ok := arrayNumber(first)
		high, step := low, 1
		if ok && ranged {
			high, ok = arrayNumber(last)
		}
		if ok && stepped {
			step, ok = arrayNumber(by)
			ok = ok && ranged && step > 0
		}
		switch {
		case !ok:
			return bad(part, "job.array.part")
		case high < low:
			return bad(part, "job.array.backwards")
		case (high-low)/step >= BatchCountMax-len(array.IDs):
			return bad(part, "job.array.many")
		}
		for id := low; id <= high; id += step {
			array.IDs = append(array.IDs, id)
		}
	}
	slices.Sort(array.IDs)
	array.IDs = slices.Compact(array.IDs) // Slurm takes a number that is named twice once
	return array, nil
}

// arrayNumber reads a number of an array: digits alone.
func arrayNumber(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n <= ArrayIDMax
}
