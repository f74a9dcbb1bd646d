package dcmi

import (
	"fmt"
	"net/netip"

	"nomadlike/plugins/ascend"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/pcie"
)

// Kinds of units of a card, and of ports, dies and memories.
const (
	unitNPU  = 0
	portRoCE = 1
	dieV     = 1 // the die by which a chip is known
	memHBM   = 2
)

// What utilization is asked of.
const (
	useAICore    = 2
	useAICPU     = 3
	useBandwidth = 10
	useVector    = 12
	useNPU       = 13
)

// Kinds of links between chips that are HCCS.
const (
	topoHCCS       = 3
	topoHCCSSwitch = 7
)

// Read asks for everything about the node's chips.
func (l *Library) Read() (ascend.Facts, error) {
	facts := ascend.Facts{}
	var text buffer
	if l.call("dcmi_get_driver_version", &text, bufferLen) == success {
		facts.Driver = text.Text(0, 64)
	}
	if text = (buffer{}); l.call("dcmi_get_dcmi_version", &text, bufferLen) == success {
		facts.Library = text.Text(0, 64)
	}
	keys, err := l.list()
	if err != nil {
		return facts, err
	}
	for _, key := range keys {
		facts.Chips = append(facts.Chips, l.readChip(key))
	}
	clearSuper(facts.Chips)
	if len(keys) <= linksMax {
		l.readLinks(facts.Chips)
	}
	l.mu.Lock()
	l.mu.chips = keys
	l.mu.Unlock()
	return facts, nil
}

// list names the NPUs of the node.
func (l *Library) list() ([]ascend.Key, error) {
	var number, cards buffer
	ret := l.call("dcmi_get_card_list", &number, &cards, cardsMax)
	if ret == notSupported {
		ret = l.call("dcmi_get_card_num_list", &number, &cards, cardsMax)
	}
	if ret != success {
		return nil, fmt.Errorf("list Ascend cards: %s", describe(ret))
	}
	var keys []ascend.Key
	for i := range min(max(number.I32(0), 0), cardsMax) {
		card := cards.I32(4 * i)
		var most, mcu, cpu buffer
		if l.call("dcmi_get_device_id_in_card", card, &most, &mcu, &cpu) != success {
			if l.call("dcmi_get_device_num_in_card", card, &most) != success {
				keys = append(keys, ascend.Key{Card: card}) // it is there, and says no more
				continue
			}
		}
		for chip := range min(max(most.I32(0), 0), chipsMax) {
			var unit buffer
			if ret := l.call("dcmi_get_device_type", card, chip, &unit); ret == success && unit.I32(0) != unitNPU {
				continue
			}
			keys = append(keys, ascend.Key{Card: card, Chip: chip})
		}
	}
	return keys, nil
}

// readChip asks one chip. A chip that does not answer is given with the reason
// instead.
func (l *Library) readChip(key ascend.Key) ascend.Chip {
	chip := ascend.Chip{Key: key, Physical: -1, State: ascend.State{Level: -1, Network: -1}}
	var b buffer
	if l.call("dcmi_get_device_logic_id", &b, key.Card, key.Chip) == success {
		chip.Logic = b.I32(0)
		var physical buffer
		if l.call("dcmi_get_device_phyid_from_logicid", chip.Logic, &physical) == success {
			chip.Physical = physical.I32(0)
		}
	}
	if b = (buffer{}); l.call("dcmi_get_device_die_v2", key.Card, key.Chip, dieV, &b) == success && b != (buffer{}) {
		chip.ID = fmt.Sprintf("NPU-%08X-%08X-%08X-%08X-%08X", b.U32(0), b.U32(4), b.U32(8), b.U32(12), b.U32(16))
	}
	l.readName(&chip)
	if b = (buffer{}); l.call("dcmi_get_device_pcie_info_v2", key.Card, key.Chip, &b) == success {
		chip.Bus = pcie.Normal(fmt.Sprintf("%04x:%02x:%02x.%x", b.U32(16), b.U32(20), b.U32(24), b.U32(28)))
	}
	if total, _, ok := l.memory(key); ok {
		chip.Memory = total
	}
	l.readPort(&chip)
	chip.Super = l.superPlace(key)
	g := l.glance(key)
	chip.State.Level, chip.State.Codes, chip.Unreadable = g.Level, g.Codes, g.Err
	if b = (buffer{}); l.call("dcmi_get_device_network_health", key.Card, key.Chip, &b) == success {
		chip.State.Network = b.I32(0)
	}
	return chip
}

