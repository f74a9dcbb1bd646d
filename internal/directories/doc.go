// Package directories runs real directories for tests, on sockets of loopback: OpenLDAP's
// server, and the domain controller of Samba.
//
// Samba's speaks as Active Directory does, with its schema, its identifiers, its computed
// attributes and what it says of refused binds. Microsoft's own is not to be had for tests:
// nothing here has been tried with it.
//
// Limits: one at a time of the certificates' names; Samba's listens at the ports of LDAP, so
// that root alone can run it.
package directories
