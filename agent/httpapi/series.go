package httpapi

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Bounds of the series of one server.
const (
	seriesDevicesMax = 20_000
	seriesRanksMax   = 10_000
	seriesJobsMax    = 10_000
	// jobSeriesAfter is how long the series of a job that has ended go on, so
	// that its last state is scraped.
	jobSeriesAfter = 5 * time.Minute
)

// seriesCollector reports nodes, devices, jobs and ranks, by name: whoever
// reads metrics reads the whole cluster. Each node belongs to the server that
// hears it, so that a cluster has each series once: its own, those of its
// devices and those of the ranks on it. Nodes that nobody hears, and the jobs,
// belong to the leader.
type seriesCollector struct {
	store  *state.Store
	survey *survey
	leads  func() bool
	hears  func(nodeID string) bool
	now    clockFunc

	// kept are the last words about ranks, for as long as their jobs live.
	kept struct {
		sync.Mutex
		ranks map[rankKey]structs.TaskUsage
	}
}

// rankKey names a rank of a job through all its attempts.
type rankKey struct {
	jobID  string
	subjob int
	rank   int
}

// family is one family of series.
type family struct {
	name   string
	help   string
	labels string // names, apart by spaces
	kind   prometheus.ValueType
}

// Labels of series, apart by spaces.
const (
	nodeLabels   = "node node_id pool"
	deviceLabels = "node node_id pool device number model"
	jobLabels    = "job_id job_name project user"
	rankLabels   = "job_id job_name project user subjob rank"
)

// Families of nodes, jobs and ranks. Their names are promises; the reference
// page explains them, and a test holds them.
var (
	nodeUp       = family{"nomadlike_node_up", "1 while the node is ready.", nodeLabels, prometheus.GaugeValue}
	nodeFit      = family{"nomadlike_node_fit", "0 while a fault of the machine itself keeps new work away.", nodeLabels, prometheus.GaugeValue}
	nodeDisk     = family{"nomadlike_node_disk_free_bytes", "Space left where the node keeps its records and its tasks' files.", nodeLabels, prometheus.GaugeValue}
	nodeInodes   = family{"nomadlike_node_disk_free_inodes", "Inodes left there.", nodeLabels, prometheus.GaugeValue}
	nodeCPU      = family{"nomadlike_node_cpu_seconds_total", "Processor time spent by the whole machine since its boot.", nodeLabels, prometheus.CounterValue}
	nodeCores    = family{"nomadlike_node_cpu_cores", "Cores, offered to jobs or held by them.", nodeLabels + " kind", prometheus.GaugeValue}
	nodeMemory   = family{"nomadlike_node_memory_bytes", "Memory, offered to jobs, held by them, or used on the machine.", nodeLabels + " kind", prometheus.GaugeValue}
	deviceUp     = family{"nomadlike_device_healthy", "1 while the device may get new work.", deviceLabels, prometheus.GaugeValue}
	deviceUsed   = family{"nomadlike_device_used", "1 while a rank holds the device.", deviceLabels, prometheus.GaugeValue}
	jobState     = family{"nomadlike_job_state", "Subjobs of the job in each state.", jobLabels + " state", prometheus.GaugeValue}
	jobAttempts  = family{"nomadlike_job_attempts_total", "Attempts that the job has made, over all its subjobs.", jobLabels, prometheus.CounterValue}
	jobRestarts  = family{"nomadlike_job_restarts_total", "Failures that were charged to the job's restart budget.", jobLabels, prometheus.CounterValue}
	jobLosses    = family{"nomadlike_job_infra_losses_total", "Attempts that nodes, devices or preemption ended.", jobLabels, prometheus.CounterValue}
	rankState    = family{"nomadlike_rank_running", "1 while the rank's task runs on the node.", rankLabels + " node", prometheus.GaugeValue}
	rankCPU      = family{"nomadlike_rank_cpu_seconds_total", "Processor time of the rank's task; begins anew with an attempt.", rankLabels, prometheus.CounterValue}
	rankMemory   = family{"nomadlike_rank_memory_bytes", "Resident memory of the rank's task.", rankLabels, prometheus.GaugeValue}
	rankRestarts = family{"nomadlike_rank_restarts_total", "Attempts of the rank after its first.", rankLabels, prometheus.CounterValue}
	rankDevices  = family{"nomadlike_rank_devices", "Devices that the rank holds.", rankLabels, prometheus.GaugeValue}
	rankBusy     = family{"nomadlike_rank_device_utilization_ratio", "Mean time with work of the rank's devices, 0 to 1.", rankLabels, prometheus.GaugeValue}
	rankHeld     = family{"nomadlike_rank_device_memory_used_bytes", "Memory in use on the rank's devices.", rankLabels, prometheus.GaugeValue}
)

