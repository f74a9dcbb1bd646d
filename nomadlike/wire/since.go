package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"nomadlike/nomadlike/structs"
)

// OldestProtocol is the oldest version beside which this one works in one
// cluster: a server that tells none counts as it.
const OldestProtocol = 6

// UnknownFieldError says that stored bytes hold what this version does not know.
type UnknownFieldError struct {
	Type   string
	Fields []string
}

// Error names the fields and the cure.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("decode %s: this version, of protocol %d, does not know %s: start the newer version that wrote it",
		e.Type, ProtocolVersion, strings.Join(e.Fields, ", "))
}

// kindSince is the first version that knows a kind of command, where that is not
// OldestProtocol or one before it.
func kindSince(kind structs.CommandKind) int {
	switch {
	case kind > structs.CommandJobParallel:
		return ProtocolVersion // whoever adds a kind says here since when
	case kind == structs.CommandJobParallel:
		return ProtocolSweeps
	case kind >= structs.CommandTemplatePut:
		return ProtocolTemplates
	case kind >= structs.CommandImagePut:
		return ProtocolImages
	case kind >= structs.CommandDataPut:
		return ProtocolData
	case kind >= structs.CommandCodePut:
		return ProtocolCode
	case kind >= structs.CommandServiceAccountPut:
		return ProtocolServices
	case kind == structs.CommandSettingsPut:
		return ProtocolSettings
	case kind >= structs.CommandNotifySet:
		return ProtocolNotify
	case kind >= structs.CommandSignIn:
		return ProtocolProviders
	case kind >= structs.CommandSecretSet:
		return ProtocolSecrets
	case kind >= structs.CommandPasswordSet:
		return ProtocolSignIn
	case kind == structs.CommandProjectArchive:
		return ProtocolProjects
	case kind >= structs.CommandUserPut:
		return ProtocolUsers
	case kind == structs.CommandJobConsent:
		return ProtocolConsent
	case kind == structs.CommandMaintenancePut, kind == structs.CommandMaintenanceStep:
		return ProtocolMaintenance
	case kind == structs.CommandJobAnnotate:
		return ProtocolTags
	case kind == structs.CommandCARotate:
		return ProtocolCA
	case kind == structs.CommandKeyRotate:
		return ProtocolKeys
	case kind == structs.CommandServerReport:
		return ProtocolConditions
	case kind == structs.CommandNodeRemove:
		return ProtocolNodeRemovals
	case kind == structs.CommandServerRemoval:
		return ProtocolRemovals
	case kind == structs.CommandJobsForget:
		return ProtocolForget
	case kind == structs.CommandGuarded:
		return ProtocolGuards
	}
	return OldestProtocol
}

// Needs is the first version that knows a command and every field that it sets.
// A field that came after OldestProtocol says since when: `since:"10"`.
func Needs(kind structs.CommandKind, body any) int {
	return max(kindSince(kind), needsOf(reflect.ValueOf(body)))
}

// since reports which fields of a type to look at.
type since struct {
	fields []int // that say since when, or hold types that do
	first  []int // the version of each, 0 for none
}

// sinces keeps what is known of types; nil for those that need no look.
var sinces sync.Map // reflect.Type → *since

func needsOf(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return needsOf(v.Elem())
	case reflect.Slice, reflect.Array:
		if !looksInto(v.Type().Elem()) {
			return 0
		}
		most := 0
		for i := range v.Len() {
			most = max(most, needsOf(v.Index(i)))
		}
		return most
	case reflect.Map:
		if !looksInto(v.Type().Elem()) {
			return 0
		}
		most := 0
		for each := v.MapRange(); each.Next(); { // the greatest of them, in any order
			most = max(most, needsOf(each.Value()))
		}
		return most
	case reflect.Struct:
		most, look := 0, sinceOf(v.Type(), nil)
		if look == nil {
			return 0
		}
		for i, field := range look.fields {
			if value := v.Field(field); !value.IsZero() {
				most = max(most, look.first[i], needsOf(value))
			}
		}
		return most
	}
	return 0
}

// looksInto reports whether values of a type may need a version.
func looksInto(t reflect.Type) bool { return sinceWithin(t, nil) }

func sinceWithin(t reflect.Type, above []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return sinceWithin(t.Elem(), above)
	case reflect.Struct:
		return sinceOf(t, above) != nil
	}
	return false
}

func sinceOf(t reflect.Type, above []reflect.Type) *since {
	if known, ok := sinces.Load(t); ok {
		return known.(*since)
	}
	if slices.Contains(above, t) {
		return nil // answered where it began
	}
	found := new(since)
	for i := range t.NumField() {
		first, _ := strconv.Atoi(t.Field(i).Tag.Get("since"))
		if first != 0 || sinceWithin(t.Field(i).Type, append(above, t)) {
			found.fields, found.first = append(found.fields, i), append(found.first, first)
		}
	}
	if len(found.fields) == 0 {
		found = nil
	}
	if len(above) == 0 {
		sinces.Store(t, found)
	}
	return found
}

// unknownFields names what stored bytes hold and the type of v does not.
func unknownFields(data []byte, v any) []string {
	var held any
	if err := cbor.Unmarshal(data, &held); err != nil {
		return []string{"a field"}
	}
	var fields []string
	addUnknown(held, reflect.TypeOf(v), "", &fields)
	slices.Sort(fields)
	return slices.Compact(fields)
}

func addUnknown(held any, t reflect.Type, path string, fields *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch held := held.(type) {
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for _, one := range held {
				addUnknown(one, t.Elem(), path, fields)
			}
		}
	case map[any]any:
		for key, value := range held { // sorted by the caller
			name := fmt.Sprint(key)
			switch t.Kind() {
			case reflect.Map:
				addUnknown(value, t.Elem(), path, fields)
			case reflect.Struct:
				if inner, ok := fieldOf(t, name); ok {
					addUnknown(value, inner, path+name+".", fields)
				} else {
					*fields = append(*fields, strconv.Quote(path+name))
				}
			}
		}
	}
}

// fieldOf returns the type of the field that is stored under a name.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name || tag == "" && strings.EqualFold(field.Name, name) {
			return field.Type, true
		}
	}
	return nil, false
}
