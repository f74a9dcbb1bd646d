package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// How a joiner waits for servers that are not there yet.
const (
	joinRetryFirst = 50 * time.Millisecond
	joinRetryMax   = 2 * time.Second
	joinAttempt    = 15 * time.Second // one exchange with one server
)

// joinCluster makes this agent a member: it dials the servers that the join
// token and the configuration name, pins the CA, tells the secret, and keeps
// the certificate that it gets. It tries until ctx ends, unless a server
// refuses it, always with the same key: a server that let it in and whose answer
// was lost knows it by that.
func joinCluster(ctx context.Context, config config.Config, log *slog.Logger) (*identity, []string, error) {
	addresses := joinAddresses(config)
	if len(addresses) == 0 {
		return nil, nil, structs.NewError(structs.CodeInvalid, "agent.refuse.no_address")
	}
	asked := joiner{config: config}
	for wait := joinRetryFirst; ; wait = min(2*wait, joinRetryMax) {
		for _, addr := range addresses {
			id, servers, err := asked.joinAt(ctx, addr)
			if err == nil {
				log.Info("joined cluster", "cluster", id.credentials.Self.Cluster, logkey.Addr, addr, "id", id.credentials.Self.ID)
				return id, servers, nil
			}
			if ctx.Err() != nil {
				return nil, nil, fmt.Errorf("join cluster: %w", ctx.Err())
			}
			if !isUnanswered(err) {
				return nil, nil, structs.NewError(structs.CodeOf(err), "agent.refuse.joined", "address", addr, "reason", err).Because(err)
			}
			log.Info("waiting for a server to join", logkey.Addr, addr, logkey.Error, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, fmt.Errorf("join cluster: %w", ctx.Err())
		case <-timer.C:
		}
	}
}

// isUnanswered reports whether an attempt failed for want of an answer: of a
// server that is away or has no leader, or whose answer came late or in part.
func isUnanswered(err error) bool {
	var told *structs.Error
	if errors.As(err, &told) {
		return told.Code == structs.CodeUnavailable || told.Code == structs.CodeTimeout
	}
	var network *net.OpError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// joinAddresses lists where to join, without repetitions.
func joinAddresses(config config.Config) []string {
	var addresses []string
	if config.JoinToken.Addr != "" {
		addresses = append(addresses, config.JoinToken.Addr)
	}
	for _, addr := range config.Client.Servers {
		if !slices.Contains(addresses, addr) {
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

// joiner is an agent on its way into a cluster.
type joiner struct {
	config config.Config

	agentID  string // "" until the first server was found that could be told
	csr, key []byte // of that id, PEM
}

// prepare makes the joiner's id and key, once. A server has its id of its data
// directory, which is of one cluster.
func (j *joiner) prepare(role auth.Role, cluster string) error {
	agentID := j.agentID
	if role == auth.RoleServer {
		raft, err := consensus.EnsureIdentity(filepath.Join(j.config.DataDir, serverDir), cluster)
		if err != nil {
			return err
		}
		agentID = raft.ServerID
	} else if agentID == "" {
		agentID = randomHex()
	}
	if agentID == j.agentID {
		return nil
	}
	csr, key, err := auth.NewCSR(role, agentID, rand.Reader)
	if err != nil {
		return err
	}
	j.agentID, j.csr, j.key = agentID, csr, key
	return nil
}

// joinAt asks one server.
func (j *joiner) joinAt(ctx context.Context, addr string) (*identity, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, joinAttempt)
	defer cancel()
	config, token := j.config, j.config.JoinToken
	caPEM, err := api.FetchCA(ctx, addr, token.Fingerprint)
	if err != nil {
		return nil, nil, err
	}
	trust, err := auth.NewTrust("", caPEM)
	if err != nil {
		return nil, nil, err
	}
	role := auth.RoleClient
	if config.Server.Enabled {
		role = auth.RoleServer
	}
	if err := j.prepare(role, trust.Cluster); err != nil {
		return nil, nil, err
	}
	client, err := api.New(api.Config{Address: addr, CAFingerprint: token.Fingerprint, RetryFor: -1})
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	joined, err := client.Join(ctx, api.JoinRequest{
		TokenID: token.ID, Secret: token.Secret, Role: string(role), AgentID: j.agentID, Name: config.Name, CSR: string(j.csr),
	})
	if err != nil {
		return nil, nil, err
	}
	if joined.CA != "" { // all that are trusted while one takes another's place
		caPEM = []byte(joined.CA)
	}
	id, err := saveJoined(config.DataDir, joined, caPEM, j.key, auth.Identity{Cluster: trust.Cluster, Role: role, ID: j.agentID})
	return id, joined.Servers, err
}

// saveJoined checks what a server gave and makes it the agent's identity.
func saveJoined(dir string, joined *api.Joined, caPEM, keyPEM []byte, want auth.Identity) (*identity, error) {
	credentials, err := auth.ParseCredentials([]byte(joined.Certificate), keyPEM, caPEM)
	if err != nil {
		return nil, fmt.Errorf("read certificate from server: %w", err)
	}
	if credentials.Self != want {
		return nil, fmt.Errorf("read certificate from server: it is of %s, not of %s", credentials.Self, want)
	}
	gossipKey, err := parseGossipKey(joined.GossipKey)
	if err != nil {
		return nil, err
	}
	files := identityFiles{
		agentFile: []byte(joined.Certificate), agentKeyFile: keyPEM, caFile: caPEM,
		gossipKeyFile: []byte(encodeGossipKey(gossipKey) + "\n"),
	}
	kept := storedCA{Past: joined.PastCA}
	if joined.NextCA != "" {
		kept.Offered = &offeredCA{[]byte(joined.NextCA), []byte(joined.NextCAKey)}
	}
	if files[caStateFile], err = json.Marshal(kept); err != nil {
		return nil, fmt.Errorf("encode CAs of before: %w", err)
	}
	if want.Role == auth.RoleServer {
		if joined.Init == nil {
			return nil, errors.New("read answer of server: the cluster's record is missing")
		}
		if _, err := auth.ParseCA(caPEM, []byte(joined.CAKey), want.Cluster); err != nil {
			return nil, fmt.Errorf("read key of CA from server: %w", err)
		}
		if files[initFile], err = json.MarshalIndent(joined.Init, "", "  "); err != nil {
			return nil, fmt.Errorf("encode cluster record: %w", err)
		}
		files[caKeyFile] = []byte(joined.CAKey)
	}
	if err := files.save(dir); err != nil {
		return nil, err
	}
	return loadIdentity(dir)
}
