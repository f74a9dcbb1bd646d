package driver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithSearchPath(t *testing.T) {
	for _, c := range []struct {
		name        string
		env         []string
		first, last []string
		want        []string
	}{
		{"none", nil, nil, nil, []string{"PATH=" + SearchPathDefault}},
		{"the job's", []string{"PATH=/x", "A=1"}, nil, nil, []string{"A=1", "PATH=/x"}},
		{"the last one counts", []string{"PATH=/x", "PATH=/y"}, nil, nil, []string{"PATH=/y"}},
		{"around the job's", []string{"PATH=/x:/y"}, []string{"/a", "/b"}, []string{"/z"}, []string{"PATH=/a:/b:/x:/y:/z"}},
		{"around the default", []string{"XPATH=1"}, []string{"/a"}, []string{"/z"}, []string{"XPATH=1", "PATH=/a:" + SearchPathDefault + ":/z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := TaskSpec{PathFirst: c.first, PathLast: c.last}
			if diff := cmp.Diff(c.want, spec.WithSearchPath(c.env)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
