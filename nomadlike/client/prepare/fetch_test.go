package prepare

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// What people hear of an image of 400 MiB that comes in eight seconds, while
// its size is found out.
func TestPullingIsTold(t *testing.T) {
	now := time.Unix(0, 0)
	var told []string
	p := pulling{now: func() time.Time { return now }, begun: now, progress: func(percent int) {
		told = append(told, fmt.Sprintf("%ds image %d%%", now.Unix(), percent))
	}, tell: func(e structs.Told) {
		if !structs.ToldEvent(e.Event) {
			t.Errorf("servers make no event of %s", e.Event)
		}
		params := maps.Clone(e.Params)
		params["rank"], params["node"] = "0", "n1"
		told = append(told, fmt.Sprintf("%ds %s", now.Unix(), strings.TrimPrefix(messages.Text(messages.English, e.Event, params), "rank 0 on n1: ")))
	}}
	p.report(driver.Progress{Step: "resolve", Item: "train:1"})
	for i := range 80 {
		now = now.Add(100 * time.Millisecond)
		total := int64(400 << 20)
		if i < 10 {
			total = 200 << 20
		}
		p.report(driver.Progress{Step: "pull", Item: "train:1", Done: int64(i+1) * 5 << 20, Total: total})
	}
	p.end(&driver.Prepared{Image: "train:1", Pulled: true, Bytes: 900 << 20, Digest: "sha256:1"})
	want := []string{
		"0s image 5%",
		"1s 50.0 MiB of 200.0 MiB of image train:1 pulled (25 %)",
		"2s image 27%",
		"4s 200.0 MiB of 400.0 MiB of image train:1 pulled (50 %)", "4s image 52%",
		"6s 300.0 MiB of 400.0 MiB of image train:1 pulled (75 %)", "6s image 77%",
		"8s image train:1 was pulled, 900.0 MiB in 8s (sha256:1)",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	quiet := pulling{now: p.now, begun: now, tell: func(e structs.Told) { t.Errorf("what has no content is told: %+v", e) }}
	quiet.end(&driver.Prepared{Image: "train:1", Bytes: 900 << 20})
	quiet.report(driver.Progress{Done: -1, Total: 5})
}

// What an image's name came to is told whether it was fetched or lay there, by
// its registry's digest where there is one, as a fact by which ranks are
// compared.
func TestImagesContentIsTold(t *testing.T) {
	for name, one := range map[string]struct {
		made driver.Prepared
		want structs.Told
	}{
		"fetched": {
			driver.Prepared{Image: "train:1", ID: "sha256:id", Digest: "sha256:digest", Pulled: true},
			structs.Told{
				Event: structs.EventImagePulled, Params: map[string]string{"image": "train:1", "size": "0.0 MiB", "took": "0s", "digest": "sha256:digest"},
				Seen: map[string]string{"image": "sha256:digest"},
			},
		},
		"was there": {
			driver.Prepared{Image: "train:1", ID: "sha256:id", Digest: "sha256:digest"},
			structs.Told{
				Event: structs.EventEnvironment, Params: map[string]string{"seen": "image=train:1, image.digest=sha256:digest"},
				Seen: map[string]string{"image": "sha256:digest"},
			},
		},
		"never in a registry": {
			driver.Prepared{Image: "mine", ID: "sha256:id"},
			structs.Told{
				Event: structs.EventEnvironment, Params: map[string]string{"seen": "image=mine, image.digest=sha256:id"},
				Seen: map[string]string{"image": "sha256:id"},
			},
		},
	} {
		var told []structs.Told
		p := pulling{now: time.Now, begun: time.Now(), tell: func(e structs.Told) { told = append(told, e) }}
		p.end(&one.made)
		if diff := cmp.Diff([]structs.Told{one.want}, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
