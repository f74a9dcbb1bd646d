package structs

// DeviceEnvAttr begins the attributes of a device that say what it adds to an
// environment variable of the task that gets it: a task with the devices whose
// attribute "env.CUDA_VISIBLE_DEVICES" is "2" and "3" gets "2,3" in that
// variable. Devices that the agent's configuration declares use it.
const DeviceEnvAttr = "env."

// DeviceVisibleSuffix ends the variables by which frameworks choose devices.
const DeviceVisibleSuffix = "_VISIBLE_DEVICES"
