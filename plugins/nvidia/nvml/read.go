//go:build cgo

package nvml

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/nvidia"
)

// noInstance is the library's word for "no instance".
const noInstance = 0xFFFFFFFF

// cardsMax bounds what one node is believed to have.
const cardsMax = 256

// reader asks what cards are and how they are. It keeps nothing.
type reader struct {
	api nvml.Interface
	lib *loaded
}

// read asks for everything about the node and its cards, with how the library
// names those that say who they are.
func (r reader) read() (nvidia.Facts, []handle, error) {
	facts := nvidia.Facts{
		Driver:  or(ask(r.lib, "nvmlSystemGetDriverVersion", r.api.SystemGetDriverVersion)),
		Library: or(ask(r.lib, "nvmlSystemGetNVMLVersion", r.api.SystemGetNVMLVersion)),
	}
	version, ok := ask(r.lib, "nvmlSystemGetCudaDriverVersion_v2", r.api.SystemGetCudaDriverVersion_v2)
	if !ok {
		version, ok = ask(r.lib, "nvmlSystemGetCudaDriverVersion", r.api.SystemGetCudaDriverVersion)
	}
	if ok {
		facts.CUDA = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	count, ret := r.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return facts, nil, fmt.Errorf("count NVIDIA cards: %s", r.lib.text(ret))
	}
	var handles []handle
	for index := range min(count, cardsMax) {
		card, h := r.readCard(index)
		facts.Cards = append(facts.Cards, card)
		if card.UUID != "" {
			handles = append(handles, h)
		}
	}
	return facts, handles, nil
}

// readCard asks one card. A card that does not say its UUID is given with the
// reason instead.
func (r reader) readCard(index int) (nvidia.Card, handle) {
	card := nvidia.Card{Index: index, Minor: -1}
	dev, ret := r.api.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return r.unreadable(card, ret), handle{}
	}
	h := handle{device: dev}
	if pci, ok := ask(r.lib, "nvmlDeviceGetPciInfo_v3", dev.GetPciInfo); ok {
		card.Bus = pcie.Normal(busID(pci))
	} else if pci, ok := ask(r.lib, "nvmlDeviceGetPciInfo_v2", dev.GetPciInfo); ok {
		card.Bus = pcie.Normal(busID(pci))
	}
	uuid, ret := dev.GetUUID()
	if ret != nvml.SUCCESS {
		return r.unreadable(card, ret), handle{}
	}
	card.UUID, h.uuid = uuid, uuid
	card.Name = or(ask(r.lib, "nvmlDeviceGetName", dev.GetName))
	card.Serial = or(ask(r.lib, "nvmlDeviceGetSerial", dev.GetSerial))
	card.VBIOS = or(ask(r.lib, "nvmlDeviceGetVbiosVersion", dev.GetVbiosVersion))
	if minor, ok := ask(r.lib, "nvmlDeviceGetMinorNumber", dev.GetMinorNumber); ok {
		card.Minor = minor
	}
	if arch, ok := ask(r.lib, "nvmlDeviceGetArchitecture", dev.GetArchitecture); ok {
		card.Arch = archName(arch)
	}
	if !r.readMemory(dev, &card) {
		// A dead card still says its name, from what the driver remembers.
		if _, ret := dev.GetMemoryInfo(); ret == nvml.ERROR_GPU_IS_LOST {
			card.Lost = true
			return card, h
		}
	}
	r.readMIG(dev, &card, &h)
	r.readLinks(dev, &card)
	r.readFabric(dev, &card)
	r.readState(dev, &card)
	return card, h
}

func (r reader) unreadable(card nvidia.Card, ret nvml.Return) nvidia.Card {
	card.Lost, card.Unreadable = ret == nvml.ERROR_GPU_IS_LOST, r.lib.text(ret)
	return card
}

