package agent

import (
	"context"
	"path/filepath"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
)

const (
	auditDir        = "audit" // in the data directory
	auditSweepEvery = 10 * time.Second
)

// openAudit opens the audit record of a server. Its disk is the server's: what it
// does not take ends the agent, as with the log.
func (a *Agent) openAudit() error {
	var err error
	a.journal, err = journal.Open(journal.Config{
		Dir: filepath.Join(a.config.DataDir, auditDir), Server: a.ID(), Now: time.Now, Log: a.log, Fail: a.life.fail,
		Bounds: audit.Bounds{Keep: a.config.Server.Audit.Keep, SizeMax: a.config.Server.Audit.SizeMax},
	})
	if err != nil {
		return err
	}
	a.life.atStop(func(context.Context) { a.life.stopFailed("audit record", a.journal.Close()) })
	a.life.follow(a.journal.Run)
	a.copies = &auditCopies{journal: a.journal, pool: a.pool, servers: a.servers, life: a.life, log: a.log}
	return nil
}

// sweepAudit has the door record the refusals that it only counts.
func (a *Agent) sweepAudit(door *front.Front) {
	a.life.follow(func(ctx context.Context) {
		ticker := time.NewTicker(auditSweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				door.SweepAudit(false)
			case <-ctx.Done():
				return
			}
		}
	})
	a.life.atStop(func(context.Context) { door.SweepAudit(true) })
}
