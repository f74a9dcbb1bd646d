package config

import (
	clientmachine "nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/structs"
)

// DiskBlock says how much room must be left where a node keeps its records and
// the files of its tasks; what is missing depends on the size of the disk.
type DiskBlock struct {
	SpaceMin   *string `hcl:"space_min,optional"`   // under so much free space no new work comes, such as "1GiB"
	SpaceBack  *string `hcl:"space_back,optional"`  // at so much it comes again
	InodesMin  *int    `hcl:"inodes_min,optional"`  // under so many free inodes no new work comes
	InodesBack *int    `hcl:"inodes_back,optional"` // at so many it comes again
}

func (b DiskBlock) over(top DiskBlock) DiskBlock {
	return DiskBlock{
		SpaceMin: or(top.SpaceMin, b.SpaceMin), SpaceBack: or(top.SpaceBack, b.SpaceBack),
		InodesMin: or(top.InodesMin, b.InodesMin), InodesBack: or(top.InodesBack, b.InodesBack),
	}
}

func (r *resolver) disk(block *DiskBlock) clientmachine.DiskBounds {
	b := blockOf(block)
	bounds := clientmachine.DiskBounds{
		SpaceMin: r.diskSize("client.disk.space_min", b.SpaceMin), SpaceBack: r.diskSize("client.disk.space_back", b.SpaceBack),
		InodesMin: r.diskCount("client.disk.inodes_min", b.InodesMin), InodesBack: r.diskCount("client.disk.inodes_back", b.InodesBack),
	}
	if bounds.SpaceBack != 0 && bounds.SpaceBack < bounds.SpaceMin {
		r.refuse("client.disk.space_back", "agent.config.disk_back", "value", *b.SpaceBack, "least", *b.SpaceMin)
	}
	if bounds.InodesBack != 0 && bounds.InodesBack < bounds.InodesMin {
		r.refuse("client.disk.inodes_back", "agent.config.disk_back", "value", bounds.InodesBack, "least", bounds.InodesMin)
	}
	return bounds
}

// diskSize reads an amount of space, 0 where none is given.
func (r *resolver) diskSize(path string, text *string) int64 {
	if text == nil {
		return 0
	}
	bytes, err := structs.ParseSize(*text)
	if err != nil {
		r.refuse(path, "agent.config.size", "value", *text, "reason", err)
		return 0
	}
	return int64(r.positive(path, int(bytes)))
}

// diskCount reads a number of files, 0 where none is given.
func (r *resolver) diskCount(path string, n *int) int64 {
	if n == nil {
		return 0
	}
	return int64(r.positive(path, *n))
}

// TaskBlock says what one rank may take of the node's disk; half of it, and
// 20 GiB of logs, unless told.
type TaskBlock struct {
	DiskMax  *string `hcl:"disk_max,optional"`  // its directory with its logs, such as "200GiB"
	FilesMax *int    `hcl:"files_max,optional"` // files and directories in it
	LogsMax  *string `hcl:"logs_max,optional"`  // its rotated logs, whatever its job asks for
}

func (b TaskBlock) over(top TaskBlock) TaskBlock {
	return TaskBlock{DiskMax: or(top.DiskMax, b.DiskMax), FilesMax: or(top.FilesMax, b.FilesMax), LogsMax: or(top.LogsMax, b.LogsMax)}
}

func (r *resolver) room(block *TaskBlock) room.Bounds {
	b := blockOf(block)
	return room.Bounds{
		Bytes: r.diskSize("client.task.disk_max", b.DiskMax), Files: r.diskCount("client.task.files_max", b.FilesMax),
		Logs: r.diskSize("client.task.logs_max", b.LogsMax),
	}
}
