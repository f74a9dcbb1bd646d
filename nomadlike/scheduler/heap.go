package scheduler

// heapify arranges a list as a heap: what less puts first comes to the front.
func heapify[T any](heap []T, less func(a, b T) bool) {
	for at := len(heap)/2 - 1; at >= 0; at-- {
		sink(heap, at, less)
	}
}

// sink brings the heap in order after its element at became later.
func sink[T any](heap []T, at int, less func(a, b T) bool) {
	for {
		child := 2*at + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[at]) {
			return
		}
		heap[at], heap[child] = heap[child], heap[at]
		at = child
	}
}

// earliest moves the count elements that less puts first to the front of a list
// that may be very much longer, in order, and returns them.
func earliest[T any](list []T, count int, less func(a, b T) bool) []T {
	count = min(count, len(list))
	if count <= 0 {
		return nil
	}
	// The first so far, as a heap with the last of them at its front.
	first, later := list[:count], func(a, b T) bool { return less(b, a) }
	heapify(first, later)
	for i := count; i < len(list); i++ {
		if less(list[i], first[0]) {
			list[i], first[0] = first[0], list[i]
			sink(first, 0, later)
		}
	}
	for end := count - 1; end > 0; end-- {
		first[0], first[end] = first[end], first[0]
		sink(first[:end], 0, later)
	}
	return first
}
