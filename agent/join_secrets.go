package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

const (
	// printedJoinTTL and the uses bound the join tokens that the first server
	// prints; whoever needs others makes them by `nomadlike token join create`.
	printedJoinTTL    = time.Hour
	printedServerUses = 6   // with the first one, as many servers as make sense
	printedClientUses = 256 // machines of a first evening
	joinsLookEvery    = 30 * time.Second
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

// forget removes secrets, where people look for them and where they are kept.
func (i *identity) forget(names ...string) error {
	i.gossip.mu.Lock() // a renewal would bring them back with its copy of the directory
	defer i.gossip.mu.Unlock()
	for _, name := range names {
		for _, path := range []string{filepath.Join(i.dir, name), filepath.Join(i.dir, identityDir, name)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove used secret: %w", err)
			}
		}
	}
	return nil
}

// printedJoin is the record of the token in a file, as it was made; nil when
// there is none. The caller holds i.using or is alone.
func (i *identity) printedJoin(file string) *structs.JoinToken {
	for k := range i.init.JoinTokens {
		if i.init.JoinTokens[k].Role == string(printedJoins()[file]) {
			return &i.init.JoinTokens[k]
		}
	}
	return nil
}

// renewJoins makes new join tokens in the place of those that are worth nothing
// any more, before there is a cluster that could make others.
func (i *identity) renewJoins(addr string, now time.Time) error {
	i.using.Lock()
	defer i.using.Unlock()
	base, changed := filepath.Join(i.dir, identityDir), false
	for file, role := range printedJoins() {
		stored := i.printedJoin(file)
		if stored != nil && stored.ExpiresAt.Time().After(now) && stored.UsesLeft != 0 {
			continue
		}
		token, made, err := auth.GenerateJoinToken(i.ca().Fingerprint(), addr, role, printedUses(role), printedJoinTTL, rand.Reader, now)
		if err != nil {
			return err
		}
		made.CreatedBy = "setup"
		if stored == nil {
			i.init.JoinTokens = append(i.init.JoinTokens, *made)
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
	data, err := json.MarshalIndent(i.init, "", "  ")
	if err == nil {
		err = replaceFile(filepath.Join(base, initFile), data)
	}
	if err != nil {
		return fmt.Errorf("renew join tokens: %w", err)
	}
	return nil
}

// spent lists the files of join tokens that nobody can join with any more. left
// gives the record that counts, nil for a token that was deleted.
func (i *identity) spent(now time.Time, left func(id string) *structs.JoinToken) (files []string) {
	i.using.Lock()
	defer i.using.Unlock()
	for file := range printedJoins() {
		stored := i.printedJoin(file)
		if stored != nil && left != nil {
			stored = left(stored.ID)
		}
		if stored == nil || !stored.ExpiresAt.Time().After(now) || stored.UsesLeft == 0 {
			files = append(files, file)
		}
	}
	return files
}

// forgetJoins removes the files of the printed join tokens once these are worth
// nothing: they are secrets until then, and mislead after it.
func (a *Agent) forgetJoins() {
	tick := time.NewTicker(joinsLookEvery)
	defer tick.Stop()
	for {
		snapshot := a.store.Snapshot()
		var left func(string) *structs.JoinToken
		if snapshot.Cluster() != nil {
			left = snapshot.JoinToken
		}
		spent := a.identity.spent(time.Now(), left)
		if err := a.identity.forget(spent...); err != nil {
			a.log.Warn("join tokens that are worth nothing stay on disk", logkey.Error, err)
		} else if len(spent) == len(printedJoins()) {
			return
		}
		select {
		case <-tick.C:
		case <-a.life.stopping:
			return
		}
	}
}

// record is a copy of the cluster's record as it stands now.
func (i *identity) record() *structs.ClusterInit {
	i.using.Lock()
	defer i.using.Unlock()
	copied := *i.init
	copied.JoinTokens = append([]structs.JoinToken(nil), i.init.JoinTokens...)
	return &copied
}

// UseJoinToken takes one use of a token that the founder made before there
// was a log, and remembers it on disk before anybody is let in.
func (i *identity) UseJoinToken(body *api.JoinRequest, role auth.Role, now time.Time) error {
	i.using.Lock()
	defer i.using.Unlock()
	var stored *structs.JoinToken
	for k := range i.init.JoinTokens {
		if i.init.JoinTokens[k].ID == body.TokenID {
			stored = &i.init.JoinTokens[k]
		}
	}
	if err := auth.CheckJoin(stored, body.Secret, role, now); err != nil {
		return err
	}
	if stored.UsesLeft == auth.JoinUsesUnlimited {
		return nil
	}
	stored.UsesLeft--
	data, err := json.MarshalIndent(i.init, "", "  ")
	if err == nil {
		i.gossip.mu.Lock() // a renewal would bring the use back with its copy of the directory
		err = replaceFile(filepath.Join(i.dir, identityDir, initFile), data)
		i.gossip.mu.Unlock()
	}
	if err != nil {
		stored.UsesLeft++
		return err
	}
	return nil
}
