// Package fingerprint finds out what a node is: its cores, memory, kernel,
// address and what it may offer to jobs.
//
// Flow: Read gathers the kernel's texts and the network interfaces at the
// door; Node turns them, with the administrator's wishes, into the
// structs.Node that is registered. Parsing and choosing are pure.
//
// Limits: Linux. Accelerators come from device plugins, drivers from the
// drivers themselves. Texts are bounded and hostile bytes in them stay out of
// the attributes.
package fingerprint
