//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/plugins/nvidia"
)

// errNoEvents is returned by Wait when no card reports events.
var errNoEvents = errors.New("the library reports no events here")

// burstMax bounds how many events one Wait gives.
const burstMax = 64

// wanted are the kinds of events that are worth waiting for. All but XIDs only
// say that the cards should be looked at.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventMigConfigChange | nvml.EventTypeDramRetirementEvent |
	nvml.EventTypeDramRetirementFailure | nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// Wait blocks until cards report events, at most for limit.
func (l *Library) Wait(limit time.Duration) ([]nvidia.Happening, error) {
	if !l.has("nvmlEventSetCreate") || !l.has("nvmlEventSetWait_v2", "nvmlEventSetWait") || !l.has("nvmlDeviceRegisterEvents") || !l.has("nvmlEventSetFree") {
		return nil, errNoEvents
	}
	if err := l.register(); err != nil {
		return nil, err
	}
	var happened []nvidia.Happening
	for len(happened) < burstMax {
		data, ret := l.events.Wait(uint32(limit.Milliseconds()))
		switch ret {
		case nvml.SUCCESS:
			happened = append(happened, l.happening(data))
			limit = 0 // what else is there already
			continue
		case nvml.ERROR_TIMEOUT:
			return happened, nil
		case nvml.ERROR_GPU_IS_LOST:
			// It says so for ever: the caller looks at the cards, and asks again
			// after a pause.
			return append(happened, nvidia.Happening{At: time.Now(), GPU: -1, Compute: -1, Source: nvidia.FromLibrary}), errors.New("a card is lost")
		default:
			return happened, fmt.Errorf("wait for events of NVIDIA cards: %s", l.text(ret))
		}
	}
	return happened, nil
}

// register asks all cards of the newest Read for events, once.
func (l *Library) register() error {
	l.mu.Lock()
	changed, cards := l.mu.changed, slices.Clone(l.mu.cards)
	l.mu.changed = false
	l.mu.Unlock()
	if l.events != nil && !changed {
		return nil
	}
	if l.events != nil {
		l.events.Free()
		l.events = nil
	}
	events, ret := l.api.EventSetCreate()
	if ret != nvml.SUCCESS {
		return l.again(fmt.Errorf("make a set of events: %s", l.text(ret)))
	}
	registered := 0
	for _, h := range cards {
		kinds := uint64(wanted)
		if supported, ok := ask(l, "nvmlDeviceGetSupportedEventTypes", h.device.GetSupportedEventTypes); ok {
			kinds &= supported
		}
		if kinds != 0 && h.device.RegisterEvents(kinds, events) == nvml.SUCCESS {
			registered++
		}
	}
	if registered == 0 {
		events.Free()
		return l.again(errNoEvents)
	}
	l.events = events
	return nil
}

// again lets the next Wait register anew.
func (l *Library) again(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.changed = true
	return err
}

// happening turns an event into the plugin's form.
func (l *Library) happening(data nvml.EventData) nvidia.Happening {
	e := nvidia.Happening{At: time.Now(), GPU: -1, Compute: -1, Source: nvidia.FromLibrary}
	if data.EventType == nvml.EventTypeXidCriticalError {
		e.XID = int(data.EventData)
	}
	if data.GpuInstanceId != noInstance {
		e.GPU = int(data.GpuInstanceId)
	}
	if data.ComputeInstanceId != noInstance {
		e.Compute = int(data.ComputeInstanceId)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.mu.cards {
		if h.device == data.Device {
			e.UUID = h.uuid
		}
	}
	return e
}
