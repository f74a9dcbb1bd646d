package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/plugins/docker"
)

// rulesOf returns the rules that a block leads to.
func rulesOf(t *testing.T, block *ImageGCBlock) docker.GC {
	t.Helper()
	yes := true
	config, err := load(nil, Settings{Dev: &yes, Client: &ClientBlock{Enabled: &yes, Docker: &DockerBlock{ImageGC: block}}}, messages.English, paperMachine())
	if err != nil {
		t.Fatal(err)
	}
	return config.Client.Docker.ImageGC
}

func TestImageGC(t *testing.T) {
	no, sixty, full, keep, month := false, 60, 100, "2d", "30d"
	for name, c := range map[string]struct {
		block *ImageGCBlock
		want  docker.GC
	}{
		"nothing said": {nil, docker.GC{HighPercent: 85, LowPercent: 75, KeepAfterUse: time.Hour}},
		"switched off": {&ImageGCBlock{Enabled: &no}, docker.GC{Disabled: true, HighPercent: 85, LowPercent: 75, KeepAfterUse: time.Hour}},
		"low follows":  {&ImageGCBlock{DiskHigh: &sixty}, docker.GC{HighPercent: 60, LowPercent: 50, KeepAfterUse: time.Hour}},
		"everything": {
			&ImageGCBlock{KeepFor: &keep, UnusedMax: &month, DiskHigh: &full, DiskLow: &sixty, Pinned: []string{"lab/base:1"}},
			docker.GC{KeepAfterUse: 48 * time.Hour, UnusedMax: 720 * time.Hour, HighPercent: 100, LowPercent: 60, Pinned: []string{"lab/base:1"}},
		},
	} {
		if diff := cmp.Diff(c.want, rulesOf(t, c.block)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	below := Settings{Client: &ClientBlock{Docker: &DockerBlock{ImageGC: &ImageGCBlock{Enabled: &no, KeepFor: &keep}}}}
	top := Settings{Client: &ClientBlock{Docker: &DockerBlock{ImageGC: &ImageGCBlock{KeepFor: &month}}}}
	if merged := below.Over(top).Client.Docker.ImageGC; *merged.KeepFor != month || merged.Enabled == nil || *merged.Enabled {
		t.Errorf("merged are %+v", merged)
	}
	if *below.Client.Docker.ImageGC.KeepFor != keep {
		t.Error("a layer that another was put over is changed")
	}
}
