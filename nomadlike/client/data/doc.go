// Package data keeps copies of datasets on fast storage of the node, for jobs
// that read them from there.
//
// Flow: Prepare lists a source, finds the copy that it has of exactly these
// files or makes one with many readers at a time, verifies what it wrote, and
// returns the directory. Use and Release say which allocation reads which copy;
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
//	lists                     lists of files that are long, without a name
//
// A copy appears whole, by a rename, after everything of it is on the disk. One
// that was broken off, by a crash of the agent or of the machine, goes on where
// the journal ends; after a crash of the machine what the journal says is
// verified first.
//
// Rights: a copy is read by whom its source is read by. Files and directories
// keep their owner, group and bits to read and execute, and lose those to
// write; an agent that is not root cannot give files away and keeps the bits.
// Sources that differ in rights have copies of their own. While a copy is in
// the making nobody but the agent reads it.
//
// Memory: of a dataset an agent holds one byte for each file and directory, and
// the names of the directory that it walks, namesMax bytes of them at most. Lists
// and digests of many files lie on the disk while a copy is made.
//
// Links: those that stay inside of the dataset are copied as they are. Who reads
// through one is the task, never the agent.
//
// Verification: a copy that is used again is compared with its manifest, all of it
// at the first use since the store was opened and by sample after that.
//
// Limits: two sources are taken for the same when names, sizes, rights and
// modification times are. Links that lead out of the dataset and special files are
// left out, and counted. Links are not verified. Access control
// lists and other extended attributes are not copied.
package data
