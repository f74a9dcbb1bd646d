// Package checkpoint is how a training makes its checkpoints known: by messages
// that a task leaves in a directory of its own, and by a directory that its
// agent watches.
//
// Flow: Register, inside a task, writes a message into the inbox, a directory
// that the environment names (EnvInbox); any program can do the same, a line
// with the path is enough. The agent's Inbox finds it, and removes it when the
// servers have it in their log: until then nothing is lost, whoever dies.
// Watch is the pure half of the other way: looks at a directory in, the newest
// entry that is whole out; Look is such a look.
//
// Limits: an inbox is read every few hundred milliseconds, a bounded number of
// small files at a time; of a directory a bounded number of names. A task needs
// no token and no network for any of it, and may put into its inbox whatever
// it likes: nothing is followed that leads out of the task's directory.
package checkpoint
