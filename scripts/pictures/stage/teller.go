package stage

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// stepEvery is how long every training takes for a step.
const stepEvery = 8 * time.Second

// teller answers what only nodes know. All of it is a function of the state and of
// names, so it is always the same.
type teller struct {
	store *state.Store
}

// declare has a node's server answer.
func (t *teller) declare(s *rpc.Server, nodeID string) {
	rpc.Unary(s, structs.MethodNodeUsage, rpc.FromServers, func(context.Context, rpc.Peer, *structs.UsageRequest) (*structs.NodeUsage, error) {
		return t.usage(nodeID), nil
	})
	rpc.Unary(s, structs.MethodNodeMetrics, rpc.FromServers, func(_ context.Context, _ rpc.Peer, ask *structs.MetricsRequest) (*structs.NodeMetrics, error) {
		return t.metrics(ask), nil
	})
	rpc.Unary(s, structs.MethodNodeHistory, rpc.FromServers, func(_ context.Context, _ rpc.Peer, ask *structs.HistoryRequest) (*structs.NodeHistory, error) {
		return t.history(nodeID, ask), nil
	})
	rpc.Unary(s, structs.MethodNodeRankHistory, rpc.FromServers, func(_ context.Context, _ rpc.Peer, ask *structs.RankHistoryRequest) (*structs.NodeRankHistory, error) {
		return t.rankHistory(ask), nil
	})
	rpc.Unary(s, structs.MethodNodeLook, rpc.FromServers, func(context.Context, rpc.Peer, *structs.DataLook) (*structs.DataSeen, error) {
		return &structs.DataSeen{}, nil
	})
	rpc.Stream(s, structs.MethodAllocLogs, rpc.FromServers, func(ctx context.Context, _ rpc.Peer, stream *rpc.ServerStream[structs.LogRequest, structs.LogChunk]) error {
		ask, err := stream.Recv()
		if err != nil {
			return err
		}
		alloc := t.store.Snapshot().Alloc(ask.AllocID)
		if alloc == nil {
			return structs.NewError(structs.CodeNotFound, "client.alloc_unknown")
		}
		ended := alloc.Status.Terminal()
		if err := stream.Send(&structs.LogChunk{Data: []byte(t.log(alloc, ask)), EOF: ended || !ask.Follow}); err != nil || ended || !ask.Follow {
			return err
		}
		<-ctx.Done() // nothing more is printed
		return nil
	})
	rpc.Stream(s, structs.MethodAllocFiles, rpc.FromServers, func(_ context.Context, _ rpc.Peer, stream *rpc.ServerStream[structs.FileRequest, structs.FileChunk]) error {
		ask, err := stream.Recv()
		if err != nil {
			return err
		}
		return stream.Send(files(ask.Path))
	})
}

// wave is a figure from 0 to 1 that goes up and down with its place, differently for
// each name.
func wave(name string, place float64) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	phase := float64(h.Sum32()%1000) / 159
	return 0.5 + 0.3*math.Sin(place/3+phase) + 0.2*math.Sin(place*1.7+2*phase)
}

// round cuts a figure to what people read.
func round(value, unit float64) float64 { return math.Round(value/unit) * unit }

// idle reports whether an allocation uses nothing of what it holds.
func (t *teller) idle(alloc *structs.Allocation) bool {
	subjob := t.store.Snapshot().Subjob(alloc.JobID, alloc.Subjob)
	return alloc.IdleSince != 0 || alloc.Hold != nil || alloc.Status != structs.AllocRunning || subjob != nil && subjob.Control != nil && subjob.Control.Paused
}

// gauges are what a card measures at a place in time; alloc is what holds it, or nil.
func (t *teller) gauges(d *structs.Device, alloc *structs.Allocation, place float64) map[string]float64 {
	busy, used := 0.0, 0.01
	switch {
	case alloc == nil:
	case t.idle(alloc):
		used = 0.4
	default:
		busy, used = round(0.82+0.16*wave(d.ID, place), 0.01), round(0.7+0.2*wave(alloc.ID, 1), 0.01)
	}
	return map[string]float64{
		device.GaugeUtilization: busy, device.GaugeMemoryUsed: math.Floor(used * float64(d.Memory)), device.GaugeMemoryTotal: float64(d.Memory),
		device.GaugeTemperature: math.Floor(34 + 34*busy + 4*wave(d.ID, place/2)), device.GaugePower: math.Floor(62 + 300*busy), device.GaugePowerLimit: 400,
		device.GaugeClockCompute: 1.41e9, device.GaugeECCCorrected: 0, device.GaugeECCUncorrected: 0,
	}
}

