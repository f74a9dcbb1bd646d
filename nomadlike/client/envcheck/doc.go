// Package envcheck judges what a rank really sees: the environment of its task,
// shared memory, locked memory, devices of the network, names of its peers.
//
// Flow: package client runs Script inside the task (in its namespaces, or its
// container), Parse reads what it wrote, and Table.Judge names the likely causes
// of trouble. The table is data: table.json is built in, and an administrator
// may give a node another one.
//
// Processes and Listener look at /proc for what the processes of a task really
// have, which an entrypoint or a script may have changed.
//
// Limits: pure but for these two, which only read. What a task prints is not
// believed to be more than text; its length and the number of facts are bounded.
// A command of which no process has the platform's variables is not found.
package envcheck
