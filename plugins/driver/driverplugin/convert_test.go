package driverplugin

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/plugins/driver"
)

// fill sets every field below v to something that is not its zero value, so
// that a field without a place on the wire is seen.
func fill(v reflect.Value, seed *int64) {
	*seed++
	switch v.Kind() {
	case reflect.String:
		v.SetString("text" + string(rune('a'+*seed%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*seed)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*seed) & 0xff)
	case reflect.Float64:
		v.SetFloat(float64(*seed) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), seed)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), seed)
		fill(v.Index(1), seed)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, seed)
		fill(value, seed)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), seed)
		}
	default:
		panic("no way to fill a " + v.Kind().String())
	}
}

func TestSpecCrossesTheWire(t *testing.T) {
	var spec driver.TaskSpec
	seed := int64(time.Millisecond)
	fill(reflect.ValueOf(&spec).Elem(), &seed)
	// A plugin is told what to mask, and else no more of secrets than its task, which has
	// them in its environment.
	spec.Secrets, spec.ImageCredentials = nil, nil
	if diff := cmp.Diff(spec, specFromProto(specToProto(&spec))); diff != "" {
		t.Errorf("the spec changes on the wire (-sent +received):\n%s", diff)
	}
	plain := driver.TaskSpec{ID: "a"}
	if diff := cmp.Diff(plain, specFromProto(specToProto(&plain))); diff != "" {
		t.Errorf("an empty spec changes on the wire (-sent +received):\n%s", diff)
	}
}
