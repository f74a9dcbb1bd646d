package structs

import "testing"

func TestParseUlimit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		soft, hard int64
		bad        bool
	}{
		{name: "memlock", text: "unlimited", soft: -1, hard: -1},
		{name: "memlock", text: "64MiB", soft: 64 << 20, hard: 64 << 20},
		{name: "memlock", text: "64MiB:unlimited", soft: 64 << 20, hard: -1},
		{name: "nofile", text: "1024:4096", soft: 1024, hard: 4096},
		{name: "core", text: "0"},
		{name: "stack", text: "8388608", soft: 8 << 20, hard: 8 << 20},
		{name: "nofile", text: "4096:1024", bad: true},
		{name: "nofile", text: "unlimited:1024", bad: true},
		{name: "nofile", text: "64MiB", bad: true},
		{name: "nofile", text: "-1", bad: true},
		{name: "nofile", text: "", bad: true},
		{name: "nofile", text: "1:2:3", bad: true},
		{name: "memlock", text: "1MB", bad: true},
		{name: "evil", text: "1", bad: true},
	} {
		soft, hard, err := ParseUlimit(c.name, c.text)
		if (err != nil) != c.bad || soft != c.soft || hard != c.hard {
			t.Errorf("%s = %q: got %d, %d, %v", c.name, c.text, soft, hard, err)
		}
		if err == nil {
			again, _, err := ParseUlimit(c.name, FormatUlimit(c.name, hard))
			if err != nil || again != hard {
				t.Errorf("%s = %d is written as %q", c.name, hard, FormatUlimit(c.name, hard))
			}
		}
	}
}