// deviceGauges are the figures of devices that become series, by the keys under
// which plugins report them.
func deviceGauges() []string {
	return []string{
		device.GaugeUtilization, device.GaugeMemoryUtilization, device.GaugeMemoryUsed, device.GaugeMemoryTotal, device.GaugePower,
		device.GaugePowerLimit, device.GaugeEnergy, device.GaugeTemperature, device.GaugeMemoryTemperature, device.GaugeFan,
		device.GaugeClockCompute, device.GaugeClockMemory, device.GaugeThrottled, device.GaugePCIeReceived, device.GaugePCIeSent,
		device.GaugePCIeReplays, device.GaugeNVLinkReceived, device.GaugeNVLinkSent, device.GaugeNVLinkUp, device.GaugeNVLinkErrors,
		device.GaugeNVLinkRecoveries,
		device.GaugeECCCorrected, device.GaugeECCUncorrected, device.GaugeRemappedCorrected, device.GaugeRemappedUncorrected,
		device.GaugeRemapPending, device.GaugeRemapFailed, device.GaugeRetiredPending, device.GaugeVectorUtilization,
		device.GaugeCPUUtilization, device.GaugeNetworkUp, device.GaugeHealth,
	}
}

// gaugeFamily is the family of a figure of devices. "_total" at the end of its
// key says that it only rises.
func gaugeFamily(gauge string) family {
	kind := prometheus.GaugeValue
	if strings.HasSuffix(gauge, "_total") {
		kind = prometheus.CounterValue
	}
	return family{"nomadlike_device_" + gauge, "A figure of the device; the reference explains each.", deviceLabels, kind}
}

// families lists every family of the collector.
func families() []family {
	all := []family{
		nodeUp, nodeFit, nodeDisk, nodeInodes, nodeCPU, nodeCores, nodeMemory, deviceUp, deviceUsed, jobState, jobAttempts, jobRestarts, jobLosses,
		rankState, rankCPU, rankMemory, rankRestarts, rankDevices, rankBusy, rankHeld,
	}
	for _, gauge := range deviceGauges() {
		all = append(all, gaugeFamily(gauge))
	}
	return all
}

func (f family) desc() *prometheus.Desc {
	return prometheus.NewDesc(f.name, f.help, strings.Fields(f.labels), nil)
}

// Describe implements prometheus.Collector.
func (c *seriesCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families() {
		to <- f.desc()
	}
}

// series writes values of families.
type series struct {
	to    chan<- prometheus.Metric
	descs map[string]*prometheus.Desc
}

func (s *series) put(f family, value float64, labels ...string) {
	for i := range labels { // what a node says of its devices is not trusted
		labels[i] = strings.ToValidUTF8(labels[i], "?")
	}
	s.to <- prometheus.MustNewConstMetric(s.descs[f.name], f.kind, value, labels...)
}

// Collect implements prometheus.Collector: it asks the server's own nodes what
// they measure now.
func (c *seriesCollector) Collect(to chan<- prometheus.Metric) {
	out := &series{to: to, descs: map[string]*prometheus.Desc{}}
	for _, f := range families() {
		out.descs[f.name] = f.desc()
	}
	snapshot, leads := c.store.Snapshot(), c.leads()
	own := map[string]*structs.Node{}
	var nodes []*structs.Node
	for node := range snapshot.Nodes() {
		if c.hears(node.ID) || leads && node.Status != structs.NodeReady {
			own[node.ID] = node
			nodes = append(nodes, node)
		}
	}
	found := c.survey.ask(context.Background(), nodes)
	devices := 0
	for _, node := range nodes {
		devices += len(node.Devices)
		c.node(out, snapshot, node, found[node.ID].usage, devices <= seriesDevicesMax)
	}
	c.jobs(out, snapshot, leads, own, found)
}

// node writes the series of a node and its devices.
func (c *seriesCollector) node(out *series, snapshot *state.Snapshot, node *structs.Node, usage *structs.NodeUsage, withDevices bool) {
	labels := []string{node.Name, node.ID, poolOf(node.Pool)}
	with := func(more ...string) []string { return append(labels[:3:3], more...) }
	out.put(nodeUp, truth(node.Status == structs.NodeReady), labels...)
	out.put(nodeFit, truth(node.Unfit() == nil), labels...)
	out.put(nodeCores, node.Capacity.CPU, with("offered")...)
	out.put(nodeMemory, float64(node.Capacity.Memory), with("offered")...)
	held := snapshot.Usage(node.ID)
	if held == nil {
		held = &structs.Usage{}
	}
	out.put(nodeCores, held.CPU, with("held")...)
	out.put(nodeMemory, float64(held.Memory), with("held")...)
	measured := map[string]map[string]float64{}
	if usage != nil {
		out.put(nodeCPU, usage.CPUSeconds, labels...)
		if usage.DiskFree != 0 || usage.InodesFree != 0 { // agents of earlier versions do not say
			out.put(nodeDisk, float64(usage.DiskFree), labels...)
			out.put(nodeInodes, float64(usage.InodesFree), labels...)
		}
		out.put(nodeMemory, float64(usage.MemoryUsed), with("used")...)
		for i := range usage.Devices {
			measured[usage.Devices[i].ID] = usage.Devices[i].Gauges
		}
	}
	if !withDevices {
		return
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		labels := with(d.ID, strconv.Itoa(d.Index), d.Model)
		out.put(deviceUp, truth(d.Healthy), labels...)
		out.put(deviceUsed, truth(held.Devices[d.ID] != ""), labels...)
		for _, gauge := range deviceGauges() {
			if value, ok := measured[d.ID][gauge]; ok {
				out.put(gaugeFamily(gauge), value, labels...)
			}
		}
	}
}

