package config

import (
	"math"
	"path/filepath"
	"time"
)

// Defaults and bounds of the audit record.
const (
	auditKeepDefault = 400 * 24 * time.Hour
	auditKeepMin     = 24 * time.Hour
	auditSizeDefault = 1 << 30
	auditSizeMin     = 32 << 20
	auditSyslogPort  = 6514 // of syslog over TLS
)

// AuditBlock is the block of the audit record.
type AuditBlock struct {
	Keep    *string
	SizeMax *string
	File    *string
	Syslog  *SyslogBlock
}

// SyslogBlock is the block of the syslog server that records are sent to.
type SyslogBlock struct {
	Address *string
	TLS     *bool
	CA      *string
}

// Audit is the part of the audit record.
type Audit struct {
	Keep    time.Duration
	SizeMax int64  // bytes, of each server's records
	File    string // that records are appended to, absolute; "": none
	Syslog  Syslog
}

// Syslog is a syslog server; an empty Address means none.
type Syslog struct {
	Address string // host:port
	TLS     bool
	CA      string // file of the CAs that its certificate goes by; "": the machine's
}

func walkAudit(v visitor, b *AuditBlock, c *Audit) {
	v.setting("keep", span(&b.Keep, &c.Keep, auditKeepDefault).from(float64(auditKeepMin), math.Inf(1)).orBlank().refused("agent.config.audit_keep"))
	v.setting("max_size", size(&b.SizeMax, &c.SizeMax, auditSizeDefault).from(auditSizeMin, math.Inf(1)).orBlank().refused("agent.config.audit_size"))
	v.setting("file", text(&b.File, &c.File, "").unset())
	v.rule(func(r *resolver) {
		if c.File != "" && !filepath.IsAbs(c.File) {
			r.refuse("server.audit.file", "agent.config.audit_path", "value", c.File)
		}
	})
	there := b.Syslog != nil
	one(v, "syslog", &b.Syslog, func(v visitor, b *SyslogBlock) {
		v.setting("address", text(&b.Address, &c.Syslog.Address, "").unset())
		v.setting("tls", toggle(&b.TLS, &c.Syslog.TLS, true))
		v.setting("ca", text(&b.CA, &c.Syslog.CA, "").unset())
	})
	v.rule(func(r *resolver) {
		if !there {
			c.Syslog = Syslog{}
			return
		}
		c.Syslog.Address = r.hostPort("server.audit.syslog.address", c.Syslog.Address, auditSyslogPort)
		if c.Syslog.CA != "" && !filepath.IsAbs(c.Syslog.CA) {
			r.refuse("server.audit.syslog.ca", "agent.config.audit_path", "value", c.Syslog.CA)
		}
	})
}
