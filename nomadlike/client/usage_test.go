package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/run"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// fakeMachine keeps one core and a half busy.
func fakeMachine(began time.Time) func(*Config) {
	return func(c *Config) {
		c.Load = func() fingerprint.Load {
			return fingerprint.Load{CPUSeconds: 100 + 1.5*time.Since(began).Seconds(), MemoryUsed: 3 << 30, MemoryTotal: 8 << 30}
		}
	}
}

func TestUsageOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		w.cores = 0.5
		cards := device.NewFake(device.FakeDevices("fake/card", 2)...)
		cards.SetProcesses("FAKE-0001", device.Process{PID: 7, Name: "train", Memory: 1 << 30})
		n, _ := c.node(t, t.TempDir(), "n1", w.driver(), fakeMachine(time.Now()),
			func(c *Config) { c.DevicePlugins = map[string]device.Plugin{"fake": cards} })
		a := gang("j", 1, "sleep 100", "n1")[0]
		c.assign(a)
		settle()
		first := usageOf(t, n)
		if first.CPUCores != 0 || len(first.Tasks) != 1 || first.Tasks[0].CPUCores != 0 {
			t.Errorf("rates without a measurement before: %+v", first)
		}
		pass(time.Second / 2)
		if again := usageOf(t, n); again.At != first.At {
			t.Error("who asks soon after another gets a measurement of his own")
		}
		pass(10 * time.Second)
		figures := usageOf(t, n)
		task := figures.Tasks[0]
		if !near(figures.CPUCores, 1.5) || !near(task.CPUCores, 0.5) || task.AllocID != a.Alloc.ID || task.Memory != 7<<20 || task.Processes != 3 {
			t.Errorf("measured %+v", figures)
		}
		if figures.MemoryUsed != 3<<30 || figures.MemoryTotal != 8<<30 {
			t.Errorf("memory of the machine %d of %d", figures.MemoryUsed, figures.MemoryTotal)
		}
		want := []structs.DeviceUsage{
			{ID: "FAKE-0000", Gauges: map[string]float64{device.GaugeUtilization: 0.5, device.GaugeMemoryTotal: 80 << 30}},
			{
				ID: "FAKE-0001", Gauges: map[string]float64{device.GaugeUtilization: 0.5, device.GaugeMemoryTotal: 80 << 30},
				Processes: []structs.DeviceProcess{{PID: 7, Name: "train", Memory: 1 << 30}},
			},
		}
		for i := range figures.Devices {
			if figures.Devices[i].At == 0 {
				t.Error("a measurement without its time")
			}
			figures.Devices[i].At = 0
		}
		if diff := cmp.Diff(want, figures.Devices); diff != "" {
			t.Errorf("devices (-want +got):\n%s", diff)
		}
		w.exit(a.Alloc.ID, 0)
		pass(2 * time.Minute)
		if late := usageOf(t, n); len(late.Tasks) != 0 || late.CPUCores != 0 {
			t.Errorf("after the job, and long after the last measurement: %+v", late)
		}
	})
}

func usageOf(t *testing.T, n *Client) structs.NodeUsage {
	t.Helper()
	figures, err := n.usage.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return *figures
}

func near(got, want float64) bool { return got > want*0.95 && got < want*1.05 }

func TestOperatorTreatsDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		cards := device.NewFake(device.FakeDevices("fake/card", 2)...)
		n, _ := c.node(t, t.TempDir(), "n1", w.driver(), func(c *Config) {
			c.DevicePlugins = map[string]device.Plugin{"fake": cards}
			c.Devices = []structs.Device{{ID: "declared-0", Kind: "acme/npu", Healthy: true}}
		})
		settle()
		treat := func(id string, act structs.DeviceAct) error {
			return n.devices.Treat(t.Context(), &structs.DeviceTreat{Device: id, Act: act, By: "ops"})
		}
		healthy := func(id string) bool {
			d, _ := n.devices.Find(id)
			return d.Healthy
		}
		for _, act := range []structs.DeviceAct{structs.DeviceClear, structs.DeviceReset} {
			cards.Fault("FAKE-0001", "burnt", device.ActService)
			settle()
			if healthy("FAKE-0001") {
				t.Fatal("the fault is not seen")
			}
			if err := treat("FAKE-0001", act); err != nil {
				t.Fatalf("%s: %v", act, err)
			}
			settle()
			if !healthy("FAKE-0001") {
				t.Errorf("not healthy after %s", act)
			}
		}
		a := gang("j", 1, "sleep 100", "n1")[0]
		a.Alloc.Devices = []string{"FAKE-0000"}
		c.assign(a)
		settle()
		wantError(t, treat("FAKE-0000", structs.DeviceReset), "client.device_in_use")
		wantError(t, treat("FAKE-0009", structs.DeviceClear), "client.device_gone")
		wantError(t, treat("declared-0", structs.DeviceClear), "client.device_untreatable")
		wantError(t, treat("FAKE-0000", "kick"), "client.device_act")
	})
}