// jobs writes the series of the jobs that live, if this server leads, and those
// of their ranks on its own nodes.
func (c *seriesCollector) jobs(out *series, snapshot *state.Snapshot, leads bool, own map[string]*structs.Node, found map[string]surveyed) {
	c.kept.Lock()
	defer c.kept.Unlock()
	alive := map[rankKey]structs.TaskUsage{}
	count, now := 0, c.now()
	for view := range snapshot.Jobs() {
		// What only waits has no series of its own: it is in nomadlike_subjobs.
		over := view.Status.State.Terminal()
		if over && now.Sub(view.Status.FinishedAt.Time()) > jobSeriesAfter || view.Status.Attempt == 0 || count >= seriesJobsMax || len(alive) >= seriesRanksMax {
			continue
		}
		job := view.Job
		labels := []string{job.ID, job.Name, job.Project, job.User}
		attempts, restarts, losses := 0, 0, 0
		for subjob := range snapshot.Subjobs(job.ID) {
			attempts += int(subjob.Attempt)
			restarts += subjob.Restarts
			losses += subjob.InfraLosses
			if !over && subjob.Attempt > 0 {
				c.ranks(out, snapshot, job, subjob, own, found, alive)
			}
		}
		count++
		if !leads {
			continue
		}
		for _, one := range structs.JobStates() {
			out.put(jobState, float64(view.Status.Counts.Of(one)), append(labels[:4:4], string(one))...)
		}
		out.put(jobAttempts, float64(attempts), labels...)
		out.put(jobRestarts, float64(restarts), labels...)
		out.put(jobLosses, float64(losses), labels...)
	}
	c.kept.ranks = alive
}

// ranks writes the series of the ranks of the newest attempt of a subjob. What
// is not measured now, because its task ended or waits, stays as it was.
func (c *seriesCollector) ranks(out *series, snapshot *state.Snapshot, job *structs.Job, subjob *structs.Subjob,
	own map[string]*structs.Node, found map[string]surveyed, alive map[rankKey]structs.TaskUsage,
) {
	for alloc := range snapshot.Gang(job.ID, subjob.Index, subjob.Attempt) {
		if own[alloc.NodeID] == nil || len(alive) >= seriesRanksMax {
			continue
		}
		labels := []string{job.ID, job.Name, job.Project, job.User, strconv.Itoa(subjob.Index), strconv.Itoa(alloc.Rank)}
		key := rankKey{job.ID, subjob.Index, alloc.Rank}
		figures, known := taskFigures(found[alloc.NodeID].usage, alloc.ID)
		if !known {
			figures, known = c.kept.ranks[key], c.kept.ranks[key].AllocID != ""
		}
		alive[key] = figures
		out.put(rankState, truth(alloc.Status == structs.AllocRunning), append(labels[:6:6], alloc.NodeName)...)
		out.put(rankRestarts, float64(subjob.Attempt-1), labels...)
		if known {
			out.put(rankCPU, figures.CPUSeconds, labels...)
			out.put(rankMemory, float64(figures.Memory), labels...)
		}
		held := 0
		if alloc.OccupiesNode() {
			held = len(alloc.Devices)
		}
		out.put(rankDevices, float64(held), labels...)
		if busy, memory, measured := deviceUse(found[alloc.NodeID].usage, alloc); measured {
			out.put(rankBusy, busy, labels...)
			out.put(rankHeld, memory, labels...)
		}
	}
}

// taskFigures finds what a node has measured of an allocation.
func taskFigures(figures *structs.NodeUsage, allocID string) (structs.TaskUsage, bool) {
	if figures != nil {
		for i := range figures.Tasks {
			if figures.Tasks[i].AllocID == allocID {
				return figures.Tasks[i], true
			}
		}
	}
	return structs.TaskUsage{}, false
}

// deviceUse sums up what the devices of an allocation measure. Those of one
// that holds them no more are somebody else's.
func deviceUse(figures *structs.NodeUsage, alloc *structs.Allocation) (busy, memory float64, measured bool) {
	if figures == nil || !alloc.OccupiesNode() {
		return 0, 0, false
	}
	count := 0
	for i := range figures.Devices {
		d := &figures.Devices[i]
		for _, id := range alloc.Devices {
			if id == d.ID {
				count++
				busy += d.Gauges[device.GaugeUtilization]
				memory += d.Gauges[device.GaugeMemoryUsed]
			}
		}
	}
	return busy / float64(max(count, 1)), memory, count > 0
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