// usage is what a node measures now.
func (t *teller) usage(nodeID string) *structs.NodeUsage {
	snapshot := t.store.Snapshot()
	node, held := snapshot.Node(nodeID), snapshot.Usage(nodeID)
	if node == nil {
		return &structs.NodeUsage{At: structs.At(Now)}
	}
	out := &structs.NodeUsage{At: structs.At(Now), CPUSeconds: 1e6, CPUCores: 1.2, MemoryUsed: 9 << 30, MemoryTotal: node.Capacity.Memory, DiskFree: 1800 << 30, InodesFree: 9e7}
	for i := range node.Devices {
		d := &node.Devices[i]
		var alloc *structs.Allocation
		if held != nil {
			alloc = snapshot.Alloc(held.Devices[d.ID])
		}
		one := structs.DeviceUsage{ID: d.ID, At: structs.At(Now), Gauges: t.gauges(d, alloc, 0)}
		if alloc != nil {
			one.Processes = []structs.DeviceProcess{{PID: 41_000 + 17*d.Index, Name: "python3", Memory: int64(one.Gauges[device.GaugeMemoryUsed])}}
		}
		out.Devices = append(out.Devices, one)
	}
	for alloc := range snapshot.Occupants(nodeID) {
		if alloc.Status != structs.AllocRunning {
			continue
		}
		one := structs.TaskUsage{AllocID: alloc.ID, CPUSeconds: round(Now.Sub(alloc.StartedAt.Time()).Seconds()*alloc.Spec.CPU*0.6, 1), Memory: alloc.Spec.Memory / 2, Processes: 3 + len(alloc.Devices)}
		if !t.idle(alloc) {
			one.CPUCores = round(alloc.Spec.CPU*(0.5+0.3*wave(alloc.ID, 0)), 0.1)
		}
		out.CPUCores += one.CPUCores
		out.MemoryUsed += one.Memory
		out.Tasks = append(out.Tasks, one)
	}
	return out
}

// series fills a figure over time.
func series(gauge string, count int, value func(i int) float64) structs.GaugeHistory {
	one := structs.GaugeHistory{Gauge: gauge, Values: make([]*float64, count)}
	for i := range count {
		v := value(i)
		one.Values[i] = &v
	}
	return one
}

// history is what a node measured before Now.
func (t *teller) history(nodeID string, ask *structs.HistoryRequest) *structs.NodeHistory {
	snapshot := t.store.Snapshot()
	node, held := snapshot.Node(nodeID), snapshot.Usage(nodeID)
	span := Now.Sub(ask.Since.Time())
	count := max(min(ask.Points, int(span/time.Minute)), 1)
	step := (span / time.Duration(count)).Truncate(time.Second)
	out := &structs.NodeHistory{From: structs.At(Now.Add(-step * time.Duration(count))), Step: structs.Duration(step), Count: count}
	if node == nil {
		return out
	}
	hours := func(i int) float64 { return step.Hours() * float64(i) }
	out.Machine = []structs.GaugeHistory{
		series(structs.GaugeCores, count, func(i int) float64 { return round(node.Capacity.CPU*0.6*wave(nodeID, hours(i)), 0.1) }),
		series(device.GaugeMemoryUsed, count, func(i int) float64 { return math.Floor(float64(node.Capacity.Memory) * 0.5 * wave(nodeID, hours(i)/2)) }),
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		if len(ask.Devices) > 0 && ask.Devices[0] != d.ID {
			continue
		}
		var alloc *structs.Allocation
		if held != nil {
			alloc = snapshot.Alloc(held.Devices[d.ID])
		}
		one := structs.DeviceHistory{ID: d.ID}
		for _, gauge := range []string{device.GaugeUtilization, device.GaugeMemoryUsed, device.GaugeTemperature, device.GaugePower} {
			one.Series = append(one.Series, series(gauge, count, func(i int) float64 {
				if alloc != nil && out.From.Time().Add(step*time.Duration(i)).Before(alloc.PlacedAt.Time()) {
					return t.gauges(d, nil, hours(i))[gauge]
				}
				return t.gauges(d, alloc, hours(i)*4)[gauge]
			}))
		}
		one.Series = append(one.Series, series(structs.GaugeHealthy, count, func(i int) float64 {
			if !d.Healthy && !out.From.Time().Add(step*time.Duration(i)).Before(before(sickSince)) {
				return 0
			}
			return 1
		}))
		out.Devices = append(out.Devices, one)
	}
	return out
}

