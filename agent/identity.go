package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/filelock"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// What lies in a data directory:
//
//	agent.lock                 held while an agent uses the directory
//	setup-secret               first server only: makes the first token, once
//	join-server, join-client   first server only: the join tokens it printed
//	identity/                  made whole or not at all
//	    agent.pem  agent-key.pem  ca.pem  gossip.key  gossip-keys.json
//	    ca-state.json              once the CA was replaced
//	    ca-key.pem  init.json  servers only
//	    setup-secret  join-server  join-client  founder   first server only
//	server/                    of package consensus
//	client/                    of package client
const (
	lockFile      = "agent.lock"
	setupFile     = "setup-secret"
	joinServer    = "join-server"
	joinClient    = "join-client"
	identityDir   = config.IdentityDir
	agentFile     = config.CertificateFile
	agentKeyFile  = "agent-key.pem"
	caFile        = "ca.pem"
	caKeyFile     = "ca-key.pem"
	caStateFile   = "ca-state.json" // what is known of CAs besides: see storedCA
	gossipKeyFile = "gossip.key"
	gossipSumFile = "gossip.sum"       // of the key, so that a key which somebody changed is told from the cluster's
	gossipOldFile = "gossip-keys.json" // keys beside it, in a rotation
	initFile      = "init.json"
	founderFile   = "founder"
	serverDir     = "server"
	clientDir     = "client"

	gossipKeySize = 32 // bytes, AES-256
)

// identity is who an agent is and what it holds of its cluster's secrets.
type identity struct {
	dir         string            // data directory
	credentials *auth.Credentials // as the agent began; Agent.ident has those in use
	held        atomic.Pointer[authority]
	gossip      gossipKeys

	founderSecrets
}

// sign makes an agent's certificate, for one address besides loopback, so that
// browsers accept the agent there: the one that its connection comes from, or
// that this server's own administrator wrote. What an agent claims is not
// taken: it could claim the address of a server.
func (i *identity) sign(csrPEM []byte, who auth.Identity, now time.Time, address string) ([]byte, error) {
	grant := auth.Grant{Role: who.Role, ID: who.ID, IPs: certIPs(address)}
	held := i.held.Load()
	chain, err := held.ca.SignCSR(csrPEM, grant, rand.Reader, now)
	if err == nil && who.Role == auth.RoleServer {
		chain = append(chain, held.shown(structs.At(now))...)
	}
	return chain, err
}

// credentialsOf are an agent's certificate and key, with what is trusted here.
func (i *identity) credentialsOf(chainPEM, keyPEM []byte) (*auth.Credentials, error) {
	held := i.held.Load()
	credentials, err := auth.ParseCredentials(chainPEM, keyPEM, held.caPEM)
	if err == nil {
		credentials.Trust = held.trust
	}
	return credentials, err
}

func (i *identity) role() auth.Role { return i.credentials.Self.Role }

// lockWait is how long an agent waits for another one to let go of its data
// directory: one that was killed a moment ago is still being taken apart.
const lockWait = 3 * time.Second

// lockDataDir makes the data directory and keeps every other agent out of it
// until unlock is called or the process ends.
func lockDataDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil { // tasks of other users pass through it
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := filelock.Take(file, lockWait); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, structs.NewError(structs.CodeConflict, "agent.refuse.locked", "dir", dir)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// loadIdentity reads the identity in a data directory, nil where there is
// none yet.
func loadIdentity(dir string) (*identity, error) {
	base := filepath.Join(dir, identityDir)
	if _, err := os.Stat(base); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	id, err := readIdentity(dir, base)
	var told *structs.Error
	if errors.As(err, &told) {
		return nil, told
	}
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "agent.refuse.damaged", "dir", base, "reason", err).Because(err)
	}
	return id, nil
}

