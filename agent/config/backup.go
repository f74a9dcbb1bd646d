package config

import (
	"math"
	"path/filepath"
	"time"
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
	Path     *string
	Interval *string
	Keep     *int
}

// Backup is the part of backups; an empty Path means none.
type Backup struct {
	Path     string
	Interval time.Duration
	Keep     int
}

func walkBackup(v visitor, b *BackupBlock, c *Backup, there bool) {
	v.setting("path", text(&b.Path, &c.Path, "").unset())
	v.rule(func(r *resolver) {
		if there && !filepath.IsAbs(c.Path) {
			r.refuse("server.backup.path", "agent.config.backup_path", "value", c.Path)
		}
	})
	v.setting("interval", span(&b.Interval, &c.Interval, backupIntervalDefault).from(float64(backupIntervalMin), math.Inf(1)).orBlank().
		refused("agent.config.backup_interval"))
	v.setting("keep", number(&b.Keep, &c.Keep, backupKeepDefault).from(1, backupKeepMax).refused("agent.config.backup_keep"))
	if !there {
		v.rule(func(*resolver) { *c = Backup{} })
	}
}
