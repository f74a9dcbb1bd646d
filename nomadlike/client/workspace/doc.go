// Package workspace decides what a task finds below /workspace, and which
// directories of the node stand behind it.
//
// Flow: the node's administrator names storages, each a path template with
// what it serves; Plan finds for everything that a job names the storage, the
// directory in it, and the place where the task sees it. package client checks
// the directories, makes those that are to be made, and hands mounts or links
// to the driver.
//
// Limits: the package is pure. It sees no disk: whether a directory exists,
// and where its links lead, is found out by whoever opens it, below Place.Root.
package workspace
