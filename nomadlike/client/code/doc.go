// Package code brings the code of jobs to the node, and makes of it what a task finds
// in its directory.
//
// Flow: Copy finds the tree that a job names in the cache of the job's project, or
// fetches what is missing from a server, each chunk compared with its digest, and
// writes it out as files of the task's own. Sweep removes trees that nobody has asked
// for in a long time; Copy removes those that are in the way, oldest first.
//
//	<project>/trees/<digest>        the list of a tree; the file's time is when it was last used
//	<project>/chunks/<dd>/<digest>  what files are made of
//	making/…                        files without a name yet
//
// A project has a cache of its own: who names the digest of somebody else's tree finds
// nothing here, and the servers refuse it.
//
// Every chunk is compared with its digest whenever it is read. One that is damaged is
// fetched again, so nothing has to be on the disk at any moment and a crash costs at
// most a chunk.
//
// Copies share nothing with the cache or with each other: what a task writes into its
// own reaches nobody.
//
// Limits: a chunk is held in memory while it is compared.
package code