// A device that an operator took out of use stays so over a restart of the
// agent, whatever its plugin says, until he clears it.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for life := range 2 {
			c, w := newControl(), newFakeRuntime()
			cards := device.NewFake(device.FakeDevices("fake/card", 2)...)
			n, stop := c.node(t, dir, "n1", w.driver(), func(c *Config) {
				c.DevicePlugins = map[string]device.Plugin{"fake": cards}
				c.Devices = []structs.Device{{ID: "declared-0", Kind: "acme/npu", Healthy: true}}
			})
			settle()
			treat := func(id string, act structs.DeviceAct) {
				t.Helper()
				if err := n.devices.Treat(t.Context(), &structs.DeviceTreat{Device: id, Act: act, By: "ops", Reason: "bad cable"}); err != nil {
					t.Fatalf("%s %s: %v", act, id, err)
				}
				settle()
			}
			if life == 0 {
				treat("FAKE-0001", structs.DeviceQuarantine)
				treat("declared-0", structs.DeviceQuarantine)
			}
			sick := map[string]bool{}
			for _, d := range n.Node().Devices {
				if sick[d.ID] = !d.Healthy; !d.Healthy && (d.Health.ID != "client.device_quarantined_for" || d.Health.Params["reason"] != "bad cable" || device.ActionOf(&d) != device.ActCordon) {
					t.Errorf("registered is %+v %+v", d, d.Health)
				}
			}
			if diff := cmp.Diff(map[string]bool{"FAKE-0000": false, "FAKE-0001": true, "declared-0": true}, sick); diff != "" {
				t.Errorf("life %d: not healthy (-want +got):\n%s", life, diff)
			}
			if life == 1 {
				cards.Fault("FAKE-0001", "burnt", device.ActService)
				settle()
				if d, _ := n.devices.Find("FAKE-0001"); device.ActionOf(&d) != device.ActService {
					t.Errorf("its own fault, which is worse, is hidden: %+v", d)
				}
				treat("FAKE-0001", structs.DeviceClear)
				treat("declared-0", structs.DeviceClear)
				for _, d := range n.Node().Devices {
					if !d.Healthy || d.Health != nil || d.Attrs[device.AttrFault] != "" {
						t.Errorf("after it was cleared: %+v", d)
					}
				}
			}
			stop()
		}
	})
}

// A node keeps what it measured, also over a restart of its agent.
func TestHistoryOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, began := t.TempDir(), time.Now()
		live := func(work func(n *Client, cards *device.Fake)) {
			c, w := newControl(), newFakeRuntime()
			cards := device.NewFake(device.FakeDevices("fake/card", 2)...)
			n, stop := c.node(t, dir, "n1", w.driver(), fakeMachine(began), func(c *Config) {
				c.DevicePlugins = map[string]device.Plugin{"fake": cards}
			})
			settle()
			work(n, cards)
			stop()
		}
		live(func(_ *Client, cards *device.Fake) {
			pass(3 * time.Minute)
			cards.Fault("FAKE-0001", "burnt", device.ActService)
			pass(3 * time.Minute)
		})
		live(func(n *Client, _ *device.Fake) {
			pass(2 * time.Minute)
			past, err := n.usage.History(&structs.HistoryRequest{Since: structs.At(began), Points: 3})
			if err != nil || len(past.Devices) != 2 || past.Count < 2 {
				t.Fatalf("past %+v, %v", past, err)
			}
			for _, one := range past.Devices {
				for _, series := range one.Series {
					first, later := *series.Values[0], *series.Values[1]
					want := map[string][2]float64{structs.GaugeHealthy: {1, 0}, device.GaugeUtilization: {0.5, 0.5}}[series.Gauge]
					if one.ID == "FAKE-0000" {
						want[1] = want[0]
					}
					if first != want[0] || later != want[1] {
						t.Errorf("%s %s: %v, then %v", one.ID, series.Gauge, first, later)
					}
				}
			}
			if cores := past.Machine[1]; cores.Gauge != structs.GaugeCores || !near(*cores.Values[0], 1.5) {
				t.Errorf("of the machine %+v", cores)
			}
			_, err = n.usage.History(&structs.HistoryRequest{})
			wantError(t, err, "client.past_request")
		})
	})
}

