package supervisor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecodeLimits: what is taken is in the kernel's bounds and goes on as it
// came.
func FuzzDecodeLimits(f *testing.F) {
	for _, text := range []string{"", "8:-1:-1", "7:1:2,8:3:4", "8:2:1", "99:1:1", "8:1", "8:1:1:1", ",", strings.Repeat("1:1:1,", 40)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits, err := decodeLimits(text)
		if err != nil {
			return
		}
		_, argv := limited(limits, "/bin/true", []string{"true"})
		for i, word := range argv {
			if word == limitsArgument && i+1 < len(argv) {
				again, err := decodeLimits(argv[i+1])
				if err != nil || !reflect.DeepEqual(again, limits) {
					t.Fatalf("%q is %v, and %v again, %v", text, limits, again, err)
				}
				return
			}
		}
		t.Fatal("no limits in " + fmt.Sprint(argv))
	})
}
