package config

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker"
)

// ImageGCBlock says when images that the agent has pulled are removed again.
type ImageGCBlock struct {
	Enabled   *bool    `hcl:"enabled,optional"`    // true unless told
	KeepFor   *string  `hcl:"keep_for,optional"`   // after its last use an image stays this long, however full the disk is; "1h"
	UnusedMax *string  `hcl:"unused_max,optional"` // after this long without use it goes, however empty the disk is; never unless told
	DiskHigh  *int     `hcl:"disk_high,optional"`  // percent of the engine's disk in use that begin a removal; 85
	DiskLow   *int     `hcl:"disk_low,optional"`   // and down to which it goes on; 10 less than disk_high unless told
	Pinned    []string `hcl:"pinned,optional"`     // names of images that stay
}

// What image_gc means where it says nothing. The least keep_for leaves an image
// there between its pull and the start of the task that wants it.
const (
	imageKeepDefault = time.Hour
	imageKeepMin     = structs.Duration(time.Minute)
	diskHighDefault  = 85
	diskStep         = 10
	imagesPinnedMax  = 256
)

func (g ImageGCBlock) over(top ImageGCBlock) ImageGCBlock {
	return ImageGCBlock{
		Enabled: or(top.Enabled, g.Enabled), KeepFor: or(top.KeepFor, g.KeepFor), UnusedMax: or(top.UnusedMax, g.UnusedMax),
		DiskHigh: or(top.DiskHigh, g.DiskHigh), DiskLow: or(top.DiskLow, g.DiskLow), Pinned: orList(top.Pinned, g.Pinned),
	}
}

// imageGC reads the rules by which images go.
func (r *resolver) imageGC(block *ImageGCBlock) docker.GC {
	b := blockOf(block)
	high := get(b.DiskHigh, diskHighDefault)
	rules := docker.GC{
		Disabled: !get(b.Enabled, true), KeepAfterUse: imageKeepDefault,
		HighPercent: high, LowPercent: get(b.DiskLow, max(high-diskStep, 1)), Pinned: b.Pinned,
	}
	if rules.LowPercent < 1 || rules.HighPercent > 100 || rules.LowPercent > rules.HighPercent {
		r.refuse("client.docker.image_gc", "agent.config.image_disk", "low", rules.LowPercent, "high", rules.HighPercent)
	}
	if b.KeepFor != nil {
		keep, err := structs.ParseDuration(*b.KeepFor)
		if err != nil || keep < imageKeepMin {
			r.refuse("client.docker.image_gc.keep_for", "agent.config.image_keep", "value", *b.KeepFor, "min", structs.FormatDuration(imageKeepMin))
		} else {
			rules.KeepAfterUse = keep.Std()
		}
	}
	if b.UnusedMax != nil {
		unused, err := structs.ParseDuration(*b.UnusedMax)
		if err != nil || unused.Std() < rules.KeepAfterUse {
			r.refuse("client.docker.image_gc.unused_max", "agent.config.image_unused", "value", *b.UnusedMax, "keep", structs.FormatDuration(structs.Duration(rules.KeepAfterUse)))
		}
		rules.UnusedMax = unused.Std()
	}
	if len(b.Pinned) > imagesPinnedMax {
		r.refuse("client.docker.image_gc.pinned", "agent.config.image_pins", "count", len(b.Pinned), "max", imagesPinnedMax)
	}
	for _, name := range b.Pinned {
		if !structs.PlainText(name, structs.WordMax) || name == "" {
			r.refuse("client.docker.image_gc.pinned", "agent.config.image_pin", "value", name)
		}
	}
	return rules
}
