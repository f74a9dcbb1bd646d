package placement

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// TestTable shows the table of available resources for two specs, and what the
// queue wants of each model.
func TestTable(t *testing.T) {
	f := NewFloor()
	usage := func(i int, cards ...int) *structs.Usage {
		u := &structs.Usage{NodeID: fmt.Sprintf("id-%d", i), CPU: 8, Memory: 100 * structs.GiB, Allocs: 1, Devices: map[string]string{}}
		for _, card := range cards {
			u.Devices[fmt.Sprintf("GPU-%d-%d", i, card)] = "alloc"
		}
		return u
	}
	for i := range 4 {
		n := testNode(i, 4)
		n.Attributes = map[string]string{"os.pretty": "openEuler 22.03", "kernel.version": "5.10"}
		switch i {
		case 2:
			n.Devices[3].Healthy = false
		case 3: // two cards in two slices each
			for k := range n.Devices {
				d := &n.Devices[k]
				d.Kind, d.Model, d.Index, d.Attrs = "nvidia/gpu-shared", "A30", k/2, map[string]string{"slice": fmt.Sprint(k%2 + 1)}
			}
		}
		f.Put(n, nil)
	}
	f.Put(f.At(1), usage(1, 0, 2))
	f.Put(f.At(3), usage(3, 2))
	away := testNode(4, 8)
	away.Eligibility = structs.NodeCordoned
	f.Put(away, nil)

	job := testJob(2, 4)
	job.Resources = append(job.Resources, structs.Resources{CPU: 1, Memory: structs.GiB, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu-shared", Count: 2}}})
	first, second := NeedOf(job, 0), NeedOf(job, 1)
	placed, ok := f.Choose(&first, 1, Options{})
	if !ok {
		t.Fatal("no room for one rank")
	}
	f.Occupy(&first, placed)

	var b strings.Builder
	for row := range f.Table([]*Need{&first, &second}, func(string) string { return "digits" }) {
		fmt.Fprintf(&b, "%s %s %s, %s, kernel %s, driver %v: cpu %v/%v, memory %s/%s, specs %v, now %v\n", row.Name, row.Pool, row.State, row.OS,
			row.Kernel, row.Drivers, row.CPUUsed, row.CPU, structs.FormatSize(row.MemoryUsed), structs.FormatSize(row.Memory), row.Specs, row.Now)
		for _, k := range row.Kinds {
			fmt.Fprintf(&b, "  %s %s %d/%d, sick %d\n", k.Kind, k.Model, k.Used, k.Total, k.Sick)
		}
		fmt.Fprintf(&b, "  cards %v\n", row.Cards)
	}
	any := testJob(3, 0)
	any.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 2}}
	every := testJob(1, 0)
	every.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu-shared", Count: structs.DevicesAll, Model: "A30"}}
	last := testJob(2, 8)
	last.Resources[0].LastDevices, last.Resources[0].Devices[0].Model = 4, "A800"
	queue := func(yield func(*structs.Job, int) bool) {
		_ = yield(job, 1) && yield(any, 2) && yield(every, 1) && yield(last, 1) && yield(testJob(5, 0), 1)
	}
	for _, d := range f.Demands(queue) {
		fmt.Fprintf(&b, "%s %s: %d in all, %d ready, %d free; wanted %d by %d gangs, %d of them only\n", d.Kind, d.Model, d.Total, d.Ready, d.Free, d.Wanted, d.Gangs, d.Only)
	}
	golden.Assert(t, "testdata/table.txt", b.String())
}
