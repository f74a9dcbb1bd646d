package watch

import (
	"testing"
	"time"

	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

func TestUseOf(t *testing.T) {
	now := time.Unix(1e9, 0)
	of := func(share float64, age time.Duration) devices.Measurement {
		return devices.Measurement{At: now.Add(-age), DeviceStats: device.DeviceStats{Gauges: map[string]float64{device.GaugeUtilization: share}}}
	}
	figures := map[string]devices.Measurement{
		"busy": of(0.9, 0), "idle": of(0, 0), "hardly": of(0.04, idleFresh), "old": of(0, idleFresh+1),
		"blind": {At: now},
	}
	for _, c := range []struct {
		devices []string
		want    idleUse
	}{
		{[]string{"idle"}, useNone},
		{[]string{"idle", "hardly"}, useNone},
		{[]string{"idle", "busy"}, useSome},
		{[]string{"busy", "gone"}, useUnknown},
		{[]string{"idle", "old"}, useUnknown},
		{[]string{"blind"}, useUnknown},
	} {
		if got := useOf(c.devices, figures, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.devices, got, c.want)
		}
	}
}

func TestIdleWatch(t *testing.T) {
	const start = structs.UnixNano(1e18)
	type look struct {
		at   time.Duration
		use  idleUse
		want string // "", "at work", or how long it has been idle
	}
	for name, c := range map[string]struct {
		told  bool
		looks []look
	}{
		"idle": {false, []look{
			{1, useNone, ""},
			{9 * time.Minute, useNone, ""},
			{idleAfter + 1, useNone, "10m0s"},
			{time.Hour, useNone, ""},
			{61 * time.Minute, useSome, "at work"},
			{62 * time.Minute, useSome, ""},
			{63 * time.Minute, useNone, ""},
			{73 * time.Minute, useNone, "10m0s"},
		}},
		"at work in between":         {false, []look{{1, useNone, ""}, {9 * time.Minute, useSome, ""}, {11 * time.Minute, useNone, ""}, {20 * time.Minute, useNone, ""}, {21 * time.Minute, useNone, "10m0s"}}},
		"not measured":               {false, []look{{1, useNone, ""}, {idleAfter + 1, useUnknown, ""}, {idleAfter + 1 + time.Minute, useNone, "11m0s"}}},
		"an earlier process said so": {true, []look{{1, useNone, ""}, {idleAfter + 1, useNone, ""}, {12 * time.Minute, useSome, "at work"}}},
	} {
		watch := idleWatch{told: c.told}
		for _, look := range c.looks {
			now := start.Add(look.at)
			got := ""
			if note := watch.step(look.use, look.at, now); note != nil {
				if got = "at work"; note.Since != 0 {
					got = now.Sub(note.Since).String()
				}
			}
			if got != look.want {
				t.Errorf("%s: at %s told %q, want %q", name, look.at, got, look.want)
			}
		}
	}
}
