package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/ascend/dcmitest"
	"nomadlike/plugins/device"
	tasks "nomadlike/plugins/exec"
	"nomadlike/plugins/host"
	"nomadlike/plugins/nvidia"
	"nomadlike/plugins/nvidia/nvmltest"
)

// cards is a development agent on a machine with NVIDIA cards: the plugin is a
// program of its own and loads a library that does what the test says.
type cards struct {
	*nvmltest.Machine
	agent  *Agent
	client *api.Client
}

// maker makes such agents: the library and the plugin are built once.
type maker struct {
	library string
	program []string
}

func newMaker(t testing.TB) maker {
	t.Helper()
	return maker{library: nvmltest.Build(t), program: buildPlugin(t, nvidia.Name, "1")}
}

// setting is one more word of a plugin's configuration.
type setting struct {
	key   string
	value cty.Value
}

// shortDir is a directory for sockets, whose paths are short.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "nlc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // tasks have users of their own, who pass through
		t.Fatal(err)
	}
	return dir
}

func (m maker) start(t testing.TB, count int, more ...setting) *cards {
	t.Helper()
	machine, dir := nvmltest.New(t, nvmltest.Cards(count)...), shortDir(t)
	kernel := filepath.Join(dir, "kmsg")
	if err := syscall.Mkfifo(kernel, 0o600); err != nil {
		t.Fatal(err)
	}
	smi := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(smi, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cards{Machine: machine}
	c.agent, c.client = deviceAgent(t, dir, nvidia.Name, m.program, machine.Env(), map[string]string{
		"library": m.library, "poll": "100ms", "root": filepath.Join(dir, "root"), "kernel_messages": kernel, "nvidia_smi": smi,
	}, more...)
	return c
}

// deviceAgent starts a development agent with a carried device plugin, which is
// built for the test, and returns a client that is logged in.
func deviceAgent(t testing.TB, dir, name string, program, env []string, words map[string]string, more ...setting) (*Agent, *api.Client) {
	t.Helper()
	plugin := config.PluginBlock{Name: name, Env: map[string]string{}}
	for _, entry := range env {
		variable, value, _ := strings.Cut(entry, "=")
		plugin.Env[variable] = value
	}
	values := map[string]cty.Value{}
	for key, value := range words {
		values[key] = cty.StringVal(value)
	}
	for _, one := range more {
		values[one.key] = one.value
	}
	plugin.Config = cty.ObjectVal(values)
	yes, data, options := true, filepath.Join(dir, "data"), testOptions(t)
	plugin.Enabled = &yes
	agent := startChanged(t, config.Settings{Dev: &yes, DataDir: &data, Plugins: []config.PluginBlock{plugin}}, options,
		func(config *config.Config) {
			config.Devices.Builtin = program
			config.Client.Exec.Isolation = tasks.IsolationRaw // the cards have no device nodes that could be shown
		})
	client := loggedIn(t, options)
	// A node registers without the devices of a plugin that takes long to come up.
	eventually.Within(t, time.Minute, "the node has its devices", func() bool {
		node, _, err := client.Node(t.Context(), agent.ID(), nil)
		return err == nil && len(node.Devices) > 0
	})
	return agent, client
}

// buildPlugin returns the command of a carried device plugin: none, when this test
// program carries it, else one that is built now.
func buildPlugin(t testing.TB, plugin, cgo string) []string {
	t.Helper()
	if host.Embedded(plugin) {
		return nil
	}
	name := "cards-plugin"
	if plugin == nvidia.Name {
		name = "nvidia-plugin"
	}
	program := filepath.Join(shortDir(t), name)
	build := exec.Command("go", "build", "-o", program, "../plugins/host/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "CGO_CFLAGS=-Wno-deprecated-declarations")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	return []string{program}
}

// node is what the servers know of the machine.
func (c *cards) node(t *testing.T) *api.NodeDetail {
	t.Helper()
	node, _, err := c.client.Node(t.Context(), c.agent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// await waits until the servers know a card as healthy, or not.
func (c *cards) await(t *testing.T, id string, healthy bool) structs.Device {
	t.Helper()
	var found structs.Device
	eventually.Within(t, time.Minute, fmt.Sprintf("card %s is healthy: %v", id, healthy), func() bool {
		devices := c.node(t).Devices
		i := slices.IndexFunc(devices, func(d structs.Device) bool { return d.ID == id })
		if i < 0 || devices[i].Healthy != healthy {
			return false
		}
		found = devices[i]
		return true
	})
	return found
}

// onCards is a job that says which cards it sees.
func onCards(name string, count int, command string) string {
	device := ""
	if count > 0 {
		device = fmt.Sprintf(`device "nvidia/gpu" { count = %d }`, count)
	}
	return fmt.Sprintf(`
job %q {
  resources {
    cpu    = 0.1
    memory = "16MiB"
    %s
  }
  stop_grace = "10s"
  task {
    driver  = "exec"
    command = %q
  }
}
`, name, device, command)
}

// What people do with jobs on cards, over the real library's door.
func TestCards(t *testing.T) {
	m := newMaker(t)
	t.Run("jobs get their own", m.jobsGetTheirOwnCards)
	t.Run("their jobs have series", m.jobsOnCardsHaveSeries)
	t.Run("Prometheus finds all that dashboards and alerts ask for", m.prometheusFindsAll)
	t.Run("parts of one are shared", m.partsOfCardsAreShared)
	t.Run("parts of one by MPS", m.partsByMPS)
	t.Run("instances of one", m.instancesOfCards)
	t.Run("an operator clears one", m.operatorClearsCard)
	t.Run("errors of its links are kept", m.linkErrorsAreKept)
	t.Run("a lost one moves its job", m.lostCardMovesItsJob)
	t.Run("one that was reset comes back", m.resetCardComesBack)
}

// A job gets its own cards, sees no others, and none without asking.
func (m maker) jobsGetTheirOwnCards(t *testing.T) {
	c := m.start(t, 4)
	node := c.node(t)
	if len(node.Devices) != 4 || node.Devices[3].Model == "" || node.Devices[3].Memory == 0 || node.Attributes["device.nvidia.state"] != "ready" {
		t.Fatalf("registered %+v %v", node.Devices, node.Attributes)
	}
	say := `sh -c 'echo $CUDA_VISIBLE_DEVICES; while test ! -e ../end; do sleep 0.05; done'`
	one := runJob(t, c.client, onCards("one", 2, say), structs.JobRunning)
	two := runJob(t, c.client, onCards("two", 2, say), structs.JobRunning)
	var seen []string
	for _, job := range []*api.JobDetail{one, two} {
		alloc := allocOf(t, c.client, job.Job.ID)
		var line string
		eventually.Within(t, time.Minute, "the job says its cards", func() bool {
			line = strings.TrimSpace(logsOf(t, c.client, alloc.ID, api.LogOptions{}))
			return line != ""
		})
		own := strings.Split(line, ",")
		if !slices.Equal(own, alloc.Devices) || len(own) != 2 {
			t.Errorf("job %s sees %q, was given %q", job.Job.Name, own, alloc.Devices)
		}
		seen = append(seen, own...)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"GPU-0000", "GPU-0001", "GPU-0002", "GPU-0003"}) {
		t.Errorf("both together see %q", seen)
	}
	none := runJob(t, c.client, onCards("without", 0, `sh -c 'echo "[$CUDA_VISIBLE_DEVICES]"'`), structs.JobSucceeded)
	if got := logsOf(t, c.client, allocOf(t, c.client, none.Job.ID).ID, api.LogOptions{}); got != "[]\n" {
		t.Errorf("a job without cards sees %q", got)
	}
	c.seen(t, two)
}

// seen checks what people are shown of the cards while a job is on two of them.
func (c *cards) seen(t *testing.T, job *api.JobDetail) {
	t.Helper()
	alloc := allocOf(t, c.client, job.Job.ID)
	var node *api.NodeDevices
	eventually.Within(t, time.Minute, "cards are measured", func() bool {
		var err error
		if node, err = c.client.NodeDevices(t.Context(), c.agent.ID()); err != nil {
			t.Fatal(err)
		}
		return node.Measured && len(node.Devices) == 4 && node.Devices[3].Gauges["temperature_celsius"] == 41
	})
	if node.MemoryBusy == 0 || node.CPUHeld == 0 {
		t.Errorf("of the node itself is known %+v", node)
	}
	for _, d := range node.Devices {
		given := slices.Contains(alloc.Devices, d.ID)
		if !d.Used || given != (d.Owner != nil && d.Owner.Job == job.Job.Name) || given && d.Owner.AllocID != alloc.ID || !d.Healthy || d.Action != "" {
			t.Errorf("card %s: used %v, owner %+v, given to the job %v, asks for %q", d.ID, d.Used, d.Owner, given, d.Action)
		}
	}
	list, err := c.client.Devices(t.Context(), api.DeviceFilter{Node: node.Name}, nil)
	if err != nil || len(list.Nodes) != 1 || len(list.Nodes[0].Devices) != 4 || !list.Nodes[0].Measured {
		t.Errorf("list %+v %v", list, err)
	}
	if list, err = c.client.Devices(t.Context(), api.DeviceFilter{Pool: "elsewhere"}, nil); err != nil || len(list.Nodes) != 0 {
		t.Errorf("list of another pool %+v %v", list, err)
	}
}

// A card that falls off the bus takes its job with it, not the node: the job
// is signalled, told which card and why, and comes back on others.
func (m maker) lostCardMovesItsJob(t *testing.T) {
	c := m.start(t, 4)
	job := runJob(t, c.client, onCards("train", 2, `sh -c 'trap "echo saved; exit 0" TERM; echo $CUDA_VISIBLE_DEVICES; while :; do sleep 0.02; done'`), structs.JobRunning)
	first := allocOf(t, c.client, job.Job.ID)
	eventually.Within(t, time.Minute, "the job runs", func() bool {
		return strings.HasPrefix(logsOf(t, c.client, first.ID, api.LogOptions{}), "GPU-")
	})
	lost := first.Devices[1]
	begin := time.Now()
	c.Happen(lost + " xid=79")
	eventually.Within(t, time.Minute, "the attempt is signalled", func() bool {
		return strings.HasSuffix(logsOf(t, c.client, first.ID, api.LogOptions{}), "saved\n")
	})
	t.Logf("signalled %s after the fault", time.Since(begin))
	if sick := c.await(t, lost, false); sick.Health == nil {
		t.Errorf("nothing says what is wrong: %+v", sick)
	}
	var again structs.Allocation
	eventually.Within(t, time.Minute, "a second attempt runs", func() bool {
		again = allocOf(t, c.client, job.Job.ID)
		return again.Attempt == 2 && again.Status == structs.AllocRunning
	})
	if slices.Contains(again.Devices, lost) || len(again.Devices) != 2 {
		t.Errorf("the second attempt is on %q, %s is lost", again.Devices, lost)
	}
	list, _, err := c.client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := list.Allocations[slices.IndexFunc(list.Allocations, func(a structs.Allocation) bool { return a.ID == first.ID })]
	if ended.Cause == nil || !ended.Infra {
		t.Fatalf("the first attempt ended by %+v, infra %v", ended.Cause, ended.Infra)
	}
	told := messages.Text(messages.English, ended.Cause.ID, ended.Cause.Params)
	t.Log(told)
	if !strings.Contains(told, "79") || !strings.Contains(told, "card") {
		t.Errorf("people are told %q", told)
	}
	found, _, err := c.client.Job(t.Context(), job.Job.ID, nil)
	if err != nil || found.State != structs.JobRunning {
		t.Errorf("job %+v %v", found, err)
	}
}

// A card that asks for a reset gets it once it is empty, and new work then.
func (m maker) resetCardComesBack(t *testing.T) {
	c := m.start(t, 1)
	job := runJob(t, c.client, onCards("only", 1, `sleep 1000`), structs.JobRunning)
	c.await(t, "GPU-0000", true)
	c.Happen("GPU-0000 xid=95")
	eventually.Within(t, time.Minute, "the job runs again on the card that was reset", func() bool {
		alloc := allocOf(t, c.client, job.Job.ID)
		return alloc.Attempt >= 2 && alloc.Status == structs.AllocRunning
	})
	c.await(t, "GPU-0000", true)
}

// A job gets its own NPUs, and leaves one whose health is critical.
func TestChips(t *testing.T) {
	library, machine, dir := dcmitest.Build(t), dcmitest.New(t, dcmitest.Chips(4)...), shortDir(t)
	agent, client := deviceAgent(t, dir, ascend.Name, buildPlugin(t, ascend.Name, "0"), machine.Env(), map[string]string{
		"library": library, "poll": "200ms", "glance": "50ms", "root": filepath.Join(dir, "root"), "npu_smi": "/nonexistent",
	})
	file := strings.Replace(onCards("npus", 2, `sh -c 'echo $ASCEND_RT_VISIBLE_DEVICES; while :; do sleep 0.05; done'`), "nvidia/gpu", "huawei/npu", 1)
	job := runJob(t, client, file, structs.JobRunning)
	first := allocOf(t, client, job.Job.ID)
	numbers := func(alloc structs.Allocation) (list string) {
		node, _, err := client.Node(t.Context(), agent.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range node.Devices {
			if slices.Contains(alloc.Devices, d.ID) {
				list += "," + strconv.Itoa(d.Index)
			}
		}
		return strings.TrimPrefix(list, ",")
	}
	eventually.Within(t, time.Minute, "the job says its chips", func() bool {
		return logsOf(t, client, first.ID, api.LogOptions{}) == numbers(first)+"\n"
	})
	sick, _, _ := strings.Cut(numbers(first), ",")
	machine.Change("chip card="+sick+" ", "health=0", "health=3")
	var second structs.Allocation
	eventually.Within(t, time.Minute, "a second attempt runs", func() bool {
		second = allocOf(t, client, job.Job.ID)
		return second.Attempt == 2 && second.Status == structs.AllocRunning
	})
	if own := strings.Split(numbers(second), ","); slices.Contains(own, sick) || len(own) != 2 {
		t.Errorf("the second attempt is on chips %q, %s is sick", own, sick)
	}
}

// A MindSpore job on NPUs finds its rank table, with the addresses that the NPUs
// themselves have.
func TestRankTableOfChips(t *testing.T) {
	library, machine, dir := dcmitest.Build(t), dcmitest.New(t, dcmitest.Chips(4)...), shortDir(t)
	agent, client := deviceAgent(t, dir, ascend.Name, buildPlugin(t, ascend.Name, "0"), machine.Env(), map[string]string{
		"library": library, "poll": "200ms", "root": filepath.Join(dir, "root"), "npu_smi": "/nonexistent",
	})
	file := strings.Replace(onCards("mind", 2, `sh -c 'cat $RANK_TABLE_FILE'`), "nvidia/gpu", "huawei/npu", 1)
	file = strings.Replace(file, "stop_grace", "distributed \"mindspore\" {}\n  stop_grace", 1)
	job := runJob(t, client, file, structs.JobSucceeded)
	alloc := allocOf(t, client, job.Job.ID)
	node, _, err := client.Node(t.Context(), agent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Status      string
		ServerCount string `json:"server_count"`
		ServerList  []struct {
			ServerID string `json:"server_id"`
			Device   []struct {
				DeviceID string `json:"device_id"`
				DeviceIP string `json:"device_ip"`
				RankID   string `json:"rank_id"`
			}
		} `json:"server_list"`
	}
	text := logsOf(t, client, alloc.ID, api.LogOptions{})
	if err := json.Unmarshal([]byte(text), &table); err != nil || len(table.ServerList) != 1 || len(table.ServerList[0].Device) != 2 || table.Status != "completed" {
		t.Fatalf("rank table %s: %v", text, err)
	}
	for rank, d := range table.ServerList[0].Device {
		i := slices.IndexFunc(node.Devices, func(own structs.Device) bool { return strconv.Itoa(own.Index) == d.DeviceID })
		if i < 0 || !slices.Contains(alloc.Devices, node.Devices[i].ID) || d.DeviceIP == "" || d.DeviceIP != node.Devices[i].Attrs["device_ip"] || d.RankID != strconv.Itoa(rank) {
			t.Errorf("rank %d of the table is %+v, the job was given %q", rank, d, alloc.Devices)
		}
	}
	if table.ServerList[0].ServerID != node.Addr {
		t.Errorf("the server is %q, the node has %q", table.ServerList[0].ServerID, node.Addr)
	}
}

// A MindSpore job on chips of a super pod finds their numbers within it in its
// rank table.
func TestRankTableOfSuperPod(t *testing.T) {
	library, machine, dir := dcmitest.Build(t), dcmitest.New(t), shortDir(t)
	var lines []string
	for i, line := range dcmitest.Chips(4) {
		if strings.HasPrefix(line, "chip ") {
			line += fmt.Sprintf(" sdid=%d pod=7", 33554432+i)
		}
		lines = append(lines, line)
	}
	machine.Set(lines...)
	agent, client := deviceAgent(t, dir, ascend.Name, buildPlugin(t, ascend.Name, "0"), machine.Env(), map[string]string{
		"library": library, "poll": "200ms", "root": filepath.Join(dir, "root"), "npu_smi": "/nonexistent",
	})
	file := strings.Replace(onCards("mind", 4, `sh -c 'cat $RANK_TABLE_FILE'`), "nvidia/gpu", "huawei/npu", 1)
	file = strings.Replace(file, "stop_grace", "distributed \"mindspore\" {\n    rank_table = \"v1.2\"\n  }\n  stop_grace", 1)
	job := runJob(t, client, file, structs.JobSucceeded)
	node, _, err := client.Node(t.Context(), agent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{})
	golden.Assert(t, "testdata/superpod.json", strings.ReplaceAll(text, node.Addr, "NODE"))
}

// Devices that the configuration declares tell a task through its variables
// which are its own, and tell one without any that it has none.
func TestDeclaredDevices(t *testing.T) {
	yes, four, options := true, 4, testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Enabled: &yes, Devices: []config.DeviceBlock{{
		Kind: "acme/npu", Count: &four, Env: map[string]string{"ACME_VISIBLE_DEVICES": "{index}", "ACME_NAMES": "{id}"},
	}}}}, options)
	client := loggedIn(t, options)
	file := strings.Replace(onCards("declared", 2, `sh -c 'echo $ACME_VISIBLE_DEVICES $ACME_NAMES'`), "nvidia/gpu", "acme/npu", 1)
	job := runJob(t, client, file, structs.JobSucceeded)
	if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "0,1 acme-npu-0,acme-npu-1\n" {
		t.Errorf("a job with two devices sees %q", got)
	}
	job = runJob(t, client, onCards("without", 0, `sh -c 'echo "[$ACME_VISIBLE_DEVICES]" $(env | grep -c ACME_NAMES)'`), structs.JobSucceeded)
	if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "[] 0\n" {
		t.Errorf("a job without devices sees %q", got)
	}
}

// history checks what people are told of one card.
func (c *cards) history(t *testing.T, name string, want ...string) {
	t.Helper()
	list, err := c.client.DeviceEvents(t.Context(), c.agent.ID(), name)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Events {
		text := strings.TrimPrefix(e.ID, "event.node.device_")
		if e.Cause != nil {
			text += " " + e.Params["fault"]
			if told := messages.Text(messages.English, e.Cause.ID, e.Cause.Params); strings.HasPrefix(told, e.Cause.ID) || (e.Severity == "") != (e.ID == "event.node.device_noted") {
				t.Errorf("the cause of %+v reads %q", e, told)
			}
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("of %s is told %q, want %q", name, got, want)
	}
}

// past checks what is kept of two cards of which one was unhealthy.
func (c *cards) past(t *testing.T) {
	t.Helper()
	eventually.Within(t, time.Minute, "the node has written down what its cards measure", func() bool {
		past, err := c.client.NodeHistory(t.Context(), c.agent.ID(), api.HistoryFilter{Since: time.Hour, Points: 1})
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]float64{}
		for _, one := range past.Devices {
			for _, series := range one.Series {
				if value := series.Values[len(series.Values)-1]; value != nil {
					said[one.ID+" "+series.Gauge] = *value
				}
			}
		}
		return len(past.At) <= 2 && said["GPU-0001 temperature_celsius"] == 41 && said["GPU-0000 healthy"] == 1
	})
	one, err := c.client.NodeHistory(t.Context(), c.agent.ID(), api.HistoryFilter{Device: "1", Since: 6 * time.Hour})
	if err != nil || len(one.Devices) != 1 || one.Devices[0].ID != "GPU-0001" || one.Devices[0].Model == "" || one.Step.Std() != 2*time.Minute {
		t.Errorf("the past of one card is %+v, %v", one, err)
	}
	if _, err := c.client.NodeHistory(t.Context(), c.agent.ID(), api.HistoryFilter{Device: "7"}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("the past of a card that never was gives %v", err)
	}
	if _, err := c.client.NodeHistory(t.Context(), c.agent.ID(), api.HistoryFilter{Since: 25 * time.Hour}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("more than is kept gives %v", err)
	}
}

// Errors of NVLinks are in the history of their card, which goes on working.
func (m maker) linkErrorsAreKept(t *testing.T) {
	c := m.start(t, 2)
	c.await(t, "GPU-0001", true)
	c.Change("uuid=GPU-0001 ", "uuid=GPU-0001 nvreplay=4 nvrecover=2 ")
	var noted structs.Device
	eventually.Within(t, time.Minute, "errors of links stand beside the card", func() bool {
		noted = c.node(t).Devices[1]
		return noted.Attrs[device.AttrFault] == "nvlink-errors"
	})
	if !noted.Healthy || noted.Health.ID != "device.nvidia_nvlink_errors" || noted.Health.Params["errors"] != "7" || noted.Health.Params["recoveries"] != "2" {
		t.Errorf("registered %+v for %+v", noted, noted.Health)
	}
	c.history(t, "GPU-0000")
	c.history(t, "GPU-0001", "noted nvlink-errors")
	runJob(t, c.client, onCards("both", 2, "true"), structs.JobSucceeded)
	if _, err := c.client.TreatDevice(t.Context(), c.agent.ID(), api.DeviceTreatRequest{Device: "1", Act: structs.DeviceClear}); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "nothing is noted any more", func() bool { return c.node(t).Devices[1].Health == nil })
	c.history(t, "GPU-0001", "noted nvlink-errors", "clear", "well")
}

