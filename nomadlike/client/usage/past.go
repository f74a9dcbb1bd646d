package usage

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/diary"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Rhythms of the diary.
const (
	diaryEvery     = 5 * time.Second
	diarySaveEvery = 10 * time.Minute
	diaryFile      = "figures.json"
	// diaryFresh is how old a measurement may be that is written down: after
	// that its plugin does not answer.
	diaryFresh = 3 * devices.StatsEvery
)

// KeepDiary writes down what the machine and its devices measure, until ctx is
// cancelled. Nobody hears of it who does not ask.
func (u *Usage) KeepDiary(ctx context.Context) {
	tick := time.NewTicker(diaryEvery)
	defer tick.Stop()
	saved, before, seen := u.Now(), u.Load(), u.Now()
	for {
		select {
		case <-ctx.Done():
			u.saveDiary()
			return
		case <-tick.C:
		}
		now, load := u.Now(), u.Load()
		note := pastNote(u.Devices.Registered(), u.Devices.Measured(), now)
		note[diary.Machine] = machineNote(load, before, now.Sub(seen))
		u.book.Add(now, note)
		before, seen = load, now
		if now.Sub(saved) >= diarySaveEvery {
			saved = now
			u.saveDiary()
		}
	}
}

func (u *Usage) saveDiary() {
	if err := u.book.Save(); err != nil {
		u.Log.Warn("a restarted agent will not know what devices measured", logkey.Error, err)
	}
}

// pastNote is what is written down of devices. Pure.
func pastNote(devices []structs.Device, measured map[string]devices.Measurement, now time.Time) diary.Note {
	note := make(diary.Note, len(devices)+1)
	for i := range devices {
		d := &devices[i]
		figures := map[string]float64{structs.PastHealthy: 0}
		if device.ActionOf(d).TakesWork() {
			figures[structs.PastHealthy] = 1
		}
		if one, ok := measured[d.ID]; ok && now.Sub(one.At) <= diaryFresh {
			for gauge, value := range one.Gauges {
				figures[gauge] = value
			}
		}
		note[d.ID] = figures
	}
	return note
}

// machineNote is what is written down of the machine itself. Pure.
func machineNote(now, before fingerprint.Load, span time.Duration) map[string]float64 {
	figures := map[string]float64{device.GaugeMemoryUsed: float64(now.MemoryUsed)}
	if span > 0 && now.CPUSeconds >= before.CPUSeconds {
		figures[structs.PastCores] = (now.CPUSeconds - before.CPUSeconds) / span.Seconds()
	}
	return figures
}

// Past gives what the node and its devices measured during the last day. Errors
// are *structs.Error. Any goroutine may call it.
func (u *Usage) Past(request *structs.PastRequest) (*structs.NodePast, error) {
	if request.Points < 1 || request.Points > structs.PastPointsMax || len(request.Devices) > structs.DeviceCountMax {
		return nil, structs.NewError(structs.CodeInvalid, "client.past_request", "max", structs.PastPointsMax)
	}
	return u.book.Read(request, u.Now()), nil
}
