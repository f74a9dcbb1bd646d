package amd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/runtime"
)

// Row is one card of rocm-smi's JSON.
type Row struct {
	Number int // of "card3"
	Texts  map[string]string
}

// ParseROCm reads `rocm-smi --json`: an object for each card, and one of the
// system. It may stand behind warnings. An output without a card is an error.
func ParseROCm(text string) (rows []Row, driver string, err error) {
	begin := max(strings.Index(text, "{"), 0)
	var file map[string]map[string]any
	if err := json.NewDecoder(strings.NewReader(text[begin:])).Decode(&file); err != nil {
		return nil, "", fmt.Errorf("read output of rocm-smi: %w", err)
	}
	for name, values := range file {
		texts := make(map[string]string, len(values))
		for key, value := range values {
			texts[strings.ToLower(key)] = fmt.Sprint(value) // versions differ in capitals
		}
		digits, is := strings.CutPrefix(name, "card")
		number, numberErr := strconv.ParseUint(digits, 10, 16)
		switch {
		case name == "system":
			driver = texts["driver version"]
		case is && numberErr == nil && len(rows) < runtime.UnitsMax:
			rows = append(rows, Row{Number: int(number), Texts: texts})
		}
	}
	if len(rows) == 0 {
		return nil, "", errors.New("read output of rocm-smi: it lists no cards")
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Number, b.Number) })
	return rows, driver, nil
}

// bus is the card's address; "": rocm-smi does not say.
func (r *Row) bus() string {
	if bus := pcie.Normal(r.Texts["pci bus"]); pcie.Valid(bus) {
		return bus
	}
	return ""
}

// number reads a figure; false: there is none.
func (r *Row) number(keys ...string) (float64, bool) {
	for _, key := range keys {
		if n, err := strconv.ParseFloat(r.Texts[key], 64); err == nil && n >= 0 && n < 1<<50 {
			return n, true
		}
	}
	return 0, false
}

// card turns a row into a card.
func (r *Row) card(place int) card.Card {
	c := card.Card{Index: place, Bus: r.bus(), Name: cmp.Or(r.Texts["card series"], r.Texts["device name"], r.Texts["card model"])}
	if unique, err := strconv.ParseUint(strings.TrimPrefix(r.Texts["unique id"], "0x"), 16, 64); err == nil {
		c.ID = uniqueID(unique)
	}
	if total, ok := r.number("vram total memory (b)"); ok {
		c.Memory = uint64(total)
	}
	return c
}

// gauges turns a row into a measurement.
func (r *Row) gauges() map[string]float64 {
	gauges := make(map[string]float64)
	set := func(gauge string, factor float64, keys ...string) {
		if n, ok := r.number(keys...); ok {
			gauges[gauge] = n * factor
		}
	}
	set(device.GaugeUtilization, 0.01, "gpu use (%)")
	set(device.GaugeTemperature, 1, "temperature (sensor junction) (c)", "temperature (sensor edge) (c)")
	set(device.GaugeMemoryTemperature, 1, "temperature (sensor memory) (c)")
	set(device.GaugeMemoryUsed, 1, "vram total used memory (b)")
	set(device.GaugeMemoryTotal, 1, "vram total memory (b)")
	return gauges
}

// Tool is the Library that asks rocm-smi.
type Tool struct {
	Machine
	Tool *runtime.Tool
}

var _ card.Library = (*Tool)(nil)

// Source names the tool.
func (*Tool) Source() string { return "rocm-smi" }

// Open lets the tool list the cards once.
func (t *Tool) Open() *structs.Reason {
	if _, _, err := t.ask(); err != nil {
		return Vendor().NoTool(err)
	}
	return nil
}

func (t *Tool) ask() ([]Row, string, error) {
	text, err := t.Tool.Run(context.Background(), "--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram", "--showuse", "--showtemp", "--showdriverversion", "--json")
	if err != nil {
		return nil, "", err
	}
	return ParseROCm(text)
}

// read lists the cards, and what the tool says of each, by address.
func (t *Tool) read() (card.Facts, map[string]map[string]float64, error) {
	rows, driver, err := t.ask()
	facts, by := card.Facts{Driver: driver}, make(map[string]map[string]float64, len(rows))
	for i := range rows {
		facts.Cards = append(facts.Cards, rows[i].card(i))
		by[rows[i].bus()] = rows[i].gauges()
	}
	t.Complete(&facts)
	return facts, by, err
}

// Read lists the cards.
func (t *Tool) Read() (card.Facts, error) {
	facts, _, err := t.read()
	return facts, err
}

// Sample measures the cards.
func (t *Tool) Sample() (map[int]card.Sample, error) {
	facts, by, err := t.read()
	return t.Measure(&facts, func(bus string) map[string]float64 { return by[bus] }), err
}

// Close does nothing.
func (*Tool) Close() {}
