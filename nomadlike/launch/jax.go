package launch

import "strconv"

// jax runs the command on every node: one process there sees all its devices.
// jax.distributed.initialize reads the coordinator; the rest goes by both
// names that user code has for it.
func (b *build) jax() error {
	count, index := strconv.Itoa(len(b.members)), strconv.Itoa(b.rank)
	coordinator := hostPort(b.masterAddr(), b.masterPort())
	for _, v := range [...]struct{ name, value string }{
		{"JAX_COORDINATOR_ADDRESS", coordinator},
		{"JAX_NUM_PROCESSES", count},
		{"JAX_PROCESS_COUNT", count},
		{"JAX_PROCESS_ID", index},
		{"JAX_PROCESS_INDEX", index},
	} {
		b.env.set(v.name, v.value)
	}
	return b.plain()
}

// hostPort writes an address as every framework reads it.
func hostPort(address string, port int) string { return bracketed(address) + ":" + strconv.Itoa(port) }
