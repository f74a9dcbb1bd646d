package usage

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/history"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Rhythms of the history.
const (
	historyEvery     = 5 * time.Second
	historySaveEvery = 10 * time.Minute
	historyFile      = "figures.json"
	// historyFresh is how old a measurement may be that is written down: after
	// that its plugin does not answer.
	historyFresh = 3 * devices.StatsEvery
)

// RecordHistory writes down what the machine and its devices measure, until ctx is
// cancelled. Nobody hears of it unless they ask.
func (u *Usage) RecordHistory(ctx context.Context) {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	saved, before, seen := u.Now(), u.Load(), u.Now()
	for {
		select {
		case <-ctx.Done():
			u.saveHistory()
			return
		case <-tick.C:
		}
		now, load := u.Now(), u.Load()
		note := deviceNotes(u.Devices.Registered(), u.Devices.Measured(), now)
		note[history.Machine] = machineNote(load, before, now.Sub(seen))
		u.book.Add(now, note)
		before, seen = load, now
		if now.Sub(saved) >= historySaveEvery {
			saved = now
			u.saveHistory()
		}
	}
}

func (u *Usage) saveHistory() {
	if err := u.book.Save(); err != nil {
		u.Log.Warn("a restarted agent will not know what devices measured", logkey.Error, err)
	}
}

// deviceNotes is what is written down of devices. Pure.
func deviceNotes(devices []structs.Device, measured map[string]devices.Measurement, now time.Time) history.Note {
	note := make(history.Note, len(devices)+1)
	for i := range devices {
		d := &devices[i]
		usage := map[string]float64{structs.GaugeHealthy: 0}
		if device.ActionOf(d).TakesWork() {
			usage[structs.GaugeHealthy] = 1
		}
		if one, ok := measured[d.ID]; ok && now.Sub(one.At) <= historyFresh {
			for gauge, value := range one.Gauges {
				usage[gauge] = value
			}
		}
		note[d.ID] = usage
	}
	return note
}

// machineNote is what is written down of the machine itself. Pure.
func machineNote(now, before fingerprint.Load, span time.Duration) map[string]float64 {
	usage := map[string]float64{device.GaugeMemoryUsed: float64(now.MemoryUsed)}
	if span > 0 && now.CPUSeconds >= before.CPUSeconds {
		usage[structs.GaugeCores] = (now.CPUSeconds - before.CPUSeconds) / span.Seconds()
	}
	return usage
}

// History returns what the node and its devices measured during the last day. Errors
// are *structs.Error. Any goroutine may call it.
func (u *Usage) History(request *structs.HistoryRequest) (*structs.NodeHistory, error) {
	if request.Points < 1 || request.Points > structs.HistoryPointsMax || len(request.Devices) > structs.DeviceCountMax {
		return nil, structs.NewError(structs.CodeInvalid, "client.past_request", "max", structs.HistoryPointsMax)
	}
	return u.book.Read(request, u.Now()), nil
}
