package config

import (
	"math"
	"time"
)

// Defaults and bounds of the audit record.
const (
	auditKeepDefault = 400 * 24 * time.Hour
	auditKeepMin     = 24 * time.Hour
	auditSizeDefault = 1 << 30
	auditSizeMin     = 32 << 20
)

// AuditBlock is the block of the audit record.
type AuditBlock struct {
	Keep    *string
	SizeMax *string
}

// Audit is the part of the audit record.
type Audit struct {
	Keep    time.Duration
	SizeMax int64 // bytes, of each server's records
}

func walkAudit(v visitor, b *AuditBlock, c *Audit) {
	v.setting("keep", span(&b.Keep, &c.Keep, auditKeepDefault).from(float64(auditKeepMin), math.Inf(1)).orBlank().refused("agent.config.audit_keep"))
	v.setting("max_size", size(&b.SizeMax, &c.SizeMax, auditSizeDefault).from(auditSizeMin, math.Inf(1)).orBlank().refused("agent.config.audit_size"))
}
