package docker

import (
	"cmp"
	"slices"
	"time"
)

// storedImage is what a collection knows of an image.
type storedImage struct {
	ID       string
	Names    []string
	Bytes    int64
	LastUse  time.Time // or when it was pulled
	Pulled   bool      // by this driver
	InUse    bool      // by a container, running or not, or about to be
	Excluded bool      // pinned by the configuration
}

// diskUse is how full the engine's disk is, in bytes.
type diskUse struct{ Used, Total int64 }

func (d diskUse) percent() int64 {
	if d.Total <= 0 {
		return 0
	}
	return d.Used * 100 / d.Total
}

// removal is one image to go, and why.
type removal struct {
	ID     string
	Names  []string
	Bytes  int64
	Reason string // "disk" or "unused"
}

// collect decides which images go: those unused for too long, and, while the
// disk is too full, those whose last use is longest ago, until it would be
// empty enough. Images in use, pinned, used just now, or not pulled by this
// driver stay. Pure.
func collect(images []storedImage, disk diskUse, rules GC, now time.Time) []removal {
	if rules.Disabled {
		return nil
	}
	candidates := slices.Clone(images)
	slices.SortFunc(candidates, func(a, b storedImage) int {
		return cmp.Or(a.LastUse.Compare(b.LastUse), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.ID, b.ID))
	})
	var out []removal
	pressed := disk.percent() >= int64(rules.HighPercent)
	for _, i := range candidates {
		if i.InUse || i.Excluded || !i.Pulled || now.Sub(i.LastUse) < rules.KeepAfterUse {
			continue
		}
		reason := ""
		switch {
		case rules.UnusedMax > 0 && now.Sub(i.LastUse) >= rules.UnusedMax:
			reason = "unused"
		case pressed && disk.percent() >= int64(rules.LowPercent):
			reason = "disk"
		default:
			continue
		}
		out = append(out, removal{ID: i.ID, Names: i.Names, Bytes: i.Bytes, Reason: reason})
		disk.Used -= i.Bytes
	}
	return out
}
