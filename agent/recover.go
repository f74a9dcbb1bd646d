package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// RecoverOptions say from what a server is recovered, and for which cluster.
type RecoverOptions struct {
	DataDir  string           // of the agent, which does not run
	Snapshot string           // archive to begin from instead of what the directory holds; ""
	Addr     string           // host:port under which others reach this server; "": as before
	Peers    []consensus.Peer // the other servers; none: this one is alone
	Now      time.Time
}

// Recovered reports what Recover did.
type Recovered struct {
	ID    string    // of this server
	Until time.Time // when the state was whole last
	Kept  string    // where the log from before lies; "": there was none
}

// Remains reports what the log of the server in a data directory holds. The agent
// must not run.
func Remains(dataDir string) (consensus.Remains, error) {
	remains, err := consensus.Inspect(filepath.Join(dataDir, serverDir))
	return remains, recoverProblem(dataDir, err)
}

// recoverProblem tells a person why the log of a server cannot be read.
func recoverProblem(dataDir string, err error) error {
	var corrupt *consensus.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, consensus.ErrNoIdentity):
		return structs.NewError(structs.CodeNotFound, "agent.recover.nothing", "dir", filepath.Join(dataDir, serverDir)).Because(err)
	case errors.Is(err, consensus.ErrLocked):
		return structs.NewError(structs.CodeConflict, "agent.refuse.locked", "dir", dataDir).Because(err)
	case errors.As(err, &corrupt):
		return structs.NewError(structs.CodeInvalid, "agent.recover.damaged", "file", corrupt.File, "reason", corrupt.Err).Because(err)
	}
	return err
}

// logProblem tells a person why a server does not start on its log. What helps
// depends on whether there are others: one that may be alone keeps what it has.
func logProblem(err error) error {
	var corrupt *consensus.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	hint := map[consensus.Others]string{
		consensus.OthersNone: "agent.refuse.corrupt_alone", consensus.OthersThere: "agent.refuse.corrupt_others", consensus.OthersUnknown: "agent.refuse.corrupt_unknown",
	}
	return structs.NewError(structs.CodeInvalid, "agent.refuse.corrupt", "file", corrupt.File, "index", corrupt.Index,
		"reason", corrupt.Err, "hint_id", hint[corrupt.Others]).Because(err)
}

// Recover makes a server that does not run the beginning of its cluster again,
// from its own log when most other servers are gone, or from an archive when all
// are. The log from before is kept beside the new one. The next start of the
// agent leads, when it is alone or the peers that were named are there too.
func Recover(o RecoverOptions) (Recovered, error) {
	unlock, err := lockDataDir(o.DataDir)
	if err != nil {
		return Recovered{}, err
	}
	defer unlock()
	id, err := loadIdentity(o.DataDir)
	if err != nil {
		return Recovered{}, err
	}
	if id == nil || id.role() != auth.RoleServer {
		return Recovered{}, structs.NewError(structs.CodeNotFound, "agent.recover.no_identity", "dir", filepath.Join(o.DataDir, identityDir))
	}
	scratch, err := os.MkdirTemp(o.DataDir, "recover-")
	if err != nil {
		return Recovered{}, fmt.Errorf("make room for the state: %w", err)
	}
	defer os.RemoveAll(scratch)

	r := recovery{RecoverOptions: o, id: id, scratch: scratch}
	from := r.survivor
	if o.Snapshot != "" {
		from = r.archive
	}
	if err := from(); err != nil {
		return Recovered{}, err
	}
	if err := r.revive(); err != nil {
		return Recovered{}, err
	}
	return r.putInPlace()
}

// recovery is one Recover at work.
type recovery struct {
	RecoverOptions
	id      *identity
	scratch string // directory for files of this recovery
	seed    consensus.Seed
	until   time.Time
	fresh   identityFiles // the identity under a new id; nil: it stays
}

func (r *recovery) file(name string) string { return filepath.Join(r.scratch, name) }

// survivor takes the state from the server's own log.
func (r *recovery) survivor() error {
	to, err := os.Create(r.file("state"))
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	remains, err := consensus.Replay(filepath.Join(r.DataDir, serverDir), server.NewMachine(state.New()), to)
	if err = errors.Join(err, to.Close()); err != nil {
		return recoverProblem(r.DataDir, err)
	}
	if remains.ServerID != r.id.credentials.Self.ID {
		return structs.NewError(structs.CodeConflict, "agent.refuse.mixed", "dir", r.DataDir)
	}
	addr := r.Addr
	for _, peer := range remains.Peers {
		if peer.ID == remains.ServerID && addr == "" {
			addr = peer.Addr
		}
	}
	if addr == "" {
		return structs.NewError(structs.CodeInvalid, "agent.recover.no_address")
	}
	r.until = remains.LastAt
	r.seed = consensus.Seed{
		Identity: remains.Identity, Index: remains.LastIndex, Term: max(remains.Term, remains.LastTerm),
		Peers: append([]consensus.Peer{{ID: remains.ServerID, Addr: addr, Voter: true}}, r.Peers...),
	}
	return nil
}

