// Package directory asks directories (LDAP, Active Directory) who somebody is who gives
// a name and a password.
//
// Flow: a connection for each sign-in, to the first server that answers; a search for
// the one entry of the name, as a service account or as the person; a bind as that
// entry, which is what proves the password; then the groups, nested ones too.
//
// Limits: nothing is kept between sign-ins, no referral is followed, and nothing is ever
// written. What a server says of a person is hostile until auth.SignInOf has looked at it.
package directory
