package config

import (
	"math"

	clientmachine "nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/room"
)

// DiskBlock says how much room must be left where a node keeps its records and
// the files of its tasks; what is missing depends on the size of the disk.
type DiskBlock struct {
	SpaceMin   *string
	SpaceBack  *string
	InodesMin  *int
	InodesBack *int
}

func walkDisk(v visitor, b *DiskBlock, c *clientmachine.DiskBounds) {
	v.setting("space_min", size(&b.SpaceMin, &c.SpaceMin, 0).from(1, math.Inf(1)).unset())
	v.setting("space_back", size(&b.SpaceBack, &c.SpaceBack, 0).from(1, math.Inf(1)).unset())
	v.setting("inodes_min", number(&b.InodesMin, &c.InodesMin, 0).from(1, math.Inf(1)).unset())
	v.setting("inodes_back", number(&b.InodesBack, &c.InodesBack, 0).from(1, math.Inf(1)).unset())
	v.rule(func(r *resolver) {
		if c.SpaceBack != 0 && c.SpaceBack < c.SpaceMin {
			r.refuse("client.disk.space_back", "agent.config.disk_back", "value", *b.SpaceBack, "least", *b.SpaceMin)
		}
		if c.InodesBack != 0 && c.InodesBack < c.InodesMin {
			r.refuse("client.disk.inodes_back", "agent.config.disk_back", "value", c.InodesBack, "least", c.InodesMin)
		}
	})
}

// TaskBlock says what one rank may take of the node's disk; half of it, and
// 20 GiB of logs, unless told.
type TaskBlock struct {
	DiskMax  *string
	FilesMax *int
	LogsMax  *string
}

func walkTask(v visitor, b *TaskBlock, c *room.Bounds) {
	v.setting("disk_max", size(&b.DiskMax, &c.Bytes, 0).from(1, math.Inf(1)).unset())
	v.setting("files_max", number(&b.FilesMax, &c.Files, 0).from(1, math.Inf(1)).unset())
	v.setting("logs_max", size(&b.LogsMax, &c.Logs, 0).from(1, math.Inf(1)).knownAs(int64(room.LogBytesDefault)))
}
