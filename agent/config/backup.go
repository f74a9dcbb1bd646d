package config

import (
	"path/filepath"
	"time"

	"nomadlike/nomadlike/structs"
)

// Defaults and bounds of backups.
const (
	backupIntervalDefault = time.Hour
	backupIntervalMin     = time.Minute
	backupKeepDefault     = 48
	backupKeepMax         = 10_000
)

// BackupBlock is the block of backups that a server makes by itself.
type BackupBlock struct {
	Path     *string `hcl:"path,optional"`     // directory, absolute
	Interval *string `hcl:"interval,optional"` // such as "1h"
	Keep     *int    `hcl:"keep,optional"`     // newest backups that are kept
}

// BackupConfig is the part of backups; an empty Path means none.
type Backup struct {
	Path     string
	Interval time.Duration
	Keep     int
}

func (b BackupBlock) over(top BackupBlock) BackupBlock {
	return BackupBlock{Path: or(top.Path, b.Path), Interval: or(top.Interval, b.Interval), Keep: or(top.Keep, b.Keep)}
}

func (r *resolver) backup(block *BackupBlock) Backup {
	if block == nil {
		return Backup{}
	}
	c := Backup{Path: get(block.Path, ""), Interval: backupIntervalDefault, Keep: get(block.Keep, backupKeepDefault)}
	if !filepath.IsAbs(c.Path) {
		r.refuse("server.backup.path", "agent.config.backup_path", "value", c.Path)
	}
	if text := get(block.Interval, ""); text != "" {
		interval, err := structs.ParseDuration(text)
		if err != nil || interval.Std() < backupIntervalMin {
			r.refuse("server.backup.interval", "agent.config.backup_interval", "value", text, "least", backupIntervalMin)
		}
		c.Interval = interval.Std()
	}
	if c.Keep < 1 || c.Keep > backupKeepMax {
		r.refuse("server.backup.keep", "agent.config.backup_keep", "value", c.Keep, "max", backupKeepMax)
	}
	return c
}