// A node keeps what each rank used, over a restart of its agent and after the
// rank's end, until the rank's directory is swept.
func TestHistoryOfARank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, w, began := t.TempDir(), newFakeRuntime(), time.Now()
		w.cores = 0.5
		a := gang("j", 1, "sleep 100", "n1")[0]
		a.Alloc.Devices = []string{"FAKE-0000", "FAKE-0001"}
		life := func(work func(c *control, n *Client)) {
			c := newControl()
			c.assign(a) // before the node hears anything: what is not assigned is killed
			cards := device.NewFake(device.FakeDevices("fake/card", 3)...)
			n, stop := c.node(t, dir, "n1", w.driver(), fakeMachine(began), func(c *Config) {
				c.DevicePlugins = map[string]device.Plugin{"fake": cards}
				c.Keep = run.Retention{Age: time.Hour}
			})
			settle()
			work(c, n)
			stop()
		}
		read := func(n *Client) map[string][]*float64 {
			t.Helper()
			past, err := n.usage.RankHistory(&structs.RankHistoryRequest{
				AllocIDs: []string{a.Alloc.ID, "../" + a.Alloc.ID, "unknown"}, From: structs.At(began), Step: structs.Duration(time.Minute), Count: 9,
			})
			if err != nil || len(past.Ranks) > 1 {
				t.Fatalf("past %+v, %v", past, err)
			}
			found := map[string][]*float64{}
			for _, rank := range past.Ranks {
				for _, series := range rank.Series {
					found[series.Gauge] = series.Values
				}
			}
			return found
		}
		wholeMinutes := func(found map[string][]*float64, want int) {
			t.Helper()
			for gauge, value := range map[string]float64{
				structs.GaugeCores: 0.5, structs.GaugeProcesses: 3, device.GaugeMemoryUsed: 7 << 20,
				structs.GaugeCardUse: 0.5, structs.GaugeCardMemoryTotal: 160 << 30,
			} {
				for i := range want {
					if values := found[gauge]; len(values) != 9 || values[i] == nil || !near(*values[i], value) {
						t.Errorf("%s in minute %d: %v", gauge, i, values)
					}
				}
			}
			if left := found[structs.GaugeCores][want+2]; left != nil {
				t.Errorf("in minute %d, when nothing ran: %v", want+2, *left)
			}
		}
		life(func(_ *control, n *Client) {
			pass(3 * time.Minute)
			wholeMinutes(read(n), 3)
		})
		life(func(c *control, n *Client) {
			pass(3 * time.Minute)
			wholeMinutes(read(n), 5)
			w.exit(a.Alloc.ID, 0)
			pass(2 * time.Minute)
			wholeMinutes(read(n), 5)
			_, err := n.usage.RankHistory(&structs.RankHistoryRequest{AllocIDs: []string{a.Alloc.ID}, Step: structs.Duration(time.Millisecond), Count: 1})
			wantError(t, err, "client.past_request")
			_, err = n.usage.RankHistory(&structs.RankHistoryRequest{AllocIDs: make([]string, 100), Step: structs.Duration(time.Minute), Count: structs.HistoryPointsMax})
			wantError(t, err, "client.past_request")
			pass(2 * time.Hour)
			if left := read(n); len(left) != 0 {
				t.Errorf("after its directory was swept: %v", left)
			}
		})
	})
}