// rankHistory is what ranks used.
func (t *teller) rankHistory(ask *structs.RankHistoryRequest) *structs.NodeRankHistory {
	out := &structs.NodeRankHistory{}
	for _, id := range ask.AllocIDs {
		alloc := t.store.Snapshot().Alloc(id)
		if alloc == nil {
			continue
		}
		cards := float64(len(alloc.Devices))
		busy := func(i int) float64 {
			at := ask.From.Time().Add(ask.Step.Std() * time.Duration(i))
			if alloc.StartedAt == 0 || at.Before(alloc.StartedAt.Time()) || alloc.FinishedAt != 0 && at.After(alloc.FinishedAt.Time()) {
				return 0
			}
			return round(0.8+0.18*wave(id, float64(i)/3), 0.01)
		}
		one := structs.RankHistory{AllocID: id, Series: []structs.GaugeHistory{
			series(structs.GaugeCores, ask.Count, func(i int) float64 { return round(busy(i)*alloc.Spec.CPU*0.7, 0.1) }),
			series(device.GaugeMemoryUsed, ask.Count, func(i int) float64 { return math.Floor(busy(i) * float64(alloc.Spec.Memory) * 0.6) }),
		}}
		if cards > 0 {
			one.Series = append(one.Series,
				series(structs.GaugeCardUse, ask.Count, busy),
				series(structs.GaugeCardMemory, ask.Count, func(i int) float64 { return math.Floor(busy(i) * cards * 70 * (1 << 30)) }),
				series(structs.GaugeCardPower, ask.Count, func(i int) float64 { return math.Floor(cards * (62 + 300*busy(i))) }),
				series(structs.GaugeCardTemperature, ask.Count, func(i int) float64 { return math.Floor(34 + 34*busy(i)) }),
			)
		}
		out.Ranks = append(out.Ranks, one)
	}
	return out
}

// steps are the first and the last step that an allocation had logged at a time.
func steps(alloc *structs.Allocation, now time.Time) (first, last int64) {
	if alloc.StartedAt == 0 {
		return 0, 0
	}
	if alloc.Resume != nil {
		first = alloc.Resume.Step
	}
	end := now
	if alloc.FinishedAt != 0 {
		end = alloc.FinishedAt.Time()
	}
	return first + 1, first + int64(end.Sub(alloc.StartedAt.Time())/stepEvery)
}

// loss is what a training of a name has come to at a step.
func loss(name string, step int64) float64 {
	return round(1.1+7.4*math.Exp(-float64(step)/420)+0.12*wave(name, float64(step)/9), 0.001)
}

// metrics are what rank 0 of trainings wrote of themselves.
func (t *teller) metrics(ask *structs.MetricsRequest) *structs.NodeMetrics {
	out := &structs.NodeMetrics{}
	for _, id := range ask.AllocIDs {
		alloc := t.store.Snapshot().Alloc(id)
		if alloc == nil || alloc.Rank != 0 || alloc.StartedAt == 0 {
			continue
		}
		first, last := steps(alloc, Now)
		if last <= first {
			continue
		}
		one := structs.AllocMetrics{AllocID: id}
		for _, name := range []string{"loss", "lr", "tokens_per_second"} {
			if len(ask.Names) > 0 && !strings.Contains(strings.Join(ask.Names, ","), name) {
				continue
			}
			s := structs.MetricSeries{Name: name, Source: structs.MetricFromLog, Count: last - first + 1, Min: math.Inf(1), Max: math.Inf(-1)}
			every := max((last-first)/int64(max(ask.Points-1, 1)), 1)
			for step := first; ; step += every {
				step = min(step, last)
				value := map[string]float64{"loss": loss(alloc.JobName, step), "lr": 1e-4 * math.Exp(-float64(step)/3000), "tokens_per_second": round(8200+900*wave(alloc.JobName, float64(step)/30), 1)}[name]
				at := alloc.StartedAt.Time().Add(stepEvery * time.Duration(step-first+1))
				s.Last = structs.MetricPoint{Step: step, At: structs.At(at), Value: value}
				s.Points = append(s.Points, s.Last)
				s.Min, s.Max = min(s.Min, value), max(s.Max, value)
				if step == last {
					break
				}
			}
			one.Series = append(one.Series, s)
		}
		out.Allocs = append(out.Allocs, one)
	}
	return out
}

