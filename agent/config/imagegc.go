package config

import (
	"math"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker"
)

// ImageGCBlock says when images that the agent has pulled are removed again.
type ImageGCBlock struct {
	Enabled   *bool
	KeepFor   *string
	UnusedMax *string
	DiskHigh  *int
	DiskLow   *int
	Pinned    []string
}

// What image_gc means where it says nothing. The least keep_for leaves an image
// there between its pull and the start of the task that wants it.
const (
	imageKeepDefault = time.Hour
	imageKeepMin     = time.Minute
	diskHighDefault  = 85
	diskStep         = 10
	imagesPinnedMax  = 256
)

func walkImageGC(v visitor, b *ImageGCBlock, c *docker.GC) {
	const path = "client.docker.image_gc"
	var enabled bool
	v.setting("enabled", toggle(&b.Enabled, &enabled, true).apart())
	v.rule(func(*resolver) { c.Disabled = !enabled })
	v.setting("disk_high", number(&b.DiskHigh, &c.HighPercent, diskHighDefault).from(1, 100).refused("").in("percent"))
	v.setting("disk_low", number(&b.DiskLow, &c.LowPercent, 0).from(1, 100).refused("").unset().in("percent"))
	v.rule(func(r *resolver) {
		if b.DiskLow == nil {
			c.LowPercent = max(c.HighPercent-diskStep, 1)
		}
		if c.LowPercent < 1 || c.HighPercent > 100 || c.LowPercent > c.HighPercent {
			r.refuse(path, "agent.config.image_disk", "low", c.LowPercent, "high", c.HighPercent)
		}
	})
	v.setting("keep_for", span(&b.KeepFor, &c.KeepAfterUse, imageKeepDefault).from(float64(imageKeepMin), math.Inf(1)).refused("agent.config.image_keep"))
	v.setting("unused_max", span(&b.UnusedMax, &c.UnusedMax, 0).unset().refused(""))
	v.rule(func(r *resolver) {
		if b.UnusedMax == nil {
			return
		}
		unused, err := structs.ParseDuration(*b.UnusedMax)
		if err != nil || unused.Std() < c.KeepAfterUse {
			r.refuse(path+".unused_max", "agent.config.image_unused", "value", *b.UnusedMax, "keep", structs.FormatDuration(structs.Duration(c.KeepAfterUse)))
		}
		c.UnusedMax = unused.Std()
	})
	v.setting("pinned", list(&b.Pinned, &c.Pinned))
	v.rule(func(r *resolver) {
		if len(b.Pinned) > imagesPinnedMax {
			r.refuse(path+".pinned", "agent.config.image_pins", "count", len(b.Pinned), "max", imagesPinnedMax)
		}
		for _, name := range b.Pinned {
			if !structs.PlainText(name, structs.WordMax) || name == "" {
				r.refuse(path+".pinned", "agent.config.image_pin", "value", name)
			}
		}
	})
}
