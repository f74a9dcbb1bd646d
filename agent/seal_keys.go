package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	sealKeysFile  = "secret-keys.json" // in the data directory of servers, mode 0600
	sealKeysMax   = 32                 // the newest, and those that the log names
	sealBringLook = time.Second        // between looks whether another server may lack a key
	sealBringAll  = 5 * time.Minute    // until a server that had all is brought them again
)

// sealKeys are the servers' keys, with which the log's data keys are sealed. They lie
// on the servers' disks and nowhere else: not in the log, so neither in snapshots nor
// in backups. Each server brings the others what it has, at the addresses at which it
// knows them; nobody can ask for one. Older keys stay, for snapshots of before.
// Its methods may be called from any goroutine.
type sealKeys struct {
	path    string
	pool    *rpc.Pool
	servers *servers
	store   *state.Store
	life    *lifecycle
	log     *slog.Logger

	mu struct {
		sync.Mutex
		keys    []*auth.SealKey // oldest first
		changed chan struct{}   // closed when a key comes; then there is another
	}
}

// storedSealKeys is the content of sealKeysFile.
type storedSealKeys struct {
	Keys [][]byte `json:"keys"`
}

// openSealKeys reads the keys of a data directory; without a file there are none.
func openSealKeys(dataDir string) (*sealKeys, error) {
	s := &sealKeys{path: filepath.Join(dataDir, sealKeysFile)}
	s.mu.changed = make(chan struct{})
	keys, err := readSealKeys(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	s.mu.keys = keys
	return s, err
}

// readSealKeys reads a file of keys, or a copy that was written out.
func readSealKeys(path string) (keys []*auth.SealKey, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var stored storedSealKeys
	if json.Unmarshal(data, &stored) != nil { // its error would repeat bytes of the file
		return nil, structs.NewError(structs.CodeInvalid, "agent.secret_keys_damaged", "path", path)
	}
	for _, bytes := range stored.Keys {
		key, err := auth.ParseSealKey(bytes)
		if err != nil {
			return nil, structs.NewError(structs.CodeInvalid, "agent.secret_keys_damaged", "path", path)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// key returns a key by its fingerprint; nil when it is not here.
func (s *sealKeys) key(fingerprint string) *auth.SealKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.mu.keys {
		if key.Fingerprint() == fingerprint {
			return key
		}
	}
	return nil
}

// all lists the keys, oldest first, with a channel that is closed when another comes.
func (s *sealKeys) all() ([]*auth.SealKey, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.keys), s.mu.changed
}

// keep writes a key to the disk, and then has it.
func (s *sealKeys) keep(key *auth.SealKey) error {
	named := s.named()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.mu.keys, func(k *auth.SealKey) bool { return k.Fingerprint() == key.Fingerprint() }) {
		return nil
	}
	keys := append(slices.Clone(s.mu.keys), key)
	for i := 0; len(keys) > sealKeysMax && i < len(keys)-1; {
		if named[keys[i].Fingerprint()] {
			i++
			continue
		}
		keys = slices.Delete(keys, i, i+1)
	}
	if err := writeSealKeys(s.path, keys); err != nil {
		return fmt.Errorf("keep key of the servers: %w", err)
	}
	s.mu.keys = keys
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
	return nil
}

func writeSealKeys(path string, keys []*auth.SealKey) error {
	var stored storedSealKeys
	for _, key := range keys {
		stored.Keys = append(stored.Keys, key.Bytes())
	}
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return replaceFile(path, data)
}

// named are the fingerprints of the keys that the log needs.
func (s *sealKeys) named() map[string]bool {
	named := map[string]bool{}
	if s.store == nil {
		return named
	}
	if ring := s.store.Snapshot().SecretKeyring(); ring != nil {
		for i := range ring.Keys {
			named[ring.Keys[i].ServerKey] = true
		}
	}
	return named
}

// lacking lists the keys that the log needs and that are not here.
func (s *sealKeys) lacking() []string {
	var lacking []string
	for fingerprint := range s.named() {
		if s.key(fingerprint) == nil {
			lacking = append(lacking, fingerprint)
		}
	}
	slices.Sort(lacking)
	return lacking
}

// register declares how servers bring each other keys.
func (s *sealKeys) register(r *rpc.Server) {
	rpc.Unary(r, structs.MethodServerOfferSeal, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.ServerKeyOffer) (*structs.ServerKeyKept, error) {
			if s.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			key, err := auth.ParseSealKey(offer.Key)
			if err != nil {
				return nil, structs.NewError(structs.CodeInvalid, "agent.secret_key_malformed")
			}
			return &structs.ServerKeyKept{}, s.keep(key)
		})
}

// offer brings one server one key.
func (s *sealKeys) offer(ctx context.Context, to server.Agent, key *auth.SealKey) error {
	_, err := askServer[structs.ServerKeyOffer, structs.ServerKeyKept](ctx, s.pool, to, structs.MethodServerOfferSeal,
		&structs.ServerKeyOffer{Key: key.Bytes()})
	return err
}

// newKey makes a key that more than half of the servers have, before anything is
// sealed with it: a server that dies must not take it along.
func (s *sealKeys) newKey(ctx context.Context) (*auth.SealKey, error) {
	key := auth.NewSealKey()
	if err := s.keep(key); err != nil {
		return nil, err
	}
	peers := s.servers.raft.Load().Peers()
	answers := make(chan error, len(peers))
	asked := 0
	for _, peer := range peers {
		if peer.ID == s.servers.self {
			continue
		}
		asked++
		s.life.run(func() {
			answers <- s.offer(ctx, server.Agent{ID: peer.ID, Addr: peer.Addr, Role: auth.RoleServer}, key)
		})
	}
	have, failure := 1, error(nil)
	for range asked {
		if err := <-answers; err == nil {
			have++
		} else {
			failure = err
		}
	}
	if have <= len(peers)/2 {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.rotation_servers", "have", have, "servers", len(peers)).Because(failure)
	}
	return key, nil
}

// follow brings the other servers the keys that they may lack, for as long as the
// agent runs.
func (s *sealKeys) follow() {
	s.life.follow(func(ctx context.Context) {
		type pair struct{ server, key string }
		brought := map[pair]time.Time{}
		ticker := time.NewTicker(sealBringLook)
		defer ticker.Stop()
		for {
			keys, changed := s.all()
			for _, other := range s.servers.others() {
				for _, key := range keys {
					to := pair{other.ID + " " + other.Addr, key.Fingerprint()}
					if at, done := brought[to]; done && time.Since(at) < sealBringAll {
						continue
					}
					if err := s.offer(ctx, other, key); err != nil {
						s.log.Debug("bring a key of the servers", logkey.Addr, other.Addr, logkey.Error, err)
						break // it may be away, or of a version before
					}
					brought[to] = time.Now()
				}
			}
			select {
			case <-ticker.C:
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
}
