// Package account reports which user of the node a task runs as, and whose its files
// are: an account that the node or a pool binds to people or projects, or an id that
// is the project's own.
//
// Flow: preparations ask Owners for an Owner and give it the files they make; ids are
// allotted once and kept in a file.
//
// Limits: users are those of the node; a container may have a number that it does not
// know.
package account
