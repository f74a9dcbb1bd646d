// Package data keeps copies of datasets on fast storage of the node, for jobs
// that read them from there.
//
// Flow: Prepare lists a source, finds the copy that it has of exactly these
// files or makes one with many readers at a time, verifies what it wrote, and
// gives the directory. Use and Release say which allocation reads which copy;
// Sweep removes copies that nobody has used for long, and Prepare those that are
// in the way, oldest first.
//
//	sets/<digest>/tree/…      a copy, read-only, named by the digest of its contents
//	sets/<digest>/manifest    its files with their digests
//	sets/<digest>/used        when it was last used (the file's time)
//	index/<listing>           the digest of the copy of a source that was listed so
//	parts/<listing>/tree/…    a copy in the making
//	parts/<listing>/journal   which parts of which files are done
//	uses/<digest>/<user>      who reads it
//
// A copy appears whole, by a rename, after everything of it is on the disk. One
// that was broken off, by a crash of the agent or of the machine, goes on where
// the journal ends; after a crash of the machine what the journal says is
// verified first.
//
// Limits: two sources are taken for the same when names, sizes, modes and
// modification times are. Links and special files are left out. Extended
// attributes and owners are not copied: copies belong to the agent and can be
// read by everybody who can reach them, which is whom their directory is
// mounted for.
package data
