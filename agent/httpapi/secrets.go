package httpapi

import (
	"context"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// secretHandlers keeps secrets. None of them can tell a value.
type secretHandlers struct {
	*core
	vault    Vault
	members  Membership
	rotating chan struct{} // holds one while a request rotates
}

// Vault is what the doors of secrets need of a server. It opens nothing for them.
type Vault interface {
	// Seal fills in the sealed value of a secret with everything else filled in.
	Seal(ctx context.Context, by string, secret *structs.Secret, value []byte) error
	// Rotate seals every secret anew with new keys.
	Rotate(ctx context.Context, by string) (resealed int, err error)
	// Lacking lists the fingerprints of keys that are needed and not here.
	Lacking() []string
}

// list shows the secrets of the project that the request acts in, and the caller's own.
func (h *secretHandlers) list(r *front.Request) (*api.SecretList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, out := h.store.Snapshot(), api.SecretList{Secrets: []api.SecretInfo{}}
	users := jobsBySecret(r, snapshot)
	show := func(secret *structs.Secret) bool {
		object := secretObject(r, secret.Ref(), secret)
		if !auth.Allowed(r.Caller.Principal, auth.VerbRead, object).Allow {
			return true
		}
		info := api.SecretInfo{
			Name: secret.Name, Project: secret.Project, Own: secret.User != "", Version: secret.Version,
			CreatedAt: secret.CreatedAt, CreatedBy: secret.CreatedBy, UpdatedAt: secret.UpdatedAt, UpdatedBy: secret.UpdatedBy,
			Jobs: users[secret.Ref()], Verbs: []string{},
		}
		if info.Jobs == nil {
			info.Jobs = []api.SecretJob{}
		}
		for _, verb := range auth.Verbs(r.Caller.Principal, object) {
			info.Verbs = append(info.Verbs, string(verb))
		}
		out.Secrets = append(out.Secrets, info)
		return true
	}
	snapshot.SecretsOfProject(r.Caller.Standing.Project)(show)
	if r.Caller.Principal.Kind == auth.KindUser {
		snapshot.SecretsOfUser(r.Caller.Principal.ID)(show)
	}
	return &out, nil
}

// jobsBySecret finds the jobs that have not ended and name secrets, as far as the
// caller may see them.
func jobsBySecret(r *front.Request, snapshot *state.Snapshot) map[structs.SecretRef][]api.SecretJob {
	found := make(map[structs.SecretRef][]api.SecretJob)
	for view := range snapshot.Jobs() {
		job := view.Job
		if len(job.Task.Secrets) == 0 || view.Status.State.Terminal() || !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow {
			continue
		}
		named := make(map[structs.SecretRef]bool, len(job.Task.Secrets))
		for _, use := range job.Task.Secrets {
			if ref := use.Ref(job.Project); !named[ref] {
				named[ref] = true
				found[ref] = append(found[ref], api.SecretJob{ID: job.ID, Name: job.Name, User: job.User})
			}
		}
	}
	return found
}

// set seals a value and puts it into the log. The value is in no message that this
// can answer with.
func (h *secretHandlers) set(r *front.Request, known *structs.Secret, body *api.SecretRequest) (*api.SecretChanged, error) {
	defer clear(body.Value)
	switch size, id := len(body.Value), structs.SecretNameProblem(known.Name); {
	case id != "":
		return nil, structs.NewError(structs.CodeInvalid, id, "name", known.Name, "max", structs.SecretNameMax)
	case size == 0:
		return nil, structs.NewError(structs.CodeInvalid, "secret.empty", "secret", r.ID)
	case size > structs.SecretSizeMax:
		return nil, structs.NewError(structs.CodeTooLarge, "secret.too_large", "secret", r.ID, "size", size, "max", structs.SecretSizeMax)
	}
	// A node that does not know secrets would start tasks without them.
	if err := knownToAll(h.store.Snapshot(), h.members, wire.ProtocolSecrets, "agent.secrets_old"); err != nil {
		return nil, err
	}
	secret := structs.Secret{Project: known.Project, User: known.User, Name: known.Name, Version: known.Version + 1}
	if err := h.vault.Seal(r.Context(), r.Caller.Principal.ID, &secret, body.Value); err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandSecretSet, structs.SecretSet{Secret: secret})
	if err != nil {
		return nil, err
	}
	out := h.told(r, secret.Ref(), index)
	out.Version, out.Unmasked = secret.Version, structs.Unmasked(body.Value)
	return out, nil
}

