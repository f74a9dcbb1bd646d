package cambricon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/runtime"
)

// Limits of cnmon's output.
const (
	cnmonFile     = "cnmon_info.json" // which it writes where it runs
	cnmonBytesMax = 4 << 20
)

// Row is one card of `cnmon info -j`, as far as the plugin reads it. Cnmon writes
// numbers as numbers or as texts, some with a unit behind.
type Row struct {
	CardNum          word
	ProductName      string
	UUID             string
	PCI              struct{ DomainID, Bus, Device, Function word }
	PhysicalMemUsage struct{ Total, Used word } // MiB
	Temperature      struct{ Chip, Board word }
	Utilization      struct{ MLUAverage word } // percent
}

// word is a number or a text of a JSON document.
type word string

// UnmarshalJSON takes both.
func (w *word) UnmarshalJSON(text []byte) error {
	*w = word(strings.TrimSpace(strings.Trim(string(text), `"`)))
	return nil
}

// number reads what the word begins with; false: that is no number.
func (w word) number() (float64, bool) {
	first, _, _ := strings.Cut(string(w), " ")
	n, err := strconv.ParseFloat(strings.TrimRight(first, "%"), 64)
	return n, err == nil && n >= 0 && n < 1<<40
}

// ParseCnmon reads what `cnmon info -j` has written; one without a card is an
// error.
func ParseCnmon(text []byte) ([]Row, error) {
	var file struct{ CnmonInfo []Row }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read output of cnmon: %w", err)
	}
	if len(file.CnmonInfo) == 0 || len(file.CnmonInfo) > runtime.UnitsMax {
		return nil, errors.New("read output of cnmon: it lists no cards")
	}
	return file.CnmonInfo, nil
}

// card turns a row into a card, place is its place in the output.
func (r *Row) card(place int) card.Card {
	c := card.Card{Index: place, Name: r.ProductName, ID: cardID(r.UUID)}
	if n, ok := r.CardNum.number(); ok {
		c.Index = int(n)
	}
	c.Minor = c.Index
	if total, ok := r.PhysicalMemUsage.Total.number(); ok {
		c.Memory = uint64(total) << 20
	}
	if bus := pcie.Normal(fmt.Sprintf("%s:%s:%s.%s", r.PCI.DomainID, r.PCI.Bus, r.PCI.Device, r.PCI.Function)); pcie.Valid(bus) {
		c.Bus = bus
	}
	return c
}

// sample turns a row into a measurement.
func (r *Row) sample() card.Sample {
	gauges := make(map[string]float64)
	set := func(key string, w word, factor float64) {
		if n, ok := w.number(); ok {
			gauges[key] = n * factor
		}
	}
	set(device.GaugeUtilization, r.Utilization.MLUAverage, 0.01)
	set(device.GaugeTemperature, r.Temperature.Board, 1)
	set(device.GaugeTemperature, r.Temperature.Chip, 1)
	set(device.GaugeMemoryUsed, r.PhysicalMemUsage.Used, 1<<20)
	set(device.GaugeMemoryTotal, r.PhysicalMemUsage.Total, 1<<20)
	return card.Sample{Gauges: gauges}
}

// cardID is how a card is named by the UUID that the vendor gives it.
func cardID(uuid string) string {
	if uuid = strings.TrimSpace(uuid); uuid == "" || strings.HasPrefix(uuid, "MLU-") {
		return uuid
	}
	return "MLU-" + uuid
}

// Tool is the Library that asks cnmon.
type Tool struct{ Tool *runtime.Tool }

var _ card.Library = (*Tool)(nil)

// Source names the tool.
func (*Tool) Source() string { return "cnmon" }

// Open lets the tool list the cards once.
func (t *Tool) Open() *structs.Reason {
	if _, err := t.ask(); err != nil {
		return Vendor().NoTool(err)
	}
	return nil
}

// ask runs the tool in a directory of its own, for the file that it writes.
func (t *Tool) ask() ([]Row, error) {
	dir, err := os.MkdirTemp("", "cnmon")
	if err != nil {
		return nil, fmt.Errorf("run cnmon: %w", err)
	}
	defer os.RemoveAll(dir)
	tool := *t.Tool
	tool.Dir = dir
	if _, err := tool.Run(context.Background(), "info", "-j"); err != nil {
		return nil, err
	}
	text, err := runtime.ReadFile(filepath.Join(dir, cnmonFile), cnmonBytesMax)
	if err != nil {
		return nil, fmt.Errorf("read output of cnmon: %w", err)
	}
	return ParseCnmon(text)
}

// Read lists the cards.
func (t *Tool) Read() (card.Facts, error) {
	rows, err := t.ask()
	if err != nil {
		return card.Facts{}, err
	}
	var facts card.Facts
	for i := range rows {
		facts.Cards = append(facts.Cards, rows[i].card(i))
	}
	return facts, nil
}

// Sample measures the cards.
func (t *Tool) Sample() (map[int]card.Sample, error) {
	rows, err := t.ask()
	if err != nil {
		return nil, err
	}
	samples := make(map[int]card.Sample, len(rows))
	for i := range rows {
		samples[rows[i].card(i).Index] = rows[i].sample()
	}
	return samples, nil
}

// Close does nothing.
func (*Tool) Close() {}