// log is what a rank printed.
func (t *teller) log(alloc *structs.Allocation, ask *structs.LogRequest) string {
	var lines []string
	say := func(at time.Time, text string) {
		if ask.Times {
			text = at.UTC().Format("2006-01-02T15:04:05.000Z") + " " + text
		}
		lines = append(lines, text+"\n")
	}
	begun := alloc.StartedAt.Time()
	first, last := steps(alloc, Now)
	switch {
	case alloc.StartedAt == 0:
	case ask.Stream == "stdout":
		say(begun, fmt.Sprintf("rank %d of gang starts on %s with %d cards", alloc.Rank, alloc.NodeName, len(alloc.Devices)))
		for step := max(first, last-400); step <= last; step += 10 {
			say(begun.Add(stepEvery*time.Duration(step-first+1)), fmt.Sprintf("step %d loss %.3f lr %.2e tokens/s %.0f", step, loss(alloc.JobName, step), 1e-4*math.Exp(-float64(step)/3000), 8200+900*wave(alloc.JobName, float64(step)/30)))
		}
	case ask.Stream == "stderr" && alloc.Status == structs.AllocFailed:
		at := alloc.FinishedAt.Time().Add(-time.Second)
		say(at.Add(-4*time.Minute), "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:560: UserWarning: this DataLoader will create 16 worker processes")
		say(at, "Traceback (most recent call last):")
		say(at, "  File \"/workspace/algorithm/train.py\", line 212, in <module>")
		say(at, "    loss = step(model, batch)")
		say(at, "  File \"/workspace/algorithm/train.py\", line 148, in step")
		say(at, "    out = model(batch.cuda(non_blocking=True))")
		say(at, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.35 GiB of which 1.02 GiB is free.")
	}
	if ask.TailLines > 0 {
		lines = lines[max(0, len(lines)-ask.TailLines):]
	}
	return strings.Join(lines, "")
}

// files are what every rank has written.
func files(path string) *structs.FileChunk {
	at := structs.At(before(8 * time.Minute))
	dir := func(name string) structs.FileEntry { return structs.FileEntry{Name: name, Dir: true, Modified: at} }
	file := func(name string, size int64, ago time.Duration) structs.FileEntry {
		return structs.FileEntry{Name: name, Size: size, Modified: structs.At(before(ago))}
	}
	out := &structs.FileChunk{EOF: true}
	switch path {
	case "":
		out.Entry, out.Entries = &structs.FileEntry{Dir: true, Modified: at}, []structs.FileEntry{dir(structs.FilesLogs), dir(structs.FilesOutputs)}
	case structs.FilesOutputs:
		out.Entry = &structs.FileEntry{Name: path, Dir: true, Modified: at}
		out.Entries = []structs.FileEntry{dir("tensorboard"), file("checkpoint-1200.pt", 13_476_839_424, 48*time.Minute), file("checkpoint-1350.pt", 13_476_839_424, 28*time.Minute), file("config.json", 1_932, 5*time.Hour), file("学习曲线.png", 88_204, 8*time.Minute)}
	case structs.FilesLogs:
		out.Entry = &structs.FileEntry{Name: path, Dir: true, Modified: at}
		out.Entries = []structs.FileEntry{file("stderr", 4_096, time.Hour), file("stdout", 1_204_331, time.Minute)}
	default:
		out.Entry = &structs.FileEntry{Name: path, Dir: true, Modified: at}
	}
	return out
}