// readMemory fills in the memory; false: the card does not say.
func (r reader) readMemory(dev nvml.Device, card *nvidia.Card) bool {
	if memory, ok := ask(r.lib, "nvmlDeviceGetMemoryInfo_v2", dev.GetMemoryInfo_v2); ok {
		// This version does not count the driver's own part as used.
		card.Memory, card.State.MemoryUsed, card.State.MemoryReserved = memory.Total, memory.Used, 0
		return true
	}
	if memory, ok := ask(r.lib, "nvmlDeviceGetMemoryInfo", dev.GetMemoryInfo); ok {
		card.Memory, card.State.MemoryUsed = memory.Total, memory.Used
		return true
	}
	return !r.lib.has("nvmlDeviceGetMemoryInfo")
}

func busID(pci nvml.PciInfo) string {
	var text strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		text.WriteByte(byte(c))
	}
	return text.String()
}

func archName(arch nvml.DeviceArchitecture) string {
	switch arch {
	case nvml.DEVICE_ARCH_KEPLER:
		return "kepler"
	case nvml.DEVICE_ARCH_MAXWELL:
		return "maxwell"
	case nvml.DEVICE_ARCH_PASCAL:
		return "pascal"
	case nvml.DEVICE_ARCH_VOLTA:
		return "volta"
	case nvml.DEVICE_ARCH_TURING:
		return "turing"
	case nvml.DEVICE_ARCH_AMPERE:
		return "ampere"
	case nvml.DEVICE_ARCH_ADA:
		return "ada"
	case nvml.DEVICE_ARCH_HOPPER:
		return "hopper"
	case nvml.DEVICE_ARCH_BLACKWELL:
		return "blackwell"
	case nvml.DEVICE_ARCH_RUBIN:
		return "rubin"
	}
	return ""
}

// readMIG lists the MIG devices of a card.
func (r reader) readMIG(dev nvml.Device, card *nvidia.Card, h *handle) {
	mode, ok := ask(r.lib, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		current, _, ret := dev.GetMigMode()
		return current, ret
	})
	if !ok || mode != nvml.DEVICE_MIG_ENABLE {
		return
	}
	card.MIG = true
	most, ok := ask(r.lib, "nvmlDeviceGetMaxMigDeviceCount", dev.GetMaxMigDeviceCount)
	if !ok || !r.lib.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return
	}
	for index := range min(most, 64) {
		mig, ret := dev.GetMigDeviceHandleByIndex(index)
		if ret != nvml.SUCCESS {
			continue // no instance under this number
		}
		uuid, ret := mig.GetUUID()
		if ret != nvml.SUCCESS || uuid == "" {
			continue
		}
		instance := nvidia.Instance{UUID: uuid}
		instance.GPU = or(ask(r.lib, "nvmlDeviceGetGpuInstanceId", mig.GetGpuInstanceId))
		instance.Compute = or(ask(r.lib, "nvmlDeviceGetComputeInstanceId", mig.GetComputeInstanceId))
		name := or(ask(r.lib, "nvmlDeviceGetName", mig.GetName))
		if _, profile, found := strings.Cut(name, " MIG "); found {
			instance.Profile = profile
		}
		if memory, ok := ask(r.lib, "nvmlDeviceGetMemoryInfo", mig.GetMemoryInfo); ok {
			instance.Memory = memory.Total
		}
		if attributes, ok := ask(r.lib, "nvmlDeviceGetAttributes_v2", mig.GetAttributes); ok {
			if instance.Memory == 0 {
				instance.Memory = attributes.MemorySizeMB << 20
			}
			if instance.Profile == "" {
				instance.Profile = fmt.Sprintf("%dg.%dgb", attributes.GpuInstanceSliceCount, (attributes.MemorySizeMB+1023)/1024)
			}
		}
		card.Instances = append(card.Instances, instance)
		h.instances = append(h.instances, instanceHandle{device: mig, uuid: uuid})
	}
}

