package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	// printedJoinTTL and the uses bound the join tokens that the first server
	// prints; whoever needs others makes them by `nomadlike token join create`.
	printedJoinTTL    = time.Hour
	printedServerUses = 6   // with the first one, as many servers as make sense
	printedClientUses = 256 // machines of a first evening
	joinsLookEvery    = 30 * time.Second
	useRemembered     = 10 * time.Minute // for an agent whose answer was lost
)

// printedJoins are the join tokens of the first server, by the names of their
// files.
func printedJoins() map[string]auth.Role {
	return map[string]auth.Role{joinServer: auth.RoleServer, joinClient: auth.RoleClient}
}

// printedUses is how many agents may join with the printed token of a role.
func printedUses(role auth.Role) int {
	if role == auth.RoleServer {
		return printedServerUses
	}
	return printedClientUses
}

// founderSecrets are the secrets that a cluster begins with, and the record of them:
// the setup secret and the join tokens that its first server prints. On other
// servers it is the record alone, on nodes nothing. Its methods may be called from
// any goroutine.
type founderSecrets struct {
	dir     string               // data directory
	disk    *sync.Mutex          // held while the identity directory is changed
	init    *structs.ClusterInit // servers only: the cluster's record for the log
	founder bool                 // this server made the cluster

	using sync.Mutex           // guards what follows, and init.JoinTokens, which are used up before there is a log
	uses  map[string]time.Time // by auth.JoinUse, when it was taken
}

// forget removes secrets, where people look for them and where they are kept.
func (s *founderSecrets) forget(names ...string) error {
	s.disk.Lock() // a renewal would bring them back with its copy of the directory
	defer s.disk.Unlock()
	for _, name := range names {
		for _, path := range []string{filepath.Join(s.dir, name), filepath.Join(s.dir, identityDir, name)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove used secret: %w", err)
			}
		}
	}
	return nil
}

// printedJoin is the record of the token in a file, as it was made; nil when
// there is none. The caller holds s.using or is alone.
func (s *founderSecrets) printedJoin(file string) *structs.JoinToken {
	for k := range s.init.JoinTokens {
		if s.init.JoinTokens[k].Role == string(printedJoins()[file]) {
			return &s.init.JoinTokens[k]
		}
	}
	return nil
}

