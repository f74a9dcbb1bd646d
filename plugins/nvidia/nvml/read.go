//go:build cgo

package nvml

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/nvidia"
)

// noInstance is the library's word for "no instance".
const noInstance = 0xFFFFFFFF

// Read asks for everything about the node and its cards.
func (l *Library) Read() (nvidia.Facts, error) {
	facts := nvidia.Facts{
		Driver:  or(ask(l, "nvmlSystemGetDriverVersion", l.api.SystemGetDriverVersion)),
		Library: or(ask(l, "nvmlSystemGetNVMLVersion", l.api.SystemGetNVMLVersion)),
	}
	version, ok := ask(l, "nvmlSystemGetCudaDriverVersion_v2", l.api.SystemGetCudaDriverVersion_v2)
	if !ok {
		version, ok = ask(l, "nvmlSystemGetCudaDriverVersion", l.api.SystemGetCudaDriverVersion)
	}
	if ok {
		facts.CUDA = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	count, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return facts, fmt.Errorf("count NVIDIA cards: %s", l.text(ret))
	}
	var handles []handle
	for index := range min(count, cardsMax) {
		card, h := l.readCard(index)
		facts.Cards = append(facts.Cards, card)
		if card.UUID != "" {
			handles = append(handles, h)
		}
	}
	l.remember(handles)
	return facts, nil
}

// remember keeps the handles for Sample and Wait.
func (l *Library) remember(handles []handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := len(handles) == len(l.mu.cards)
	for i := range handles {
		same = same && handles[i].device == l.mu.cards[i].device && handles[i].uuid == l.mu.cards[i].uuid
	}
	l.mu.changed = l.mu.changed || !same
	l.mu.cards = handles
}

// readCard asks one card. A card that does not say its UUID is given with the
// reason instead.
func (l *Library) readCard(index int) (nvidia.Card, handle) {
	card := nvidia.Card{Index: index, Minor: -1}
	dev, ret := l.api.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return l.unreadable(card, ret), handle{}
	}
	h := handle{device: dev}
	if pci, ok := ask(l, "nvmlDeviceGetPciInfo_v3", dev.GetPciInfo); ok {
		card.Bus = pcie.Normal(busID(pci))
	} else if pci, ok := ask(l, "nvmlDeviceGetPciInfo_v2", dev.GetPciInfo); ok {
		card.Bus = pcie.Normal(busID(pci))
	}
	uuid, ret := dev.GetUUID()
	if ret != nvml.SUCCESS {
		return l.unreadable(card, ret), handle{}
	}
	card.UUID, h.uuid = uuid, uuid
	card.Name = or(ask(l, "nvmlDeviceGetName", dev.GetName))
	card.Serial = or(ask(l, "nvmlDeviceGetSerial", dev.GetSerial))
	card.VBIOS = or(ask(l, "nvmlDeviceGetVbiosVersion", dev.GetVbiosVersion))
	if minor, ok := ask(l, "nvmlDeviceGetMinorNumber", dev.GetMinorNumber); ok {
		card.Minor = minor
	}
	if arch, ok := ask(l, "nvmlDeviceGetArchitecture", dev.GetArchitecture); ok {
		card.Arch = archName(arch)
	}
	if !l.readMemory(dev, &card) {
		// A dead card still says its name, from what the driver remembers.
		if _, ret := dev.GetMemoryInfo(); ret == nvml.ERROR_GPU_IS_LOST {
			card.Lost = true
			return card, h
		}
	}
	l.readMIG(dev, &card, &h)
	l.readLinks(dev, &card)
	l.readFabric(dev, &card)
	l.readState(dev, &card)
	return card, h
}

func (l *Library) unreadable(card nvidia.Card, ret nvml.Return) nvidia.Card {
	card.Lost, card.Unreadable = ret == nvml.ERROR_GPU_IS_LOST, l.text(ret)
	return card
}