// readName asks what a chip is called. The newer function knows the model.
func (l *Library) readName(chip *ascend.Chip) {
	const nameLen = 32
	var b buffer
	if l.call("dcmi_get_device_chip_info_v2", chip.Card, chip.Key.Chip, &b) == success {
		chip.Name = modelName(b.Text(0, nameLen), b.Text(nameLen, nameLen), b.Text(3*nameLen+4, nameLen))
	} else if b = (buffer{}); l.call("dcmi_get_device_chip_info", chip.Card, chip.Key.Chip, &b) == success {
		chip.Name = modelName(b.Text(0, nameLen), b.Text(nameLen, nameLen), "")
	}
	if b = (buffer{}); l.call("dcmi_get_device_board_info", chip.Card, chip.Key.Chip, &b) == success {
		chip.Board = fmt.Sprintf("0x%04x", b.U32(0))
	}
}

// modelName joins "Ascend" and "910B3"; the NPU's own name wins when it says
// more.
func modelName(kind, name, npu string) string {
	for _, candidate := range []string{npu, name} {
		if candidate == "" || candidate == "NA" {
			continue
		}
		if len(candidate) >= len(kind) && kind != "" && candidate[:len(kind)] == kind {
			return candidate
		}
		if kind == "Ascend" || kind == "" {
			return "Ascend" + candidate
		}
		return kind + candidate
	}
	return kind
}

// readPort asks for the address of the chip's own network port.
func (l *Library) readPort(chip *ascend.Chip) {
	var ip, mask buffer
	if l.call("dcmi_get_device_ip", chip.Card, chip.Key.Chip, portRoCE, 0, &ip, &mask) == success {
		chip.IP, chip.Mask = address(&ip), address(&mask)
	}
	if ip = (buffer{}); l.call("dcmi_get_device_gateway", chip.Card, chip.Key.Chip, portRoCE, 0, &ip) == success {
		chip.Gateway = address(&ip)
	}
}

// superPlace asks where a chip is in a super pod; nil: it is in none, or the
// library is older than those.
func (l *Library) superPlace(key ascend.Key) *ascend.SuperPlace {
	const (
		mainChip, subSuperPod = 12, 1
		length                = 48
		none                  = 0xFFFFFFFF
	)
	var b, size buffer
	size.PutU32(0, length)
	if l.call("dcmi_get_device_info", key.Card, key.Chip, mainChip, subSuperPod, &b, &size) != success {
		return nil
	}
	place := ascend.SuperPlace{Device: b.U32(0), Pod: b.U32(8)}
	if place.Device == none || place.Pod == none {
		return nil
	}
	return &place
}

// clearSuper drops places in super pods that cannot be: every chip of one has
// a number of its own, and drivers of machines without one may say 0 of all.
func clearSuper(chips []ascend.Chip) {
	seen := make(map[ascend.SuperPlace]bool)
	doubled := false
	for i := range chips {
		if s := chips[i].Super; s != nil {
			doubled = doubled || seen[*s]
			seen[*s] = true
		}
	}
	if alone := len(chips) == 1 && seen[ascend.SuperPlace{}]; !doubled && !alone {
		return
	}
	for i := range chips {
		chips[i].Super = nil
	}
}

// address reads 16 bytes of address and a type, 0 for IPv4; "" when it is none.
func address(b *buffer) string {
	const typeV6 = 1
	if b.I32(16) == typeV6 {
		if a := netip.AddrFrom16([16]byte(b[:16])); !a.IsUnspecified() {
			return a.String()
		}
		return ""
	}
	if a := netip.AddrFrom4([4]byte(b[:4])); !a.IsUnspecified() {
		return a.String()
	}
	return ""
}

// memory returns total and used bytes.
func (l *Library) memory(key ascend.Key) (total, used uint64, ok bool) {
	var b buffer
	if l.call("dcmi_get_device_hbm_info", key.Card, key.Chip, &b) == success && b.U64(0) > 0 {
		return b.U64(0) << 20, b.U64(16) << 20, true
	}
	if b = (buffer{}); l.call("dcmi_get_device_memory_info_v3", key.Card, key.Chip, &b) == success && b.U64(0) > 0 {
		return b.U64(0) << 20, (b.U64(0) - min(b.U64(8), b.U64(0))) << 20, true
	}
	return 0, 0, false
}

// readLinks asks which chips are joined by HCCS.
func (l *Library) readLinks(chips []ascend.Chip) {
	for i := range chips {
		for k := range chips {
			if i == k {
				continue
			}
			var kind buffer
			a, b := chips[i].Key, chips[k].Key
			if l.call("dcmi_get_topo_info_by_device_id", a.Card, a.Chip, b.Card, b.Chip, &kind) != success {
				continue
			}
			if t := kind.I32(0); t == topoHCCS || t == topoHCCSSwitch {
				chips[i].Linked = append(chips[i].Linked, b)
			}
		}
	}
}

// Glance asks all chips of the newest Read for their health.
func (l *Library) Glance() ([]ascend.Glance, error) {
	var all []ascend.Glance
	for _, key := range l.keys() {
		all = append(all, l.glance(key))
	}
	return all, nil
}