// An operator's word brings a card back that waits for a person, and is on
// record.
func (m maker) operatorClearsCard(t *testing.T) {
	c := m.start(t, 2, setting{"reset", cty.StringVal("never")}) // an unused card would be reset at once
	c.await(t, "GPU-0001", true)
	c.Happen("GPU-0001 xid=95")
	c.await(t, "GPU-0001", false)
	treated, err := c.client.TreatDevice(t.Context(), c.agent.ID(), api.DeviceTreatRequest{Device: "1", Act: structs.DeviceClear})
	if err != nil || treated.Device != "GPU-0001" {
		t.Fatalf("cleared %+v %v", treated, err)
	}
	c.await(t, "GPU-0001", true)
	c.history(t, "GPU-0001", "unwell xid-95", "clear", "well")
	c.history(t, "1", "unwell xid-95", "clear", "well")
	c.history(t, "GPU-0000")
	c.past(t)
	quarantine := api.DeviceTreatRequest{Device: "GPU-0000", Act: structs.DeviceQuarantine, Reason: "bad cable"}
	if _, err := c.client.TreatDevice(t.Context(), c.agent.ID(), quarantine); err != nil {
		t.Fatal(err)
	}
	if d := c.await(t, "GPU-0000", false); d.Health.Params["reason"] != "bad cable" || d.Health.Params["by"] == "" {
		t.Errorf("in quarantine for %+v", d.Health)
	}
	c.history(t, "0", "quarantine", "suspect quarantine")
	quarantine.Act, quarantine.Reason = structs.DeviceClear, ""
	if _, err := c.client.TreatDevice(t.Context(), c.agent.ID(), quarantine); err != nil {
		t.Fatal(err)
	}
	c.await(t, "GPU-0000", true)
	quarantine.Reason = "clearing needs none"
	_, err = c.client.TreatDevice(t.Context(), c.agent.ID(), quarantine)
	if structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a reason for what takes none gives %v", err)
	}
	if _, err := c.client.DeviceEvents(t.Context(), c.agent.ID(), "GPU-7"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("the history of a card that never was gives %v", err)
	}
	stream, err := c.client.Events(t.Context(), api.EventFilter{Index: 1, Topics: []string{"node"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.ID == "event.node.device_clear" {
			if event.Params["device"] != "GPU-0001" || event.By == "" || event.Index != treated.Index {
				t.Errorf("on record is %+v", event)
			}
			return
		}
	}
}
