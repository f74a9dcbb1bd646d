package ascend

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/runtime"
)

// Limits of npu-smi.
const (
	smiLimit   = 20 * time.Second
	resetLimit = 5 * time.Minute
	// smiFresh is how long one output serves: a run takes about a second of a
	// processor.
	smiFresh = 2 * time.Second
)

// Table is what `npu-smi info` says.
type Table struct {
	Version string
	Chips   []Row
}

// Row is one chip of the table.
type Row struct {
	Key
	Physical    int // -1: the table does not say
	Name        string
	Health      string // "OK", "Warning", "Alarm", "Critical", …
	Bus         string
	Power       float64 // watts; negative: not told, as of a card's second chip
	Temperature float64
	Utilization float64 // percent
	Memory      [2]uint64
	HBM         [2]uint64 // used and total, bytes
	HugePages   [2]uint64
	Processes   []device.Process
}

// ParseSMI reads the output of `npu-smi info`: two lines for each chip, then a
// table of processes. It takes what it can read; an output without a single
// chip is an error.
func ParseSMI(text string) (Table, error) {
	var table Table
	var pending *Row // the first line of a chip, waiting for the second
	processes := false
	for line := range strings.Lines(text) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 0:
			continue
		case len(cells) == 1:
			if _, version, found := strings.Cut(cells[0], "Version:"); found {
				table.Version = strings.TrimSpace(version)
			}
			continue
		case strings.Contains(cells[0], "NPU") || strings.Contains(cells[0], "Chip"):
			processes = processes || len(cells) >= 2 && strings.HasPrefix(cells[1], "Process id")
			continue
		}
		if processes {
			table.process(cells)
			continue
		}
		if len(cells) != 3 || len(table.Chips) >= runtime.UnitsMax {
			continue
		}
		if pending == nil {
			pending = firstLine(cells)
			continue
		}
		if pending.secondLine(cells) {
			table.Chips = append(table.Chips, *pending)
		}
		pending = nil
	}
	if len(table.Chips) == 0 {
		return table, errors.New("read output of npu-smi: it lists no chips")
	}
	return table, nil
}

// cellsOf splits "| a | b |" into its cells; nothing for rulers and prose.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// firstLine reads "0 910B3 | OK | 93.4 40 0 / 0"; nil when it is none.
func firstLine(cells []string) *Row {
	who := strings.Fields(cells[0])
	figures := strings.Fields(strings.ReplaceAll(cells[2], "/", " / "))
	if len(who) < 2 || len(figures) < 2 {
		return nil
	}
	card, err := strconv.ParseUint(who[0], 10, 16)
	if err != nil {
		return nil
	}
	row := &Row{Key: Key{Card: int(card)}, Physical: -1, Name: who[1], Health: cells[1], Power: -1}
	if power, err := strconv.ParseFloat(figures[0], 64); err == nil {
		row.Power = power
	}
	if temperature, err := strconv.ParseFloat(figures[1], 64); err == nil {
		row.Temperature = temperature
	}
	row.HugePages, _ = pair(figures[2:])
	return row
}

// secondLine reads "0 0 | 0000:9D:00.0 | 0 0 / 0 3416 / 65536"; false when it
// is none.
func (r *Row) secondLine(cells []string) bool {
	where := strings.Fields(cells[0])
	figures := strings.Fields(strings.ReplaceAll(cells[2], "/", " / "))
	if len(where) == 0 || len(figures) < 4 {
		return false
	}
	chip, err := strconv.ParseUint(where[0], 10, 16)
	bus := pcie.Normal(cells[1])
	if err != nil || !pcie.Valid(bus) {
		return false
	}
	r.Chip, r.Bus = int(chip), bus
	if len(where) > 1 {
		if physical, err := strconv.ParseUint(where[1], 10, 16); err == nil {
			r.Physical = int(physical)
		}
	}
	if use, err := strconv.ParseFloat(figures[0], 64); err == nil && use >= 0 && use <= 100 {
		r.Utilization = use
	}
	var rest []string
	r.Memory, rest = pair(figures[1:])
	r.HBM, _ = pair(rest)
	return true
}

// pair reads "3416 / 65536", in MiB, as bytes; zeros when it is none.
func pair(words []string) (sizes [2]uint64, rest []string) {
	if len(words) < 3 || words[1] != "/" {
		return sizes, nil
	}
	for i, word := range []string{words[0], words[2]} {
		if n, err := strconv.ParseUint(word, 10, 40); err == nil {
			sizes[i] = n << 20
		}
	}
	return sizes, words[3:]
}

// process reads "0 0 | 1234 | python3 | 56789".
func (t *Table) process(cells []string) {
	where := strings.Fields(cells[0])
	if len(cells) < 4 || len(where) < 2 {
		return
	}
	card, cardErr := strconv.ParseUint(where[0], 10, 16)
	chip, chipErr := strconv.ParseUint(where[1], 10, 16)
	pid, pidErr := strconv.ParseUint(cells[1], 10, 31)
	memory, memoryErr := strconv.ParseUint(cells[3], 10, 40)
	if cardErr != nil || chipErr != nil || pidErr != nil || memoryErr != nil || pid == 0 {
		return
	}
	at := slices.IndexFunc(t.Chips, func(r Row) bool { return r.Key == Key{int(card), int(chip)} })
	if at >= 0 && len(t.Chips[at].Processes) < device.ProcessesMax {
		t.Chips[at].Processes = append(t.Chips[at].Processes, device.Process{PID: int(pid), Name: cells[2], Memory: int64(memory) << 20})
	}
}