func (l *Library) keys() []ascend.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.chips
}

// glance asks one chip for its health, and for its codes when it is unhealthy.
func (l *Library) glance(key ascend.Key) ascend.Glance {
	const absent = 0xFFFFFFFF
	g := ascend.Glance{Key: key, Level: -1}
	var b buffer
	if ret := l.call("dcmi_get_device_health", key.Card, key.Chip, &b); ret != success {
		g.Err = describe(ret)
		return g
	}
	level := b.U32(0)
	if level == absent {
		g.Err = "the driver says that it does not exist"
		return g
	}
	g.Level = int(min(level, 3))
	if level == 0 {
		return g
	}
	var number, codes buffer
	if l.call("dcmi_get_device_errorcode_v2", key.Card, key.Chip, &number, &codes, codesMax) == success {
		for i := range min(max(number.I32(0), 0), codesMax) {
			g.Codes = append(g.Codes, codes.U32(4*i))
		}
	}
	return g
}

// Sample measures all chips of the newest Read.
func (l *Library) Sample() (map[ascend.Key]ascend.Sample, error) {
	samples := make(map[ascend.Key]ascend.Sample)
	for _, key := range l.keys() {
		samples[key] = l.sample(key)
	}
	return samples, nil
}

func (l *Library) sample(key ascend.Key) ascend.Sample {
	gauges := make(map[string]float64, 16)
	for _, each := range []struct {
		what  int
		gauge string
	}{{useAICore, device.GaugeUtilization}, {useNPU, device.GaugeUtilization}, {useAICPU, device.GaugeCPUUtilization}, {useVector, device.GaugeVectorUtilization}, {useBandwidth, device.GaugeMemoryUtilization}} {
		var b buffer
		if l.call("dcmi_get_device_utilization_rate", key.Card, key.Chip, each.what, &b) == success && b.U32(0) <= 100 {
			gauges[each.gauge] = float64(b.U32(0)) / 100 // the whole NPU goes before its AI cores
		}
	}
	if total, used, ok := l.memory(key); ok {
		gauges[device.GaugeMemoryTotal], gauges[device.GaugeMemoryUsed] = float64(total), float64(used)
	}
	l.sampleHardware(key, gauges)
	return ascend.Sample{Gauges: gauges, Processes: l.processes(key)}
}

// sampleHardware measures heat, power, memory errors and the network.
func (l *Library) sampleHardware(key ascend.Key, gauges map[string]float64) {
	var b buffer
	if l.call("dcmi_get_device_power_info", key.Card, key.Chip, &b) == success && b.I32(0) >= 0 {
		gauges[device.GaugePower] = float64(b.I32(0)) / 10
	}
	if b = (buffer{}); l.call("dcmi_get_device_temperature", key.Card, key.Chip, &b) == success {
		gauges[device.GaugeTemperature] = float64(b.I32(0))
	}
	if b = (buffer{}); l.call("dcmi_get_device_voltage", key.Card, key.Chip, &b) == success && b.U32(0) > 0 {
		gauges[device.GaugeVoltage] = float64(b.U32(0)) / 100
	}
	if b = (buffer{}); l.call("dcmi_get_device_hbm_info", key.Card, key.Chip, &b) == success && b.U64(0) > 0 {
		gauges[device.GaugeMemoryTemperature] = float64(b.I32(24))
	}
	if b = (buffer{}); l.call("dcmi_get_device_ecc_info", key.Card, key.Chip, memHBM, &b) == success {
		gauges[device.GaugeECCCorrected], gauges[device.GaugeECCUncorrected] = float64(b.U32(4)), float64(b.U32(8))
		gauges[device.GaugeRemappedCorrected], gauges[device.GaugeRemappedUncorrected] = float64(b.U32(20)), float64(b.U32(24))
	}
	if b = (buffer{}); l.call("dcmi_get_device_health", key.Card, key.Chip, &b) == success && b.U32(0) <= 3 {
		gauges[device.GaugeHealth] = float64(b.U32(0))
	}
	if b = (buffer{}); l.call("dcmi_get_device_network_health", key.Card, key.Chip, &b) == success {
		up := 0.0
		if state := b.I32(0); state == 0 || state == 6 {
			up = 1
		}
		gauges[device.GaugeNetworkUp] = up
	}
}

// processes lists who uses the chip: at most 32, each an int and, aligned, a
// long.
func (l *Library) processes(key ascend.Key) []device.Process {
	const most, size = 32, 16
	var list, number buffer
	if l.call("dcmi_get_device_resource_info", key.Card, key.Chip, &list, &number) != success {
		return nil
	}
	var all []device.Process
	for i := range min(max(number.I32(0), 0), most) {
		if pid := list.I32(size * i); pid > 0 {
			all = append(all, device.Process{PID: pid, Memory: int64(list.U64(size*i + 8))})
		}
	}
	return all
}