// archive takes the state from an archive, for a server of a new id: the old one
// may have voted in ways that nobody remembers, and one copy of an identity may
// be the beginning of several servers.
func (r *recovery) archive() error {
	if r.Addr == "" {
		return structs.NewError(structs.CodeInvalid, "agent.recover.no_address")
	}
	from, err := os.Open(r.Snapshot)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.recover.unreadable", "path", r.Snapshot, "reason", err).Because(err)
	}
	defer from.Close()
	to, err := os.Create(r.file("state"))
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	meta, err := consensus.ReadArchive(from, to)
	if err = errors.Join(err, to.Close()); err != nil {
		return snapshotError(err, meta)
	}
	cluster := r.id.credentials.Self.Cluster
	if meta.ClusterID != cluster {
		return structs.NewError(structs.CodeConflict, "agent.recover.foreign", "path", r.Snapshot, "have", meta.ClusterID, "want", cluster)
	}
	r.until = meta.CreatedAt
	identity := consensus.NewIdentity(cluster)
	r.seed = consensus.Seed{
		Identity: identity, Index: meta.Index, Term: meta.Term,
		Peers: append([]consensus.Peer{{ID: identity.ServerID, Addr: r.Addr, Voter: true}}, r.Peers...),
	}
	return r.newIdentity(identity.ServerID)
}

// newIdentity makes the identity's files under another id, without what only the
// founder of the cluster has.
func (r *recovery) newIdentity(serverID string) error {
	grant := auth.Grant{Role: auth.RoleServer, ID: serverID}
	if host, _, err := net.SplitHostPort(r.Addr); err == nil {
		grant.IPs = certIPs(host)
	}
	issued, err := r.id.ca().IssueAgent(grant, rand.Reader, r.Now)
	if err != nil {
		return err
	}
	r.fresh, err = r.id.files()
	if err != nil {
		return err
	}
	for _, name := range []string{founderFile, setupFile, joinServer, joinClient} {
		delete(r.fresh, name)
	}
	r.fresh[agentFile], r.fresh[agentKeyFile] = issued.ChainPEM, issued.KeyPEM
	return nil
}

// revive makes the state fit for a world that went on without it.
func (r *recovery) revive() error {
	from, err := os.Open(r.file("state"))
	if err != nil {
		return fmt.Errorf("read state again: %w", err)
	}
	defer from.Close()
	to, err := os.Create(r.file("revived"))
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	err = state.Revive(from, to, structs.Revival{Now: structs.At(r.Now), Until: structs.At(r.until)})
	if err = errors.Join(err, to.Close()); err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	return nil
}

// putInPlace makes the new log the server's, and keeps the old one. Whenever it is
// interrupted the directory holds one of the two whole, and it can be done again.
func (r *recovery) putInPlace() (Recovered, error) {
	body, err := os.Open(r.file("revived"))
	if err != nil {
		return Recovered{}, fmt.Errorf("read state again: %w", err)
	}
	defer body.Close()
	planted, place := r.file(serverDir), filepath.Join(r.DataDir, serverDir)
	if err := consensus.Plant(planted, r.seed, body); err != nil {
		return Recovered{}, err
	}
	done := Recovered{ID: r.seed.Identity.ServerID, Until: r.until}
	_, err = os.Stat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.Rename(planted, place)
	case err == nil:
		// The name is free before anything moves: what lies in the scratch directory
		// at the end is removed.
		if done.Kept, err = freeName(place + ".before-" + r.Now.UTC().Format("20060102T150405Z")); err != nil {
			break
		}
		if err = exchangePaths(planted, place); err == nil {
			err = os.Rename(planted, done.Kept)
		}
	}
	if err != nil {
		return Recovered{}, fmt.Errorf("put new log in place: %w", err)
	}
	if r.fresh != nil {
		if err := r.fresh.exchange(r.DataDir); err != nil {
			return Recovered{}, err
		}
	}
	return done, syncDir(r.DataDir)
}

// files reads the identity directory.
func (i *identity) files() (identityFiles, error) {
	base := filepath.Join(i.dir, identityDir)
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	files := identityFiles{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(base, entry.Name())); err != nil {
			return nil, fmt.Errorf("read identity: %w", err)
		}
	}
	return files, nil
}

// freeName is a name that nothing has: two recoveries may fall into one second.
func freeName(path string) (string, error) {
	for n, name := 2, path; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", path, n)
	}
}
