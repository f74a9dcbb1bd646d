// Package service answers what other agents ask about the allocations of a node: logs,
// files, commands in tasks, images of containers; what servers ask about the node's
// images; and it opens the sockets by which ranks reach each other.
//
// Flow: every call names its caller, as the certificate does; a server has authorised
// its user already, a node speaks for ranks of its own and reaches ranks of the same
// attempt only.
//
// Limits: it changes no allocation.
package service
