// Package runtime is what device plugins have in common, so that a vendor is
// its library, a table of what is done about which fault, and a reserve.
//
// Flow: Start takes a Vendor and runs one loop: it opens the library, reads
// everything now and then, glances at health in between where the vendor can,
// and publishes. Every call of the library goes through plugins/device/guard,
// so that one that hangs makes the plugin blind and not silent; one that hangs
// or fails for good ends the process, since a new one may have more luck.
// What is seen goes to the record, which has it judged and publishes it. The
// meter and the healer answer the rest of the contract: they measure, end what
// dead tasks have left, reset cards and forget faults. Health and Unit keep the
// faults of every card over time; they are stored, so that a restart of the
// plugin forgets none.
//
// Limits: the runtime loads nothing itself; libraries are opened by the
// vendor's own package, in the plugin's own process. What is wrong with a card,
// and what its devices look like, is the vendor's to say: package card says it
// for those whose cards need nothing special.
package runtime
