package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync/atomic"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// resealBatch is how many secrets one command of a rotation seals anew: at the largest
// they are a quarter of what a command may have.
const resealBatch = 16

// vault seals the values of secrets on a server, and opens them for the nodes that
// need them. Values live in it no longer than a call. Its methods may be called from
// any goroutine.
type vault struct {
	keys     *sealKeys
	store    *state.Store
	proposer *atomic.Pointer[server.Server]
	journal  *journal.Journal
	log      *slog.Logger
}

// openVault opens the vault of a server, and has its keys brought to the others.
func openVault(a *Agent) (*vault, error) {
	keys, err := openSealKeys(a.config.DataDir)
	if err != nil {
		return nil, err
	}
	keys.pool, keys.servers, keys.store, keys.life, keys.log = a.pool, a.servers, a.store, a.life, a.log
	v := &vault{keys: keys, store: a.store, proposer: &a.proposer, journal: a.journal, log: a.log}
	keys.register(a.rpc)
	v.register(a.rpc)
	keys.follow()
	return v, nil
}

// dataKey opens the data key of an id.
func (v *vault) dataKey(ring *structs.SecretKeyring, id string) (*auth.SealKey, error) {
	record := ring.Key(id)
	if record == nil {
		return nil, structs.NewError(structs.CodeConflict, "state.secret_key_unknown", "key", id)
	}
	serverKey := v.keys.key(record.ServerKey)
	if serverKey == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.secret_key_lacking", "key", record.ServerKey)
	}
	key, err := auth.OpenDataKey(serverKey, record)
	if err != nil {
		return nil, structs.NewError(structs.CodeInternal, "agent.secret_unopened", "secret", id).Because(err)
	}
	return key, nil
}

// Seal fills in a secret's sealed value, with the data key that seals now; the first
// secret of a cluster brings one.
func (v *vault) Seal(ctx context.Context, by string, secret *structs.Secret, value []byte) error {
	ring := v.store.Snapshot().SecretKeyring()
	if ring.Current() == nil {
		if err := v.addKey(ctx, by, ""); err != nil && structs.CodeOf(err) != structs.CodeConflict {
			return err
		}
		if ring = v.store.Snapshot().SecretKeyring(); ring.Current() == nil {
			return structs.NewError(structs.CodeUnavailable, "agent.secret_key_lacking", "key", "-")
		}
	}
	key, err := v.dataKey(ring, ring.Current().ID)
	if err != nil {
		return err
	}
	secret.Key, secret.Sealed = ring.Current().ID, key.Seal(value, secret.Binding())
	return nil
}