func readIdentity(dir, base string) (*identity, error) {
	id := &identity{dir: dir}
	id.founderSecrets.dir, id.disk = dir, &id.gossip.mu
	files := map[string][]byte{}
	for _, name := range []string{agentFile, agentKeyFile, caFile, gossipKeyFile} {
		data, err := os.ReadFile(filepath.Join(base, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	var err error
	if id.credentials, err = auth.ParseCredentials(files[agentFile], files[agentKeyFile], files[caFile]); err != nil {
		return nil, err
	}
	held, err := readAuthority(base, id.credentials.Self.Cluster, files[caFile], id.role() == auth.RoleServer)
	if err != nil {
		return nil, err
	}
	id.held.Store(held)
	id.credentials.Trust = held.trust
	key, err := parseGossipKey(strings.TrimSpace(string(files[gossipKeyFile])))
	if err != nil {
		return nil, err
	}
	sum, err := os.ReadFile(filepath.Join(base, gossipSumFile))
	switch {
	case errors.Is(err, fs.ErrNotExist): // an earlier version made it
	case err != nil:
		return nil, err
	case string(sum) != gossipSum(files[gossipKeyFile]):
		return nil, structs.NewError(structs.CodeConflict, "agent.refuse.gossip_key", "file", filepath.Join(base, gossipKeyFile))
	}
	if err := id.gossip.read(base, key); err != nil {
		return nil, err
	}
	if id.role() != auth.RoleServer {
		return id, nil
	}
	data, err := os.ReadFile(filepath.Join(base, initFile))
	if err != nil {
		return nil, err
	}
	id.init = new(structs.ClusterInit)
	if err := json.Unmarshal(data, id.init); err != nil {
		return nil, fmt.Errorf("parse %s: %w", initFile, err)
	}
	_, err = os.Stat(filepath.Join(base, founderFile))
	id.founder = err == nil
	return id, nil
}

// gossipSum is what gossipSumFile says of the content of gossipKeyFile.
func gossipSum(key []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(key))
	return hex.EncodeToString(sum[:]) + "\n"
}

func parseGossipKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != gossipKeySize {
		return nil, errors.New("the gossip key is not 32 bytes in base64")
	}
	return key, nil
}

// check refuses an identity that does not fit the configuration.
func (i *identity) check(config config.Config) error {
	want := auth.RoleClient
	if config.Server.Enabled {
		want = auth.RoleServer
	}
	if i.role() != want {
		return structs.NewError(structs.CodeConflict, "agent.refuse.role", "dir", i.dir, "have", i.role(), "want", want)
	}
	if pin := config.JoinToken.Fingerprint; pin != "" {
		if held := i.held.Load(); !held.knows(pin) {
			ours := auth.Fingerprint(held.trust.Certificates()[0])
			return structs.NewError(structs.CodeConflict, "agent.refuse.cluster", "dir", i.dir, "have", ours[:16], "want", pin[:16])
		}
	}
	if want != auth.RoleServer {
		return nil
	}
	// A server whose log was wiped must come back under a new id, which
	// needs a new certificate.
	stored, found, err := consensus.ReadIdentity(filepath.Join(i.dir, serverDir))
	switch {
	case err != nil:
		return fmt.Errorf("read identity of server: %w", err)
	case !found:
		return structs.NewError(structs.CodeConflict, "agent.refuse.wiped", "dir", filepath.Join(i.dir, serverDir))
	case stored.ServerID != i.credentials.Self.ID || stored.ClusterID != i.credentials.Self.Cluster:
		return structs.NewError(structs.CodeConflict, "agent.refuse.mixed", "dir", i.dir)
	}
	return nil
}

// identityFiles are the files of the identity directory by name.
type identityFiles map[string][]byte

// save writes an identity directory in one step: after a crash it is there
// whole or not at all.
func (files identityFiles) save(dir string) error {
	temporary, err := os.MkdirTemp(dir, identityDir+".new-")
	if err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	defer os.RemoveAll(temporary)
	files = maps.Clone(files)
	files[gossipSumFile] = []byte(gossipSum(files[gossipKeyFile]))
	for name, data := range files {
		if err := writeSynced(filepath.Join(temporary, name), data); err != nil {
			return fmt.Errorf("save identity: %w", err)
		}
	}
	if err := syncDir(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, identityDir)); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	return syncDir(dir)
}

// writeSynced writes a new file with mode 0600 and waits for the disk.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// replaceFile puts data in place of a file in one step, mode 0600.
func replaceFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // gone already when all went well
	_, err = temporary.Write(data)
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = errors.Join(handle.Sync(), handle.Close())
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// foundCluster makes a new cluster with this server as its first: the CA, the
// gossip key, the one-time setup secret, and join tokens for the others.
func foundCluster(config config.Config, addr string, now time.Time) (*identity, error) {
	dir := config.DataDir
	cluster, err := clusterToFound(filepath.Join(dir, serverDir))
	if err != nil {
		return nil, err
	}
	ca, err := auth.NewCA(cluster, rand.Reader, now)
	if err != nil {
		return nil, err
	}
	caKey, err := ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	raft, err := consensus.EnsureIdentity(filepath.Join(dir, serverDir), cluster)
	if err != nil {
		return nil, err
	}
	issued, err := ca.IssueAgent(auth.Grant{Role: auth.RoleServer, ID: raft.ServerID, DNSNames: []string{config.Name}, IPs: certIPs(config.Advertise)}, rand.Reader, now)
	if err != nil {
		return nil, err
	}
	record, files, err := newClusterRecord(ca, addr, now)
	if err != nil {
		return nil, err
	}
	initJSON, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode cluster record: %w", err)
	}
	gossipKey := make([]byte, gossipKeySize)
	rand.Read(gossipKey)
	maps.Copy(files, identityFiles{
		agentFile: issued.ChainPEM, agentKeyFile: issued.KeyPEM, caFile: ca.CertificatePEM(), caKeyFile: caKey,
		gossipKeyFile: []byte(encodeGossipKey(gossipKey) + "\n"), initFile: initJSON, founderFile: nil,
	})
	if err := files.save(dir); err != nil {
		return nil, err
	}
	return loadIdentity(dir)
}

