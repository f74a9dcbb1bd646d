// Package devices looks after the accelerators of a node.
//
// Flow: plugins say what there is and how it is, which is registered; Reserve makes
// devices ready for a task and says what it needs to see them; Reap ends what a task
// left on them; Act, called by the loop, moves work away from devices that fail and has
// idle ones reset; Treat does what operators ask for.
//
// Limits: devices that the configuration declares are watched by nobody.
package devices
