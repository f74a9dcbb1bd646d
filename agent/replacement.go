package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
)

// A server whose log or snapshots are damaged beyond what its log mends may not
// go on under its id: it acknowledged entries that it does not have, and with its
// vote a leader without them could be elected. It comes back as another server
// instead, with a certificate that it signs itself, since it holds the CA: empty,
// without a vote until it has everything from the leader, as any server that is
// new. Autopilot takes the old id out when the new one votes.
//
//	server.next/   the new log's directory, with the new id
//	identity/      exchanged: the new certificate
//	server.damaged-TIME/  the old directory, which is never removed
//
// A crash between any two steps is finished by the next start.
const (
	nextServerDir = serverDir + ".next"
	damagedDir    = serverDir + ".damaged-"

	othersPatience = 10 * time.Second // until a leader of the others must have been seen
	othersAsk      = time.Second      // one server
)

// mayReplace reports whether what ended a start is damage that a server of this
// configuration gets over as another server. An agent that is a node as well
// keeps its id, since its tasks run under it.
func mayReplace(config config.Config, err error) bool {
	var damaged *consensus.CorruptError
	return errors.As(err, &damaged) && damaged.Others == consensus.OthersThere && config.Server.Enabled && !config.Client.Enabled
}

// replace makes the damaged server in a data directory another one. It is done
// only while the other servers have a leader, which lets the new one in: without
// one, what is left of the old log may be all that there is.
func replace(ctx context.Context, config config.Config, log *slog.Logger, now time.Time) error {
	unlock, err := lockDataDir(config.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	id, err := loadIdentity(config.DataDir)
	if err != nil || id == nil || id.ca() == nil {
		return errors.Join(err, errors.New("replace server: it has no identity of a server"))
	}
	where, err := leaderSeen(ctx, config.DataDir, id)
	if err != nil {
		return err
	}
	old := id.credentials.Self.ID
	if err := id.becomeAnother(config, now); err != nil {
		return fmt.Errorf("replace server: %w", err)
	}
	kept, err := finishReplacement(config.DataDir, now)
	if err != nil {
		return err
	}
	log.Error("the log of this server is damaged: it comes back as another server and gets everything from the leader",
		"replaces", old, "kept", kept, logkey.Addr, where)
	return nil
}

// leaderSeen asks the servers that the data directory remembers until one of them
// says that there is a leader.
func leaderSeen(ctx context.Context, dataDir string, id *identity) (addr string, err error) {
	known, err := gossip.KnownFile(filepath.Join(dataDir, knownFile)).Load()
	if err != nil {
		return "", fmt.Errorf("replace server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, othersPatience)
	defer cancel()
	last := errors.New("the data directory remembers none of them")
	for {
		for _, one := range known {
			if one.ID == id.credentials.Self.ID || one.RPCAddr == "" {
				continue
			}
			if last = hasLeader(ctx, one.RPCAddr, id.caPEM()); last == nil {
				return one.RPCAddr, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("replace server: no other server has a leader: %w", last)
		case <-time.After(joinRetryFirst):
		}
	}
}

func hasLeader(ctx context.Context, addr string, caPEM []byte) error {
	ctx, cancel := context.WithTimeout(ctx, othersAsk)
	defer cancel()
	client, err := api.New(api.Config{Address: "https://" + addr, CAPEM: caPEM, RetryFor: -1})
	if err != nil {
		return err
	}
	defer client.Close()
	health, err := client.Health(ctx)
	if err != nil {
		return err
	}
	if health.Server == nil || !health.Server.OK {
		return fmt.Errorf("%s knows no leader", addr)
	}
	return nil
}

// becomeAnother draws a new id, signs a certificate for it, and makes it the
// agent's identity in one step.
func (i *identity) becomeAnother(config config.Config, now time.Time) error {
	next := filepath.Join(i.dir, nextServerDir)
	if err := os.RemoveAll(next); err != nil { // of an attempt before
		return err
	}
	made, err := consensus.EnsureIdentity(next, i.credentials.Self.Cluster)
	if err != nil {
		return err
	}
	issued, err := i.ca().IssueAgent(auth.Grant{Role: auth.RoleServer, ID: made.ServerID, DNSNames: []string{config.Name}, IPs: certIPs(config.Advertise)}, rand.Reader, now)
	if err != nil {
		return err
	}
	files, err := i.files()
	if err != nil {
		return err
	}
	// It founds nothing: it is one that joins.
	for _, name := range []string{founderFile, setupFile, joinServer, joinClient} {
		delete(files, name)
	}
	files[agentFile], files[agentKeyFile] = issued.ChainPEM, issued.KeyPEM
	return files.exchange(i.dir)
}

// finishReplacement puts the log's directory of the new id in the place of the
// old one, which is kept under another name. It does nothing unless there is one
// that is of the identity in the data directory.
func finishReplacement(dataDir string, now time.Time) (kept string, err error) {
	next, place := filepath.Join(dataDir, nextServerDir), filepath.Join(dataDir, serverDir)
	made, found, err := consensus.ReadIdentity(next)
	if err != nil || !found {
		return "", err
	}
	id, err := loadIdentity(dataDir)
	if err != nil || id == nil || id.credentials.Self.ID != made.ServerID {
		return "", err // it was not begun in earnest
	}
	if _, err := os.Stat(place); err == nil {
		if kept, err = freeName(filepath.Join(dataDir, damagedDir+now.UTC().Format("20060102T150405Z"))); err != nil {
			return "", fmt.Errorf("replace server: %w", err)
		}
		if err := os.Rename(place, kept); err != nil {
			return "", fmt.Errorf("replace server: %w", err)
		}
	}
	if err := os.Rename(next, place); err != nil {
		return "", fmt.Errorf("replace server: %w", err)
	}
	return kept, syncDir(dataDir)
}
