// Package nvml opens the vendor's library for the nvidia plugin, through
// NVIDIA's own binding.
//
// Flow: Open loads libnvidia-ml.so.1 and looks up what nothing works without;
// Read, Sample and Wait ask it, and check before the first use of every
// function that this library has it: calling one that is missing would end
// the process. What a card or a library cannot say is left out.
//
// Limits: it needs cgo and must not be linked statically. It runs in the
// plugin's own process only, since the library may hang and crash; a build
// without cgo has a New whose Open says so.
package nvml