// addKey puts a new data key into the log, sealed with a new key of the servers.
func (v *vault) addKey(ctx context.Context, by, before string) error {
	serverKey, err := v.keys.newKey(ctx)
	if err != nil {
		return err
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	record := auth.SealDataKey(serverKey, auth.NewSealKey(), hex.EncodeToString(id[:]))
	_, _, err = v.proposer.Load().Submit(ctx, structs.CommandSecretKeyAdd, by, &structs.SecretKeyAdd{Key: record, Before: before})
	return err
}

// open returns a secret's value.
func (v *vault) open(ring *structs.SecretKeyring, secret *structs.Secret) ([]byte, error) {
	key, err := v.dataKey(ring, secret.Key)
	if err != nil {
		return nil, err
	}
	value, err := key.Open(secret.Sealed, secret.Binding())
	if err != nil {
		return nil, structs.NewError(structs.CodeInternal, "agent.secret_unopened", "secret", secret.Name).Because(err)
	}
	return value, nil
}

// Rotate seals every value anew with a new data key, which is sealed with a new key
// of the servers, and has the log forget the data keys of before. What it leaves when
// it is broken off, the next one finishes.
func (v *vault) Rotate(ctx context.Context, by string) (resealed int, err error) {
	before := ""
	if current := v.store.Snapshot().SecretKeyring().Current(); current != nil {
		before = current.ID
	}
	if err := v.addKey(ctx, by, before); err != nil {
		return 0, err
	}
	snapshot := v.store.Snapshot()
	ring := snapshot.SecretKeyring()
	current := ring.Current()
	key, err := v.dataKey(ring, current.ID)
	if err != nil {
		return 0, err
	}
	batch := &structs.SecretsReseal{}
	propose := func() error {
		_, _, err := v.proposer.Load().Submit(ctx, structs.CommandSecretsReseal, by, batch)
		resealed += len(batch.Secrets)
		batch = &structs.SecretsReseal{}
		return err
	}
	for secret := range snapshot.Secrets() {
		if secret.Key == current.ID {
			continue
		}
		value, err := v.open(ring, secret)
		if err != nil {
			return resealed, err
		}
		batch.Secrets = append(batch.Secrets, structs.SecretSealed{
			Ref: secret.Ref(), Version: secret.Version, Key: current.ID, Sealed: key.Seal(value, secret.Binding()),
		})
		clear(value)
		if len(batch.Secrets) == resealBatch {
			if err := propose(); err != nil {
				return resealed, err
			}
		}
	}
	batch.Forget = true
	return resealed, propose()
}

// Lacking lists the fingerprints of keys that the log's secrets need and that this
// server does not have.
func (v *vault) Lacking() []string { return v.keys.lacking() }

// register declares how a node gets the secrets of an allocation.
func (v *vault) register(r *rpc.Server) {
	rpc.Unary(r, structs.MethodServerSecrets, rpc.FromClients,
		func(ctx context.Context, peer rpc.Peer, request *structs.SecretsRequest) (*structs.SecretsReply, error) {
			if _, err := v.proposer.Load().Consistent(ctx); err != nil {
				return nil, err
			}
			return v.deliver(v.store.Snapshot(), peer.ID, request)
		})
}

// deliver opens the secrets of an allocation for the node that runs it, and for
// nobody else; each delivery, and each refusal, is recorded.
func (v *vault) deliver(snapshot *state.Snapshot, nodeID string, request *structs.SecretsRequest) (*structs.SecretsReply, error) {
	job, refusal := secretsOf(snapshot, nodeID, request.AllocID)
	if refusal != nil {
		v.record(nodeID, request.AllocID, structs.SecretRef{}, refusal)
		return nil, refusal
	}
	ring, reply := snapshot.SecretKeyring(), &structs.SecretsReply{}
	for _, use := range job.Task.Secrets {
		ref := use.Ref(job.Project)
		value, version, err := v.valueFor(snapshot, ring, job, use)
		v.record(nodeID, request.AllocID, ref, err)
		if err != nil {
			return nil, err
		}
		reply.Values = append(reply.Values, structs.SecretValue{Use: use, Version: version, Value: value})
	}
	return reply, nil
}

func (v *vault) valueFor(snapshot *state.Snapshot, ring *structs.SecretKeyring, job *structs.Job, use structs.SecretUse) (value []byte, version uint64, err error) {
	secret := snapshot.Secret(use.Ref(job.Project))
	switch {
	case use.User != "" && use.User != job.User:
		return nil, 0, structs.NewError(structs.CodeForbidden, "agent.secret_of_before", "secret", use.Name, "user", use.User)
	case secret == nil:
		return nil, 0, structs.NewError(structs.CodeNotFound, "agent.secret_gone", "secret", use.Name)
	}
	value, err = v.open(ring, secret)
	return value, secret.Version, err
}

// secretsOf is the job whose secrets a node may have for an allocation: one that is
// the node's, and that has not ended. A node that asks for another is told the same
// as for one that is not there. Pure.
func secretsOf(snapshot *state.Snapshot, nodeID, allocID string) (*structs.Job, error) {
	if alloc := snapshot.Alloc(allocID); alloc != nil && alloc.OccupiesNode() {
		view, ok := snapshot.Job(alloc.JobID)
		object := auth.Object{Kind: auth.ObjectSecret, Project: alloc.Project, Node: alloc.NodeID}
		if ok && auth.Allowed(auth.Principal{Kind: auth.KindNode, ID: nodeID}, auth.VerbReveal, object).Allow {
			return view.Job, nil
		}
	}
	return nil, structs.NewError(structs.CodeForbidden, "agent.secrets_not_yours", "alloc", allocID)
}

// record puts a delivery into the audit record.
func (v *vault) record(nodeID, allocID string, ref structs.SecretRef, err error) {
	record := audit.Record{
		Actor: audit.Actor{Kind: string(auth.KindNode), User: nodeID}, Action: audit.ActionSecretUse,
		Object:  audit.Object{Kind: string(auth.ObjectSecret), ID: ref.Name, Part: allocID, Project: ref.Project, Owner: ref.User},
		Outcome: audit.Allowed,
	}
	if err != nil {
		record.Outcome = audit.Failed
		if structs.CodeOf(err) == structs.CodeForbidden {
			record.Outcome = audit.Refused
		}
		if failure := new(structs.Error); errors.As(err, &failure) {
			record.Reason = failure.ID
		}
	}
	if err := v.journal.Append(record); err != nil {
		v.log.Error("a delivery of secrets is not in the audit record", logkey.AllocID, allocID, logkey.Error, err)
	}
}

// channel opens the secret of a person's own that holds where a channel of theirs leads.
func (v *vault) channel(ref structs.SecretRef) ([]byte, error) {
	snapshot := v.store.Snapshot()
	secret := snapshot.Secret(ref)
	if secret == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.secret_gone", "secret", ref.Name)
	}
	return v.open(snapshot.SecretKeyring(), secret)
}

// forRegistry opens a secret that a node signs in to the registry of an image with, at
// the word of somebody who may use it; each is recorded.
func (v *vault) forRegistry(nodeID, image string, ref structs.SecretRef) ([]byte, error) {
	snapshot := v.store.Snapshot()
	secret := snapshot.Secret(ref)
	if secret == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.secret_gone", "secret", ref.Name)
	}
	value, err := v.open(snapshot.SecretKeyring(), secret)
	v.record(nodeID, image, ref, err)
	return value, err
}
