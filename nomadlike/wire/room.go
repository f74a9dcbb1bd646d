package wire

// Bytes of stack that decoding takes, and up to which size a message is small:
// a heartbeat, its answer, an acknowledgement.
const (
	roomSmall = 3 << 10
	roomLarge = 8 << 10
	small     = 256
)

// makeRoom lets the calling goroutine's stack grow once, while it holds little,
// to what decoding so many bytes takes. Decoding goes deep; a stack that grows
// on the way is copied at each doubling, with all that lies on it, for ten
// times the cost of decoding a heartbeat. A server has ten thousand goroutines
// that decode now and then, whose stacks every garbage collection shrinks.
func makeRoom(size int) {
	if size <= small {
		growSmall(size)
	} else {
		growLarge(size)
	}
}

// growSmall has a frame of roomSmall bytes.
//
//go:noinline
func growSmall(at int) byte {
	var frame [roomSmall]byte
	return frame[at%roomSmall]
}

// growLarge has a frame of roomLarge bytes.
//
//go:noinline
func growLarge(at int) byte {
	var frame [roomLarge]byte
	return frame[at%roomLarge]
}