func (h *secretHandlers) delete(r *front.Request, known *structs.Secret) (*api.SecretChanged, error) {
	if known.Version == 0 {
		return nil, auth.NotFound(auth.ObjectSecret, r.ID)
	}
	index, err := h.propose(r, structs.CommandSecretDelete, structs.SecretDelete{Ref: known.Ref()})
	if err != nil {
		return nil, err
	}
	return h.told(r, known.Ref(), index), nil
}

// told answers a change with the jobs that it reaches.
func (h *secretHandlers) told(r *front.Request, ref structs.SecretRef, index uint64) *api.SecretChanged {
	r.SetIndex(index)
	out := &api.SecretChanged{Index: index, Jobs: jobsBySecret(r, h.store.Snapshot())[ref]}
	if out.Jobs == nil {
		out.Jobs = []api.SecretJob{}
	}
	return out
}

// keys answers operator.secrets.
func (h *secretHandlers) keys(r *front.Request) (*api.SecretKeys, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	return answer(h.showKeys())
}

func (h *secretHandlers) showKeys() api.SecretKeys {
	snapshot := h.store.Snapshot()
	out := api.SecretKeys{Lacking: h.vault.Lacking()}
	if out.Lacking == nil {
		out.Lacking = []string{}
	}
	if ring := snapshot.SecretKeyring(); ring != nil {
		out.Keys = len(ring.Keys)
		out.Current, out.ServerKey = ring.Current().ID, ring.Current().ServerKey
	}
	for range snapshot.Secrets() {
		out.Secrets++
	}
	return out
}

// rotate answers operator.secrets_rotate.
func (h *secretHandlers) rotate(r *front.Request) (*api.SecretKeys, error) {
	select {
	case h.rotating <- struct{}{}:
		defer func() { <-h.rotating }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	resealed, err := h.vault.Rotate(r.Context(), r.Caller.Principal.ID)
	if err != nil {
		return nil, err
	}
	out := h.showKeys()
	out.Resealed = resealed
	return &out, nil
}

// locateSecret finds the secret of a name in the project that the request acts in, or
// the caller's own. One that is not there is a record with its name alone, which
// would be the caller's.
func locateSecret(r *front.Request, snapshot *state.Snapshot) (*structs.Secret, auth.Object, error) {
	q := front.Query{R: r}
	mine := q.Bool("mine")
	if q.Err != nil {
		return nil, auth.Object{}, q.Err
	}
	ref := structs.SecretRef{Project: r.Caller.Standing.Project, Name: r.ID}
	if mine {
		ref = structs.SecretRef{User: r.Caller.Principal.ID, Name: r.ID}
	}
	known := snapshot.Secret(ref)
	if known == nil {
		return &structs.Secret{Project: ref.Project, User: ref.User, Name: ref.Name}, secretObject(r, ref, nil), nil
	}
	r.RestsOn(structs.RestSecret, ref.ID(), known.ModifyIndex)
	return known, secretObject(r, ref, known), nil
}

// secretObject is a secret as the policy sees it: a project's is its maker's, and its
// name is seen by all members.
func secretObject(r *front.Request, ref structs.SecretRef, known *structs.Secret) auth.Object {
	object := auth.Object{Kind: auth.ObjectSecret, ID: ref.Name, Project: r.Caller.Standing.Project, Owner: r.Caller.Principal.ID, Access: auth.AccessReadOnly}
	if ref.User == "" && known != nil {
		object.Owner = known.CreatedBy
	}
	return object
}
