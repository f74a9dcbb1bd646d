//go:build cgo

package nvml

import (
	"encoding/binary"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// linkErrors returns the errors of all links together, and how often links were
// set up anew; nil: the card cannot say.
func (l *loaded) linkErrors(dev nvml.Device) (errors, recoveries *uint64) {
	values := l.fields(dev, linkErrorFields()...)
	whole := func(figure float64) *uint64 {
		n := uint64(max(figure, 0))
		return &n
	}
	if sum, known := sumOf(values[:len(values)-1]); known {
		errors = whole(sum)
	}
	if last := values[len(values)-1]; last != nil {
		recoveries = whole(*last)
	}
	return errors, recoveries
}

// linkErrorFields are the counts of errors of links, and last that of their
// recoveries.
func linkErrorFields() []uint32 {
	return []uint32{
		nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
	}
}

// sumOf adds the figures that the card can say; false: it can say none.
func sumOf(values []*float64) (sum float64, known bool) {
	for _, value := range values {
		if value != nil {
			sum, known = sum+*value, true
		}
	}
	return sum, known
}

// clockReasons says what slows the card down. The function has two names.
func (l *loaded) clockReasons(dev nvml.Device) uint64 {
	if reasons, ok := ask(l, "nvmlDeviceGetCurrentClocksEventReasons", dev.GetCurrentClocksEventReasons); ok {
		return reasons
	}
	return or(ask(l, "nvmlDeviceGetCurrentClocksThrottleReasons", dev.GetCurrentClocksThrottleReasons))
}

// fields asks for numbered figures at once; nil: the card cannot say.
func (l *loaded) fields(dev nvml.Device, ids ...uint32) []*float64 {
	figures := make([]*float64, len(ids))
	if !l.has("nvmlDeviceGetFieldValues") {
		return figures
	}
	values := make([]nvml.FieldValue, len(ids))
	for i, id := range ids {
		values[i] = nvml.FieldValue{FieldId: id, ScopeId: scopeOf(id)}
	}
	if dev.GetFieldValues(values) != nvml.SUCCESS {
		return figures
	}
	for i := range values {
		if nvml.Return(values[i].NvmlReturn) == nvml.SUCCESS {
			if figure, ok := number(values[i]); ok {
				figures[i] = &figure
			}
		}
	}
	return figures
}

// scopeOf is what a figure is asked of: NVLink traffic of all links together.
func scopeOf(id uint32) uint32 {
	if id == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX || id == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX {
		return 0xFFFFFFFF
	}
	return 0
}

// number reads a figure in whatever type it comes.
func number(v nvml.FieldValue) (float64, bool) {
	bits := binary.NativeEndian.Uint64(v.Value[:])
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits), true
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(v.Value[:4])), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits), true
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits)), true
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(binary.NativeEndian.Uint32(v.Value[:4]))), true
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(v.Value[:2])), true
	}
	return 0, false
}
