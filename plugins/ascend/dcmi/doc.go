// Package dcmi opens the vendor's library libdcmi.so for the ascend plugin.
//
// Flow: Open loads the library and looks its functions up; Read, Glance and
// Sample call those that are there. A function that is missing, and a figure
// that a chip does not have, are left out.
//
// Limits: the calls are made without C (purego), so that the plugin's program
// runs with C libraries older than that of the machine that built it. Results
// go into buffers larger than the structures of today's interface, and are
// read by offset: a library that knows longer ones does no harm. It runs in
// the plugin's own process only, since the library may hang and crash.
package dcmi
