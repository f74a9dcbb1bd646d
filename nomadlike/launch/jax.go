package launch

import "strconv"

// jax runs the command on every node: one process there sees all its devices, or,
// where the job wants several, each its part of them. jax.distributed.initialize
// reads the coordinator; the rest goes by both names that user code has for it.
func (b *build) jax() error {
	b.env.set("JAX_COORDINATOR_ADDRESS", hostPort(b.masterAddr(), b.masterPort()))
	spreads, procs := b.spreads(), 1
	if spreads {
		procs = b.slots
	}
	count := strconv.Itoa(len(b.members) * procs)
	b.env.set("JAX_NUM_PROCESSES", count)
	b.env.set("JAX_PROCESS_COUNT", count)
	if !spreads {
		index := strconv.Itoa(b.rank)
		b.env.set("JAX_PROCESS_ID", index)
		b.env.set("JAX_PROCESS_INDEX", index)
		return b.plain()
	}
	first := b.rank * procs
	each := []EachProc{b.counted("JAX_PROCESS_ID", first), b.counted("JAX_PROCESS_INDEX", first), b.counted("LOCAL_RANK", 0)}
	if cards, ok := b.cardsOf("CUDA_VISIBLE_DEVICES"); ok {
		each = append(each, cards)
	}
	return b.spread(each...)
}

// hostPort writes an address as every framework reads it.
func hostPort(address string, port int) string { return bracketed(address) + ":" + strconv.Itoa(port) }
