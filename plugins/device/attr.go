package device

import "nomadlike/nomadlike/structs"

// Keys of structs.Device.Attrs. Values are texts; numbers are decimal. A key
// that does not apply is not there.
const (
	// AttrAction is the Action that the device asks for; absent: none.
	AttrAction = "action"
	// AttrFault is the code of what is wrong, for instance "xid-79".
	AttrFault = "fault"
	// AttrFaultSince is when that began, in RFC 3339.
	AttrFaultSince = "fault.since"

	// AttrMinor is the number of the device node, for instance 3 of
	// /dev/nvidia3.
	AttrMinor = "minor"
	// AttrSerial is the serial number of the board.
	AttrSerial = "serial"
	// AttrArch is the generation of the chip, in lower case: "hopper".
	AttrArch = "arch"
	// AttrVBIOS is the version of the device's own firmware.
	AttrVBIOS = "vbios"
	// AttrCUDA is the newest CUDA that the driver can run, as "12.4".
	AttrCUDA = "cuda"
	// AttrPowerLimit is the power limit in force, in watts.
	AttrPowerLimit = "power_limit_watts"

	// AttrParent is the ID of the physical device that this one is a part of.
	// Devices with one parent, and the parent, share its faults.
	AttrParent = "parent"
	// AttrSharing is how a part is divided from the other parts of its
	// parent: one of the Sharing words.
	AttrSharing = "sharing"
	// AttrSlice is which part this is, from 1; "1" of card 1 is shown as 1(1).
	AttrSlice = "slice"
	// AttrSlices is how many parts the parent has.
	AttrSlices = "slices"
	// AttrProfile names the size of a hardware part, for instance "1g.10gb".
	AttrProfile = "profile"
	// AttrInstance is the vendor's number of a hardware part; for MIG
	// "<gpu instance>/<compute instance>".
	AttrInstance = "instance"

	// AttrLinkPeers is how many devices of this node are reached over the
	// vendor's own links, and AttrLinkCount how many such links are up.
	AttrLinkPeers = "link.peers"
	AttrLinkCount = "link.count"
	// AttrLinkKind is "nvlink", "nvswitch", "hccs", "mlulink", "xgmi", "pcie" or "numa": what
	// joins the devices of the LinkGroup.
	AttrLinkKind = "link.kind"
	// AttrPCISwitch names the PCI bridge that joins the device to its nearest
	// neighbours, and AttrPCIRoot the root of its PCI tree. Devices with the
	// same value are as near to each other.
	AttrPCISwitch = "pci.switch"
	AttrPCIRoot   = "pci.root"
	// AttrFabric names the fabric over several nodes that the device is a
	// member of, for instance the cluster and clique of an NVL72 rack.
	AttrFabric = "fabric"
	// AttrNIC is the nearest RDMA network card, for instance "mlx5_0", and
	// AttrNICDistance how far it is: one of the Near words.
	AttrNIC         = "nic"
	AttrNICDistance = "nic.distance"
	// AttrCPUs lists the CPUs that are near, as "0-31,64-95".
	AttrCPUs = "cpus"

	// AttrLogicID is the number under which the vendor's software of one
	// process sees the device, AttrCard and AttrChip where it sits, AttrBoard
	// the board's kind. They are what rank tables need.
	AttrLogicID = structs.DeviceAttrLogicID
	AttrCard    = "card"
	AttrChip    = "chip"
	AttrBoard   = "board_id"
	// AttrDeviceIP is the address of the device's own network port,
	// AttrDeviceMask its mask and AttrDeviceGateway its gateway.
	AttrDeviceIP      = structs.DeviceAttrIP
	AttrDeviceMask    = "device_ip.mask"
	AttrDeviceGateway = "device_ip.gateway"
	// AttrNetworkHealth is the state of that port in the vendor's word.
	AttrNetworkHealth = "network_health"
	// AttrSuperDevice is the number of the device within its super pod, and
	// AttrSuperPod that of the super pod: nodes joined by the vendor's links.
	AttrSuperDevice = structs.DeviceAttrSuperDevice
	AttrSuperPod    = structs.DeviceAttrSuperPod
)

// How parts of one device are divided, in AttrSharing.
const (
	SharingMIG       = "mig"        // by hardware: memory and compute are walls
	SharingMPS       = "mps"        // by NVIDIA's multi-process service: limits, one fault hits all
	SharingTimeSlice = "time-slice" // by turns: no wall in memory
	SharingVNPU      = "vnpu"       // Ascend's hardware parts
)

// How near a network card is to a device, in AttrNICDistance; nearest first.
const (
	NearSwitch = "pix" // the same PCI switch
	NearBridge = "pxb" // several PCI switches, one root port
	NearRoot   = "phb" // the same root complex
	NearNUMA   = "node"
	NearSystem = "sys" // the other socket
)

// Keys of Snapshot.Attributes.
const (
	// NodeDriver is the version of the vendor's kernel driver, NodeLibrary of
	// its library, and NodeCUDA the newest CUDA that they run.
	NodeDriver  = "driver"
	NodeLibrary = "library"
	NodeCUDA    = "cuda"
	// NodeMIG reports how many devices are divided by MIG, and NodeMIGEmpty how
	// many of those have no parts yet.
	NodeMIG      = "mig"
	NodeMIGEmpty = "mig.empty"
	// NodeSource is where the facts come from: "nvml", "dcmi", "npu-smi", "cndev", "cnmon",
	// "amdsmi", "rocm-smi".
	NodeSource = "source"
)

// Kinds of structs.Device.Kind that built-in plugins report.
const (
	KindNVIDIA       = "nvidia/gpu"
	KindNVIDIAMIG    = "nvidia/mig"        // a MIG instance, Model is its profile
	KindNVIDIAShared = "nvidia/gpu-shared" // a part by MPS or time slices
	KindAscend       = structs.DeviceKindAscend
	KindAscendShared = "huawei/npu-shared"
	KindCambricon    = "cambricon/mlu"
	KindAMD          = "amd/gpu"
)