// readMemory fills in the memory; false: the card does not say.
func (l *Library) readMemory(dev nvml.Device, card *nvidia.Card) bool {
	if memory, ok := ask(l, "nvmlDeviceGetMemoryInfo_v2", dev.GetMemoryInfo_v2); ok {
		// This version does not count the driver's own part as used.
		card.Memory, card.State.MemoryUsed, card.State.MemoryReserved = memory.Total, memory.Used, 0
		return true
	}
	if memory, ok := ask(l, "nvmlDeviceGetMemoryInfo", dev.GetMemoryInfo); ok {
		card.Memory, card.State.MemoryUsed = memory.Total, memory.Used
		return true
	}
	return !l.has("nvmlDeviceGetMemoryInfo")
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
func (l *Library) readMIG(dev nvml.Device, card *nvidia.Card, h *handle) {
	mode, ok := ask(l, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		current, _, ret := dev.GetMigMode()
		return current, ret
	})
	if !ok || mode != nvml.DEVICE_MIG_ENABLE {
		return
	}
	card.MIG = true
	most, ok := ask(l, "nvmlDeviceGetMaxMigDeviceCount", dev.GetMaxMigDeviceCount)
	if !ok || !l.has("nvmlDeviceGetMigDeviceHandleByIndex") {
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
		instance.GPU = or(ask(l, "nvmlDeviceGetGpuInstanceId", mig.GetGpuInstanceId))
		instance.Compute = or(ask(l, "nvmlDeviceGetComputeInstanceId", mig.GetComputeInstanceId))
		name := or(ask(l, "nvmlDeviceGetName", mig.GetName))
		if _, profile, found := strings.Cut(name, " MIG "); found {
			instance.Profile = profile
		}
		if memory, ok := ask(l, "nvmlDeviceGetMemoryInfo", mig.GetMemoryInfo); ok {
			instance.Memory = memory.Total
		}
		if attributes, ok := ask(l, "nvmlDeviceGetAttributes_v2", mig.GetAttributes); ok {
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
func (l *Library) readLinks(dev nvml.Device, card *nvidia.Card) {
	if !l.has("nvmlDeviceGetNvLinkState") {
		return
	}
	for number := range nvml.NVLINK_MAX_LINKS {
		state, ret := dev.GetNvLinkState(number)
		if ret != nvml.SUCCESS {
			return // no more links, or none at all
		}
		link := nvidia.Link{Up: state == nvml.FEATURE_ENABLED}
		if link.Up {
			if pci, ok := ask(l, "nvmlDeviceGetNvLinkRemotePciInfo_v2", func() (nvml.PciInfo, nvml.Return) { return dev.GetNvLinkRemotePciInfo(number) }); ok {
				link.Remote = pcie.Normal(busID(pci))
			}
			kind, ok := ask(l, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) { return dev.GetNvLinkRemoteDeviceType(number) })
			link.Switch = ok && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
		}
		card.Links = append(card.Links, link)
	}
}

// readFabric asks for the card's place in an NVLink fabric.
func (l *Library) readFabric(dev nvml.Device, card *nvidia.Card) {
	var state uint8
	var status, clique uint32
	var cluster [16]uint8
	if info, ok := ask(l, "nvmlDeviceGetGpuFabricInfoV", dev.GetGpuFabricInfoV().V2); ok {
		state, status, clique, cluster = info.State, info.Status, info.CliqueId, info.ClusterUuid
	} else if info, ok := ask(l, "nvmlDeviceGetGpuFabricInfo", dev.GetGpuFabricInfo); ok {
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
		fabric.Error = l.text(nvml.Return(status))
	}
	card.Fabric = fabric
}

// readState asks for what health is judged by.
func (l *Library) readState(dev nvml.Device, card *nvidia.Card) {
	s := &card.State
	if values := l.fields(dev, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION); values[0] != nil {
		verdict := int(*values[0])
		s.Recovery = &verdict
	}
	if l.has("nvmlDeviceGetRemappedRows") {
		if _, _, pending, failed, ret := dev.GetRemappedRows(); ret == nvml.SUCCESS {
			s.RemapPending, s.RemapFailed = pending, failed
		}
	}
	if pending, ok := ask(l, "nvmlDeviceGetRetiredPagesPendingStatus", dev.GetRetiredPagesPendingStatus); ok {
		s.RetiredPending = pending == nvml.FEATURE_ENABLED
	}
	if count, ok := ask(l, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	}); ok {
		s.ECCUncorrected = &count
	}
	s.LinkErrors, s.LinkRecoveries = l.linkErrors(dev)
	reasons := l.clockReasons(dev)
	s.HardSlowdown = reasons&nvml.ClocksThrottleReasonHwSlowdown != 0
	s.ThermalSlowdown = reasons&nvml.ClocksThrottleReasonHwThermalSlowdown != 0
	s.PowerBrake = reasons&nvml.ClocksThrottleReasonHwPowerBrakeSlowdown != 0
	if degrees, ok := ask(l, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return dev.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		s.Temperature = int(degrees)
	}
	s.PCIeWidth = or(ask(l, "nvmlDeviceGetCurrPcieLinkWidth", dev.GetCurrPcieLinkWidth))
	s.PowerLimit = int(or(ask(l, "nvmlDeviceGetEnforcedPowerLimit", dev.GetEnforcedPowerLimit)) / 1000)
}

// linkErrors returns the errors of all links together, and how often links were
// set up anew; nil: the card cannot say.
func (l *Library) linkErrors(dev nvml.Device) (errors, recoveries *uint64) {
	values := l.fields(dev, linkErrorFields()...)
	whole := func(figure float64) *uint64 {
		n := uint64(max(figure, 0))
		return &n
	}
	if sum, known := sumOf(values[:len(values)-1]); known {
		errors = whole(sum)
	}
	if last := values[len(values)-1]; last != nil {
		recoveries = whole(*last)
	}
	return errors, recoveries
}

// linkErrorFields are the counts of errors of links, and last that of their
// recoveries.
func linkErrorFields() []uint32 {
	return []uint32{
		nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
	}
}

// sumOf adds the figures that the card can say; false: it can say none.
func sumOf(values []*float64) (sum float64, known bool) {
	for _, value := range values {
		if value != nil {
			sum, known = sum+*value, true
		}
	}
	return sum, known
}

// clockReasons says what slows the card down. The function has two names.
func (l *Library) clockReasons(dev nvml.Device) uint64 {
	if reasons, ok := ask(l, "nvmlDeviceGetCurrentClocksEventReasons", dev.GetCurrentClocksEventReasons); ok {
		return reasons
	}
	return or(ask(l, "nvmlDeviceGetCurrentClocksThrottleReasons", dev.GetCurrentClocksThrottleReasons))
}

// fields asks for numbered figures at once; nil: the card cannot say.
func (l *Library) fields(dev nvml.Device, ids ...uint32) []*float64 {
	figures := make([]*float64, len(ids))
	if !l.has("nvmlDeviceGetFieldValues") {
		return figures
	}
	values := make([]nvml.FieldValue, len(ids))
	for i, id := range ids {
		values[i] = nvml.FieldValue{FieldId: id, ScopeId: scopeOf(id)}
	}
	if dev.GetFieldValues(values) != nvml.SUCCESS {
		return figures
	}
	for i := range values {
		if nvml.Return(values[i].NvmlReturn) == nvml.SUCCESS {
			if figure, ok := number(values[i]); ok {
				figures[i] = &figure
			}
		}
	}
	return figures
}

// scopeOf is what a figure is asked of: NVLink traffic of all links together.
func scopeOf(id uint32) uint32 {
	if id == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX || id == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX {
		return 0xFFFFFFFF
	}
	return 0
}

// number reads a figure in whatever type it comes.
func number(v nvml.FieldValue) (float64, bool) {
	bits := binary.NativeEndian.Uint64(v.Value[:])
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return float64FromBits(bits), true
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(v.Value[:4])), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits), true
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits)), true
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(binary.NativeEndian.Uint32(v.Value[:4]))), true
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(v.Value[:2])), true
	}
	return 0, false
}
