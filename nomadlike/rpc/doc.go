// Package rpc carries everything that agents say to each other, over one TCP
// port per agent and mutual TLS.
//
// Flow, inwards: Mux accepts connections, completes the TLS handshake off the
// accept loop, and splits them by the protocol that the client named: HTTP
// for people, gRPC for agents, Raft for servers. Server holds the methods;
// each is declared by Unary or Stream with the roles that may call it, and
// one interceptor asks before any of them runs. Outwards: Pool keeps one
// connection to each agent; Call and OpenStream use it. Bodies are Go structs
// in canonical CBOR (package wire); there is no second form of any noun.
//
// Errors cross as *structs.Error, so errors.As works at the caller. A call
// whose request may have arrived but whose answer did not ends with
// structs.CodeTimeout: the outcome is unknown. CodeUnavailable means that
// nothing was sent, and it is safe to try again elsewhere.
//
// Silence is noticed fast: unacknowledged bytes break a connection after
// FailAfter (TCP_USER_TIMEOUT), and a broken one is dialed again within
// 250 ms. Heartbeats on top are the callers' business.
//
// Limits: messages of wire.MessageSizeMax bytes; bounded handshakes,
// connections per address and per agent, streams per connection. Any
// goroutine may call anything here unless a comment says otherwise.
package rpc