// clusterToFound is the id of the cluster that a founder makes: a new one, or that
// which it began to make when it was ended between its log's directory and its
// own identity. Nobody knows that one yet.
func clusterToFound(dir string) (string, error) {
	begun, found, err := consensus.ReadIdentity(dir)
	if err != nil {
		return "", fmt.Errorf("found cluster: %w", err)
	}
	opened, err := consensus.WasOpened(dir)
	if err != nil {
		return "", fmt.Errorf("found cluster: %w", err)
	}
	if found && !opened {
		return begun.ClusterID, nil
	}
	return randomHex(), nil
}

// newClusterRecord draws the setup secret and the join tokens: what the log
// will know of them, and the files that hold them.
func newClusterRecord(ca *auth.CA, addr string, now time.Time) (*structs.ClusterInit, identityFiles, error) {
	setup, err := auth.GenerateToken(auth.TokenSetup, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	record := &structs.ClusterInit{Cluster: structs.Cluster{
		ID: ca.Cluster, CAFingerprint: ca.Fingerprint(), SetupHash: auth.HashToken(setup),
		ProtocolVersion: wire.ProtocolVersion, CreatedAt: structs.At(now),
	}}
	files := identityFiles{setupFile: []byte(setup + "\n")}
	for file, role := range printedJoins() {
		token, stored, err := auth.GenerateJoinToken(ca.Fingerprint(), addr, role, printedUses(role), printedJoinTTL, rand.Reader, now)
		if err != nil {
			return nil, nil, err
		}
		stored.CreatedBy = "setup"
		record.JoinTokens = append(record.JoinTokens, *stored)
		files[file] = []byte(token.String() + "\n")
	}
	return record, files, nil
}

func certIPs(advertise string) []net.IP {
	if ip := net.ParseIP(advertise); ip != nil {
		return []net.IP{ip}
	}
	return nil
}

func randomHex() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// renewed keeps a new certificate, in memory and on disk. With door, the
// answer to a node that was away, come the CAs that it trusts from now on.
func (i *identity) renewed(chainPEM, keyPEM []byte, door *api.Renewed) (*auth.Credentials, error) {
	// Key and certificate are two files; a crash between them would leave a
	// pair that does not fit, so the whole directory is made anew.
	i.gossip.mu.Lock() // it changes files there, too
	defer i.gossip.mu.Unlock()
	held := i.held.Load()
	if door != nil && door.CA != "" && held.ca == nil && door.CA != string(held.caPEM) {
		trust, err := auth.NewTrust(held.trust.Cluster, []byte(door.CA))
		if err != nil {
			return nil, fmt.Errorf("keep renewed certificate: %w", err)
		}
		held = &authority{caPEM: []byte(door.CA), trust: trust, stored: held.stored}
		held.stored.Past = door.PastCA
	}
	credentials, err := auth.ParseCredentials(chainPEM, keyPEM, held.caPEM)
	if err != nil {
		return nil, err
	}
	credentials.Trust = held.trust
	if held.trust.Issuer(credentials.Certificate.Leaf) == nil {
		return nil, errors.New("keep renewed certificate: it is of a CA that is not trusted")
	}
	if credentials.Self != i.credentials.Self {
		return nil, fmt.Errorf("keep renewed certificate: it is of %s", credentials.Self)
	}
	files, err := i.files()
	if err != nil {
		return nil, fmt.Errorf("keep renewed certificate: %w", err)
	}
	files[agentFile], files[agentKeyFile], files[caFile] = chainPEM, keyPEM, held.caPEM
	if files[caStateFile], err = json.Marshal(held.stored); err != nil {
		return nil, fmt.Errorf("keep renewed certificate: %w", err)
	}
	if err := files.exchange(i.dir); err != nil {
		return nil, err
	}
	i.held.Store(held)
	return credentials, nil
}

// exchange replaces the identity directory in one step (renameat2 with
// RENAME_EXCHANGE).
func (files identityFiles) exchange(dir string) error {
	staging, err := os.MkdirTemp(dir, "renewal-")
	if err != nil {
		return fmt.Errorf("keep renewed certificate: %w", err)
	}
	defer os.RemoveAll(staging)
	if err := files.save(staging); err != nil {
		return err
	}
	if err := exchangePaths(filepath.Join(staging, identityDir), filepath.Join(dir, identityDir)); err != nil {
		return fmt.Errorf("keep renewed certificate: %w", err)
	}
	return syncDir(dir)
}
