package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"nomadlike/agent/config"
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
func openAudit(c *config.Config, id string, life *lifecycle, log *slog.Logger) (*journal.Journal, error) {
	j, err := journal.Open(journal.Config{
		Dir: filepath.Join(c.DataDir, auditDir), Server: id, Now: time.Now, Log: log, Fail: life.fail,
		Bounds: audit.Bounds{Keep: c.Server.Audit.Keep, SizeMax: c.Server.Audit.SizeMax},
	})
	if err != nil {
		return nil, err
	}
	life.atStop(func(context.Context) { life.stopFailed("audit record", j.Close()) })
	life.follow(j.Run)
	return j, forwardAudit(c, j, life, log)
}

// forwardAudit begins to send the server's records on, where that is configured.
func forwardAudit(c *config.Config, j *journal.Journal, life *lifecycle, log *slog.Logger) error {
	targets := map[string]forward.Target{}
	if path := c.Server.Audit.File; path != "" {
		targets["file"] = &forward.File{Path: path}
	}
	if to := c.Server.Audit.Syslog; to.Address != "" {
		target := &forward.Syslog{Address: to.Address, Host: c.Name}
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
			Name: name, From: j, To: target, Cursor: filepath.Join(c.DataDir, auditDir, name+".sent"), Log: log,
		}
		life.follow(f.Run)
	}
	return nil
}

// sweepAudit has the door record the refusals that it only counts.
func sweepAudit(life *lifecycle, door *front.Front) {
	life.follow(func(ctx context.Context) {
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
	life.atStop(func(context.Context) { door.SweepAudit(true) })
}
