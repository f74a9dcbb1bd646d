package deviceplugin

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/plugins/device"
)

// fill puts a different value into every field, so that one that is forgotten
// or mixed up with another is seen.
func fill(v reflect.Value, number *int) {
	*number++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), number)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(0, int64(*number))))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), number)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), number)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, number)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", *number)), value)
	case reflect.String:
		v.SetString(fmt.Sprint("text", *number))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*number))
	case reflect.Float64:
		v.SetFloat(float64(*number) + 0.5)
	default:
		panic(fmt.Sprintf("fill a %s", v.Type()))
	}
}

func there[T any](t *testing.T, andBack func(*T) T) {
	t.Helper()
	var sent T
	number := 0
	fill(reflect.ValueOf(&sent).Elem(), &number)
	if diff := cmp.Diff(sent, andBack(&sent)); diff != "" {
		t.Errorf("%T does not come through (-sent +received):\n%s", sent, diff)
	}
	var empty T
	if diff := cmp.Diff(empty, andBack(&empty)); diff != "" {
		t.Errorf("an empty %T does not come through:\n%s", empty, diff)
	}
}

func TestEverythingComesThrough(t *testing.T) {
	there(t, func(s *device.Snapshot) device.Snapshot { return snapshotFromProto(snapshotToProto(s)) })
	there(t, func(r *device.Reservation) device.Reservation { return reservationFromProto(reservationToProto(r)) })
	there(t, func(s *device.Stats) device.Stats { return statsFromProto(statsToProto(s)) })
	there(t, func(r *device.Reaping) device.Reaping { return reapingFromProto(reapingToProto(r)) })
	there(t, func(r *device.ReapReport) device.ReapReport { return reportFromProto(reportToProto(r)) })
}
