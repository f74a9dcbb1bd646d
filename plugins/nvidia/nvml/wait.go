//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/plugins/nvidia"
)

// errNoEvents is returned by Wait when no card reports events.
var errNoEvents = errors.New("the library reports no events here")

// burstMax bounds how many events one Wait returns.
const burstMax = 64

// wanted are the kinds of events that are worth waiting for. All but XIDs only
// say that the cards should be looked at.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventMigConfigChange | nvml.EventTypeDramRetirementEvent |
	nvml.EventTypeDramRetirementFailure | nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// listener waits for the events of cards. Its methods are not called beside each
// other.
type listener struct {
	api   nvml.Interface
	lib   *loaded
	cards *roster
	set   nvml.EventSet // nil: not made yet
}

// wait blocks until cards report events, at most for limit.
func (l *listener) wait(limit time.Duration) ([]nvidia.Happening, error) {
	if !l.lib.has("nvmlEventSetCreate") || !l.lib.has("nvmlEventSetWait_v2", "nvmlEventSetWait") || !l.lib.has("nvmlDeviceRegisterEvents") || !l.lib.has("nvmlEventSetFree") {
		return nil, errNoEvents
	}
	if err := l.register(); err != nil {
		return nil, err
	}
	var happened []nvidia.Happening
	for len(happened) < burstMax {
		data, ret := l.set.Wait(uint32(limit.Milliseconds()))
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
			return happened, fmt.Errorf("wait for events of NVIDIA cards: %s", l.lib.text(ret))
		}
	}
	return happened, nil
}

// register asks all cards of the newest Read for events, once.
func (l *listener) register() error {
	cards, changed := l.cards.taken()
	if l.set != nil && !changed {
		return nil
	}
	if l.set != nil {
		_ = l.set.Free() // there is nothing to be done about it
		l.set = nil
	}
	events, ret := l.api.EventSetCreate()
	if ret != nvml.SUCCESS {
		l.cards.again() // the next wait asks anew
		return fmt.Errorf("make a set of events: %s", l.lib.text(ret))
	}
	registered := 0
	for _, h := range cards {
		kinds := uint64(wanted)
		if supported, ok := ask(l.lib, "nvmlDeviceGetSupportedEventTypes", h.device.GetSupportedEventTypes); ok {
			kinds &= supported
		}
		if kinds != 0 && h.device.RegisterEvents(kinds, events) == nvml.SUCCESS {
			registered++
		}
	}
	if registered == 0 {
		events.Free()
		l.cards.again()
		return errNoEvents
	}
	l.set = events
	return nil
}

// happening turns an event into the plugin's form.
func (l *listener) happening(data nvml.EventData) nvidia.Happening {
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
	e.UUID = l.cards.uuid(data.Device)
	return e
}

// close frees the set of events.
func (l *listener) close() {
	if l.set != nil && l.lib.has("nvmlEventSetFree") {
		_ = l.set.Free() // there is nothing to be done about it
	}
	l.set = nil
}