// readLinks asks for the card's NVLinks.
func (r reader) readLinks(dev nvml.Device, card *nvidia.Card) {
	if !r.lib.has("nvmlDeviceGetNvLinkState") {
		return
	}
	for number := range nvml.NVLINK_MAX_LINKS {
		state, ret := dev.GetNvLinkState(number)
		if ret != nvml.SUCCESS {
			return // no more links, or none at all
		}
		link := nvidia.Link{Up: state == nvml.FEATURE_ENABLED}
		if link.Up {
			if pci, ok := ask(r.lib, "nvmlDeviceGetNvLinkRemotePciInfo_v2", func() (nvml.PciInfo, nvml.Return) { return dev.GetNvLinkRemotePciInfo(number) }); ok {
				link.Remote = pcie.Normal(busID(pci))
			}
			kind, ok := ask(r.lib, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) { return dev.GetNvLinkRemoteDeviceType(number) })
			link.Switch = ok && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
		}
		card.Links = append(card.Links, link)
	}
}

// readFabric asks for the card's place in an NVLink fabric.
func (r reader) readFabric(dev nvml.Device, card *nvidia.Card) {
	var state uint8
	var status, clique uint32
	var cluster [16]uint8
	if info, ok := ask(r.lib, "nvmlDeviceGetGpuFabricInfoV", dev.GetGpuFabricInfoV().V2); ok {
		state, status, clique, cluster = info.State, info.Status, info.CliqueId, info.ClusterUuid
	} else if info, ok := ask(r.lib, "nvmlDeviceGetGpuFabricInfo", dev.GetGpuFabricInfo); ok {
		state, status, clique, cluster = info.State, info.Status, info.CliqueId, info.ClusterUuid
	}
	if state == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
		return
	}
	fabric := &nvidia.Fabric{Clique: clique, Ready: state == nvml.GPU_FABRIC_STATE_COMPLETED}
	if cluster != [16]uint8{} {
		fabric.Cluster = hex.EncodeToString(cluster[:])
	}
	if fabric.Ready && nvml.Return(status) != nvml.SUCCESS {
		fabric.Error = r.lib.text(nvml.Return(status))
	}
	card.Fabric = fabric
}

// readState asks for what health is judged by.
func (r reader) readState(dev nvml.Device, card *nvidia.Card) {
	s := &card.State
	if values := r.lib.fields(dev, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION); values[0] != nil {
		verdict := int(*values[0])
		s.Recovery = &verdict
	}
	if r.lib.has("nvmlDeviceGetRemappedRows") {
		if _, _, pending, failed, ret := dev.GetRemappedRows(); ret == nvml.SUCCESS {
			s.RemapPending, s.RemapFailed = pending, failed
		}
	}
	if pending, ok := ask(r.lib, "nvmlDeviceGetRetiredPagesPendingStatus", dev.GetRetiredPagesPendingStatus); ok {
		s.RetiredPending = pending == nvml.FEATURE_ENABLED
	}
	if count, ok := ask(r.lib, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	}); ok {
		s.ECCUncorrected = &count
	}
	s.LinkErrors, s.LinkRecoveries = r.lib.linkErrors(dev)
	reasons := r.lib.clockReasons(dev)
	s.HardSlowdown = reasons&nvml.ClocksThrottleReasonHwSlowdown != 0
	s.ThermalSlowdown = reasons&nvml.ClocksThrottleReasonHwThermalSlowdown != 0
	s.PowerBrake = reasons&nvml.ClocksThrottleReasonHwPowerBrakeSlowdown != 0
	if degrees, ok := ask(r.lib, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return dev.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		s.Temperature = int(degrees)
	}
	s.PCIeWidth = or(ask(r.lib, "nvmlDeviceGetCurrPcieLinkWidth", dev.GetCurrPcieLinkWidth))
	s.PowerLimit = int(or(ask(r.lib, "nvmlDeviceGetEnforcedPowerLimit", dev.GetEnforcedPowerLimit)) / 1000)
}
