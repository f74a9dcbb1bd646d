// Package remote reads datasets from web servers and from object stores that
// speak S3, for package data.
//
// Flow: the node's administrator names a server in a storage, with its address,
// its credentials and what it may do; Open makes a data.Source of one dataset in
// it. List asks for names, sizes and versions; Open reads a range of a file, and
// goes on at the byte where a connection was cut.
//
// What a job says becomes part of a path and nothing else. A connection goes to
// the host that the administrator has named, or to one that he lets redirects
// lead to; never to link-local or multicast addresses, and to loopback only
// where the address itself says so. Addresses are looked at when they are
// dialled, so a name cannot change its meaning in between. No proxy, cookie,
// netrc or certificate of the cluster is used.
//
// Limits: nothing is written to a server. Archives are not unpacked.
package remote
