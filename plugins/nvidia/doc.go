// Package nvidia is the device plugin for NVIDIA cards.
//
// Flow: a Library reads the node's facts (package nvml does it with the
// vendor's library); Devices turns them into the devices of a snapshot, with
// MIG instances and configured parts as devices of their own, link groups and
// the nearest network card; Health.Step takes facts, the library's events and
// the kernel's messages and keeps the faults of every card, by the table of
// actions in actions.json, which an administrator may override. Plugin is the
// thin coat around these: it polls, waits for events, and publishes.
//
// Limits: the package itself loads nothing and is free of C, so that the agent
// can ask Present whether the plugin is worth starting. The library is used
// in the plugin's own process only. Cards are known by UUID; their numbers are
// for people. Cards in confidential or vGPU modes are reported as they are and
// not managed.
package nvidia
