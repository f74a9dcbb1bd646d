package usage

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/history"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver"
)

// recordSaveEvery is how much of a rank's figures a crash of the agent costs.
const recordSaveEvery = time.Minute

// record is what is kept of a rank that runs.
type record struct {
	*history.Record
	task *loop.Task
}

// RecordRank keeps what a task uses in its allocation's directory, until the
// task has ended or the agent stops: keepRanks fills it.
func (u *Usage) RecordRank(work context.Context, t *loop.Task) {
	kept, err := history.OpenRecord(u.Layout.UsageHistory(t.ID))
	if err != nil {
		u.Log.Warn("what a rank used before is lost", logkey.AllocID, t.ID, logkey.Error, err)
	}
	u.mu.Lock()
	u.mu.records[t.ID] = &record{Record: kept, task: t}
	u.mu.Unlock()
	defer func() {
		u.saveRecord(t.ID, kept) // before it is taken away: whoever asks finds the one or the other
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.mu.records, t.ID)
	}()
	tick := time.NewTicker(recordSaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			return
		case <-t.Ended:
			return
		case <-tick.C:
			u.saveRecord(t.ID, kept)
		}
	}
}

func (u *Usage) saveRecord(id string, kept *history.Record) {
	if err := kept.Save(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.Log.Warn("what a rank used is not kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// RecordRanks notes what the ranks that run here use, until ctx is cancelled.
func (u *Usage) RecordRanks(ctx context.Context) {
	tick := time.NewTicker(history.RecordTick)
	defer tick.Stop()
	var before *structs.NodeUsage
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		u.mu.Lock()
		running := maps.Clone(u.mu.records)
		u.mu.Unlock()
		if len(running) == 0 {
			before = nil
			continue
		}
		usage, err := u.Current(ctx)
		if err != nil {
			continue // the agent stops
		}
		at := usage.At.Time()
		for i := range usage.Tasks {
			task := &usage.Tasks[i]
			kept := running[task.AllocID]
			if kept == nil {
				continue
			}
			note := rankNote(usage, before, task)
			if a := kept.task.Assigned.Load(); a != nil && a.Alloc != nil {
				cardsNote(note, usage, a.Alloc.Devices)
			}
			kept.Add(at, note)
		}
		before = usage
	}
}

// rankNote is what is written down of a rank's task. Cores at work are measured
// between two notes, whoever else measured in the meantime. Pure.
func rankNote(usage, before *structs.NodeUsage, task *structs.TaskUsage) map[string]float64 {
	note := map[string]float64{device.GaugeMemoryUsed: float64(task.Memory), structs.GaugeProcesses: float64(task.Processes)}
	if before == nil {
		return note
	}
	span := usage.At.Sub(before.At)
	if span <= 0 || span > usageRateMax {
		return note
	}
	for i := range before.Tasks {
		if was := &before.Tasks[i]; was.AllocID == task.AllocID && task.CPUSeconds >= was.CPUSeconds {
			note[structs.GaugeCores] = (task.CPUSeconds - was.CPUSeconds) / span.Seconds()
		}
	}
	return note
}

// cardsNote adds what a rank's cards measured lately, all of them together.
// Pure.
func cardsNote(note map[string]float64, usage *structs.NodeUsage, cards []string) {
	uses, use := 0, 0.0
	for i := range usage.Devices {
		d := &usage.Devices[i]
		if !slices.Contains(cards, d.ID) || usage.At.Sub(d.At) > historyFresh {
			continue
		}
		if value, measured := d.Gauges[device.GaugeUtilization]; measured {
			uses, use = uses+1, use+value
		}
		for gauge, name := range map[string]string{
			device.GaugeMemoryUsed: structs.GaugeCardMemory, device.GaugeMemoryTotal: structs.GaugeCardMemoryTotal,
			device.GaugePower: structs.GaugeCardPower, device.GaugePowerLimit: structs.GaugeCardPowerLimit,
		} {
			if value, measured := d.Gauges[gauge]; measured {
				note[name] += value
			}
		}
		if value, measured := d.Gauges[device.GaugeTemperature]; measured {
			if hottest, known := note[structs.GaugeCardTemperature]; !known || value > hottest {
				note[structs.GaugeCardTemperature] = value
			}
		}
	}
	if uses > 0 {
		note[structs.GaugeCardUse] = use / float64(uses)
	}
}

// RankHistory returns what allocations used that run here, or whose directory is
// kept. Errors are *structs.Error. Any goroutine may call it.
func (u *Usage) RankHistory(request *structs.RankHistoryRequest) (*structs.NodeRankHistory, error) {
	step, count := request.Step.Std(), request.Count
	if len(request.AllocIDs) > structs.RankHistoryAllocsMax || count < 1 || count > structs.HistoryPointsMax ||
		count*structs.HistoryGaugesMax*len(request.AllocIDs) > structs.HistoryValuesMax ||
		step < time.Second || step%time.Second != 0 || step > math.MaxInt64/structs.HistoryPointsMax {
		return nil, structs.NewError(structs.CodeInvalid, "client.past_request", "max", structs.HistoryPointsMax)
	}
	out := &structs.NodeRankHistory{}
	for _, id := range request.AllocIDs {
		if !driver.ValidTaskID(alloc.TaskID(id)) {
			continue
		}
		u.mu.Lock()
		running := u.mu.records[id]
		u.mu.Unlock()
		var kept *history.Record
		if running != nil {
			kept = running.Record
		} else {
			was, err := history.OpenRecord(u.Layout.UsageHistory(id)) // empty where none is kept
			if err != nil {
				u.Log.Warn("what a rank used is lost", logkey.AllocID, id, logkey.Error, err)
			}
			kept = was
		}
		if series := kept.Read(request.From.Time(), step, count); len(series) > 0 {
			out.Ranks = append(out.Ranks, structs.RankHistory{AllocID: id, Series: series})
		}
	}
	return out, nil
}