// renewJoins makes new join tokens in the place of those that are worth nothing
// any more, before there is a cluster that could make others; fingerprint is the CA's.
func (s *founderSecrets) renewJoins(fingerprint, addr string, now time.Time) error {
	s.using.Lock()
	defer s.using.Unlock()
	base, changed := filepath.Join(s.dir, identityDir), false
	for file, role := range printedJoins() {
		stored := s.printedJoin(file)
		if stored != nil && stored.ExpiresAt.Time().After(now) && stored.UsesLeft != 0 {
			continue
		}
		token, made, err := auth.GenerateJoinToken(fingerprint, addr, role, printedUses(role), printedJoinTTL, rand.Reader, now)
		if err != nil {
			return err
		}
		made.CreatedBy = "setup"
		if stored == nil {
			s.init.JoinTokens = append(s.init.JoinTokens, *made)
		} else {
			*stored = *made
		}
		if err := replaceFile(filepath.Join(base, file), []byte(token.String()+"\n")); err != nil {
			return fmt.Errorf("renew join token: %w", err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	data, err := json.MarshalIndent(s.init, "", "  ")
	if err == nil {
		err = replaceFile(filepath.Join(base, initFile), data)
	}
	if err != nil {
		return fmt.Errorf("renew join tokens: %w", err)
	}
	return nil
}

// spent lists the files of join tokens that nobody can join with any more. left
// returns the record that counts, nil for a token that was deleted.
func (s *founderSecrets) spent(now time.Time, left func(id string) *structs.JoinToken) (files []string) {
	s.using.Lock()
	defer s.using.Unlock()
	for file := range printedJoins() {
		stored := s.printedJoin(file)
		if stored != nil && left != nil {
			stored = left(stored.ID)
		}
		if stored == nil || !stored.ExpiresAt.Time().After(now) || stored.UsesLeft == 0 {
			files = append(files, file)
		}
	}
	return files
}

// forgetSpent removes the files of the printed join tokens once these are worth
// nothing: they are secrets until then, and mislead after it.
// It returns when all are gone, or stopping is closed.
func (s *founderSecrets) forgetSpent(store *state.Store, stopping <-chan struct{}, log *slog.Logger) {
	tick := time.NewTicker(joinsLookEvery)
	defer tick.Stop()
	for {
		snapshot := store.Snapshot()
		var left func(string) *structs.JoinToken
		if snapshot.Cluster() != nil {
			left = snapshot.JoinToken
		}
		spent := s.spent(time.Now(), left)
		if err := s.forget(spent...); err != nil {
			log.Warn("join tokens that are worth nothing stay on disk", logkey.Error, err)
		} else if len(spent) == len(printedJoins()) {
			return
		}
		select {
		case <-tick.C:
		case <-stopping:
			return
		}
	}
}

// record is a copy of the cluster's record as it stands now.
func (s *founderSecrets) record() *structs.ClusterInit {
	s.using.Lock()
	defer s.using.Unlock()
	copied := *s.init
	copied.JoinTokens = append([]structs.JoinToken(nil), s.init.JoinTokens...)
	return &copied
}

// UseJoinToken takes one use of a token that the founder made before there
// was a log, and remembers it on disk before anybody is let in. An agent that was
// let in and asks again, with the same key and before this server starts again, did
// not get its answer: that takes no use.
func (s *founderSecrets) UseJoinToken(body *api.JoinRequest, role auth.Role, now time.Time) error {
	s.using.Lock()
	defer s.using.Unlock()
	var stored *structs.JoinToken
	for k := range s.init.JoinTokens {
		if s.init.JoinTokens[k].ID == body.TokenID {
			stored = &s.init.JoinTokens[k]
		}
	}
	use, err := auth.NewJoinUse(body.TokenID, role, body.AgentID, []byte(body.CSR))
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.join_request", "reason", err)
	}
	refusal := auth.CheckJoin(stored, body.Secret, role, now)
	name := use.Name(0)
	if at, known := s.uses[name]; known && now.Sub(at) < useRemembered && (refusal == nil || auth.IsSpentJoin(refusal)) {
		return nil
	}
	if refusal != nil {
		return refusal
	}
	if stored.UsesLeft == auth.JoinUsesUnlimited {
		return nil
	}
	stored.UsesLeft--
	data, err := json.MarshalIndent(s.init, "", "  ")
	if err == nil {
		s.disk.Lock() // a renewal would bring the use back with its copy of the directory
		err = replaceFile(filepath.Join(s.dir, identityDir, initFile), data)
		s.disk.Unlock()
	}
	if err != nil {
		stored.UsesLeft++
		return err
	}
	maps.DeleteFunc(s.uses, func(_ string, at time.Time) bool { return now.Sub(at) >= useRemembered })
	if s.uses == nil {
		s.uses = map[string]time.Time{}
	}
	s.uses[name] = now
	return nil
}

// publish puts the founder's secrets where people and scripts look for them,
// readable by the owner of the data directory alone. Whoever finds them finds
// an agent that answers.
func (s *founderSecrets) publish() error {
	if !s.founder {
		return nil
	}
	for _, name := range []string{setupFile, joinServer, joinClient} {
		secret, err := os.ReadFile(filepath.Join(s.dir, identityDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was used
		}
		if there, readErr := os.ReadFile(filepath.Join(s.dir, name)); err == nil && readErr == nil && bytes.Equal(there, secret) {
			continue // what is unchanged is not written, least of all on a full disk
		}
		if err == nil {
			err = replaceFile(filepath.Join(s.dir, name), secret)
		}
		if err != nil {
			return fmt.Errorf("publish %s: %w", name, err)
		}
	}
	return nil
}

// SetupDone forgets the setup secret, of which only the founder has a copy.
func (s *founderSecrets) SetupDone() error {
	if !s.founder {
		return nil
	}
	return s.forget(setupFile)
}
