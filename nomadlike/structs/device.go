package structs

// DeviceEnvAttr begins the attributes of a device that say what it adds to an
// environment variable of the task that gets it: a task with the devices whose
// attribute "env.CUDA_VISIBLE_DEVICES" is "2" and "3" gets "2,3" in that
// variable. Devices that the agent's configuration declares use it.
const DeviceEnvAttr = "env."

// DeviceVisibleSuffix ends the variables by which frameworks choose devices.
const DeviceVisibleSuffix = "_VISIBLE_DEVICES"

// DeviceKindAscend is the kind of devices whose ranks find each other by a rank
// table.
const DeviceKindAscend = "huawei/npu"

// Attributes of a device that rank tables are made of; device plugins write them.
const (
	DeviceAttrLogicID     = "logic_id"        // under which the vendor's software of one process sees it
	DeviceAttrIP          = "device_ip"       // of the device's own network port
	DeviceAttrSuperDevice = "super_device_id" // its number within its super pod
	DeviceAttrSuperPod    = "super_pod_id"    // nodes joined by the vendor's links
)
