// Package dcmi opens the vendor's library libdcmi.so for the ascend plugin.
//
// Flow: Open loads the library and looks its functions up; Read, Glance and
// Sample call those that are there. A function that is missing, and a figure
// that a chip does not have, are left out.
//
// Limits: the calls are made without C (package clib). It runs in the plugin's
// own process only, since the library may hang and crash.
package dcmi
