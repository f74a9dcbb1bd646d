package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/forward"
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
	if err := a.forwardAudit(); err != nil {
		return err
	}
	a.copies = &auditCopies{journal: a.journal, pool: a.pool, servers: a.servers, life: a.life, log: a.log}
	return nil
}

// forwardAudit begins to send the server's records on, where that is configured.
func (a *Agent) forwardAudit() error {
	targets := map[string]forward.Target{}
	if path := a.config.Server.Audit.File; path != "" {
		targets["file"] = &forward.File{Path: path}
	}
	if to := a.config.Server.Audit.Syslog; to.Address != "" {
		target := &forward.Syslog{Address: to.Address, Host: a.config.Name}
		if to.TLS {
			target.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if to.TLS && to.CA != "" {
			pem, err := os.ReadFile(to.CA)
			if err != nil {
				return fmt.Errorf("read CA of syslog server: %w", err)
			}
			target.TLS.RootCAs = x509.NewCertPool()
			if !target.TLS.RootCAs.AppendCertsFromPEM(pem) {
				return fmt.Errorf("read CA of syslog server: %s holds no certificate", to.CA)
			}
		}
		targets["syslog"] = target
	}
	for name, target := range targets {
		f := &forward.Forwarder{
			Name: name, From: a.journal, To: target, Cursor: filepath.Join(a.config.DataDir, auditDir, name+".sent"), Log: a.log,
		}
		a.life.follow(f.Run)
	}
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