// levelOf reads a word of the health column.
func levelOf(word string) int {
	switch strings.ToLower(word) {
	case "ok":
		return 0
	case "warning":
		return 1
	case "alarm":
		return 2
	case "critical":
		return 3
	}
	return levelUnknown
}

// facts turns the table into a node's facts. Chips of older tables have no
// physical number: they are counted.
func (t *Table) facts() Facts {
	facts := Facts{Driver: t.Version}
	for i, r := range t.Chips {
		physical := r.Physical
		if physical < 0 {
			physical = i
		}
		chip := Chip{
			Key: r.Key, Logic: physical, Physical: physical, Name: modelName(r.Name), Bus: r.Bus, Memory: max(r.HBM[1], r.Memory[1]),
			State: State{Level: levelOf(r.Health), Network: -1},
		}
		if chip.State.Level == levelUnknown {
			chip.Unreadable = "its health is " + r.Health
		}
		facts.Chips = append(facts.Chips, chip)
	}
	return facts
}

// modelName returns one name for a chip, whether or not the tool leaves out the
// vendor's word.
func modelName(name string) string {
	if name == "" || strings.HasPrefix(strings.ToLower(name), "ascend") {
		return name
	}
	return "Ascend" + name
}

// samples turns the table into measurements.
func (t *Table) samples() map[Key]Sample {
	samples := make(map[Key]Sample, len(t.Chips))
	for _, r := range t.Chips {
		gauges := map[string]float64{
			device.GaugeUtilization: r.Utilization / 100, device.GaugeTemperature: r.Temperature, device.GaugeHealth: float64(max(levelOf(r.Health), 0)),
		}
		if r.Power >= 0 {
			gauges[device.GaugePower] = r.Power
		}
		memory := r.HBM
		if memory[1] == 0 {
			memory = r.Memory
		}
		if memory[1] > 0 {
			gauges[device.GaugeMemoryUsed], gauges[device.GaugeMemoryTotal] = float64(memory[0]), float64(memory[1])
		}
		samples[r.Key] = Sample{Gauges: gauges, Processes: r.Processes}
	}
	return samples
}

// Tool is the Library that asks npu-smi.
type Tool struct {
	Path string // empty: looked for at the usual places

	mu struct {
		sync.Mutex
		table Table
		at    time.Time
	}
}

var _ Library = (*Tool)(nil)

// Source names the tool.
func (*Tool) Source() string { return "npu-smi" }

// Open finds the tool and lets it list the chips once.
func (t *Tool) Open() *structs.Reason {
	if _, err := t.ask(0); err != nil {
		return structs.NewReason("device.ascend_no_tool", "cause", err)
	}
	return nil
}

// ask returns an output that is not older than fresh.
func (t *Tool) ask(fresh time.Duration) (Table, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.mu.at) < fresh {
		return t.mu.table, nil
	}
	text, err := smi(t.Path, smiLimit).Run(context.Background(), "info")
	if err != nil {
		return Table{}, err
	}
	table, err := ParseSMI(text)
	if err != nil {
		return Table{}, err
	}
	t.mu.table, t.mu.at = table, time.Now()
	return table, nil
}

// Read lists the chips.
func (t *Tool) Read() (Facts, error) {
	table, err := t.ask(smiFresh)
	if err != nil {
		return Facts{}, err
	}
	return table.facts(), nil
}

// Glance is Read: the tool has no quicker way.
func (t *Tool) Glance() ([]Glance, error) {
	table, err := t.ask(smiFresh)
	if err != nil {
		return nil, err
	}
	var all []Glance
	for _, r := range table.Chips {
		g := Glance{Key: r.Key, Level: levelOf(r.Health)}
		if g.Level == levelUnknown {
			g.Err = "its health is " + r.Health
		}
		all = append(all, g)
	}
	return all, nil
}

// Sample measures the chips.
func (t *Tool) Sample() (map[Key]Sample, error) {
	table, err := t.ask(smiFresh / 2)
	if err != nil {
		return nil, err
	}
	return table.samples(), nil
}

// Close does nothing.
func (*Tool) Close() {}

// smi is the vendor's own tool. It asks before a reset whether that is meant.
func smi(path string, limit time.Duration) *runtime.Tool {
	return &runtime.Tool{
		Name: "npu-smi", Path: path, Limit: limit, Stdin: "Y\n",
		Usual: []string{"/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi", "/usr/bin/npu-smi", "/usr/sbin/npu-smi"},
		Env:   []string{"LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver:/usr/local/dcmi"},
	}
}

// smiReset resets with the vendor's own tool, in band.
func smiReset(path string) func(context.Context, Key) error {
	return func(ctx context.Context, key Key) error {
		output, err := smi(path, resetLimit).Run(ctx, "set", "-t", "reset", "-i", strconv.Itoa(key.Card), "-c", strconv.Itoa(key.Chip), "-m", "1")
		if err == nil && strings.Contains(strings.ToLower(output), "fail") {
			err = errors.New(strings.TrimSpace(output[:min(len(output), 300)]))
		}
		return err
	}
}
