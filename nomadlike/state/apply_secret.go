package state

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// applySecretSet makes a secret, or gives it its next version. Nothing here can tell
// what the value is: it came sealed.
func applySecretSet(tx *txn, body *structs.SecretSet) (structs.ApplyResult, *structs.Error) {
	secret := body.Secret
	if problem := secretProblem(&secret); problem != "" {
		return refuse(structs.CodeInvalid, "state.secret_malformed", "field", problem)
	}
	if tx.secretKeyring().Key(secret.Key) == nil {
		return refuse(structs.CodeConflict, "state.secret_key_unknown", "key", secret.Key)
	}
	known, there := get[*structs.Secret](tx, tableSecrets, secretKey(secret.Ref()))
	id, before := "event.secret.changed", uint64(0)
	if there {
		before = known.Version
		secret.CreatedAt, secret.CreatedBy = known.CreatedAt, known.CreatedBy
	} else {
		if refusal := tx.roomForSecret(&secret); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
		id, secret.CreatedAt, secret.CreatedBy = "event.secret.created", tx.now, tx.by
	}
	if secret.Version != before+1 {
		return refuse(structs.CodeConflict, "state.secret_changed", "secret", secret.Name)
	}
	secret.UpdatedAt, secret.UpdatedBy = tx.now, tx.by
	tx.putSecret(&secret)
	tx.tellSecret(id, secret.Ref())
	return accepted()
}

// roomForSecret refuses what would be one secret too many.
func (tx *txn) roomForSecret(secret *structs.Secret) *structs.Error {
	if len(listRows[*structs.Secret](tx, tableSecrets, indexID, secretScopeKey(secret.Project, secret.User))) >= structs.SecretsPerScope {
		return structs.NewError(structs.CodeTooLarge, "state.secrets_full", "max", structs.SecretsPerScope, "scope", cmp.Or(secret.Project, secret.User))
	}
	if len(listRows[*structs.Secret](tx, tableSecrets, indexID, nil)) >= structs.SecretsMax {
		return structs.NewError(structs.CodeTooLarge, "state.secrets_full", "max", structs.SecretsMax, "scope", "cluster")
	}
	return nil
}

func (tx *txn) putSecret(secret *structs.Secret) {
	secret.ModifyIndex = tx.index()
	tx.put(tableSecrets, secretKey(secret.Ref()), secret)
}

// tellSecret tells of a project's secret. That somebody has one of their own, and how
// it is called, is nobody else's business.
func (tx *txn) tellSecret(id string, ref structs.SecretRef) {
	if ref.User == "" {
		tx.tell(structs.Event{Topic: topicSecret, ID: id, Project: ref.Project}, "secret", ref.Name, "project", ref.Project, "by", tx.by)
	}
}

// applySecretDelete removes a secret. Jobs that name it start no more.
func applySecretDelete(tx *txn, body *structs.SecretDelete) (structs.ApplyResult, *structs.Error) {
	known, there := get[*structs.Secret](tx, tableSecrets, secretKey(body.Ref))
	if !there {
		return refuse(structs.CodeNotFound, "state.secret_unknown", "secret", body.Ref.Name)
	}
	tx.remove(tableSecrets, secretKey(body.Ref), known)
	tx.tellSecret("event.secret.deleted", body.Ref)
	return accepted()
}

// removeSecretsOf removes the secrets that are a user's own.
func (tx *txn) removeSecretsOf(user string) {
	for _, secret := range listRows[*structs.Secret](tx, tableSecrets, indexID, secretScopeKey("", user)) {
		tx.remove(tableSecrets, secretKey(secret.Ref()), secret)
	}
}

func (tx *txn) secretKeyring() *structs.SecretKeyring {
	ring, _ := get[*structs.SecretKeyring](tx, tableSecretKeys, metaKey())
	return ring
}

// applySecretKeyAdd makes a data key the one that seals from now on.
func applySecretKeyAdd(tx *txn, body *structs.SecretKeyAdd) (structs.ApplyResult, *structs.Error) {
	key := body.Key
	if !validKey(key.ID) || !validKey(key.ServerKey) || len(key.Sealed) == 0 || len(key.Sealed) > 32+structs.SealedOverhead {
		return refuse(structs.CodeInvalid, "state.secret_malformed", "field", "key")
	}
	ring := tx.secretKeyring()
	present := ""
	if current := ring.Current(); current != nil {
		present = current.ID
	}
	switch {
	case body.Before != present || ring.Key(key.ID) != nil:
		return refuse(structs.CodeConflict, "state.secret_key_changed")
	case ring != nil && len(ring.Keys) >= structs.SecretKeysMax:
		return refuse(structs.CodeConflict, "state.secret_keys_full", "max", structs.SecretKeysMax)
	}
	next := &structs.SecretKeyring{}
	if ring != nil {
		next.Keys = slices.Clone(ring.Keys)
	}
	key.CreatedAt = tx.now
	next.Keys = append(next.Keys, key)
	tx.putSecretKeyring(next)
	tx.tell(structs.Event{Topic: topicCluster, ID: "event.secret.key"}, "by", cmp.Or(tx.by, "-"))
	return accepted()
}

func (tx *txn) putSecretKeyring(ring *structs.SecretKeyring) {
	ring.ModifyIndex = tx.index()
	tx.put(tableSecretKeys, metaKey(), ring)
}

// applySecretsReseal puts values that were sealed anew in the place of the same
// values, and forgets data keys that nothing needs.
func applySecretsReseal(tx *txn, body *structs.SecretsReseal) (structs.ApplyResult, *structs.Error) {
	ring := tx.secretKeyring()
	if ring == nil || len(body.Secrets) > ResealsMax {
		return refuse(structs.CodeInvalid, "state.secret_malformed", "field", "secrets")
	}
	for i := range body.Secrets {
		sealed := &body.Secrets[i]
		if ring.Key(sealed.Key) == nil || len(sealed.Sealed) == 0 || len(sealed.Sealed) > structs.SecretSizeMax+structs.SealedOverhead {
			return refuse(structs.CodeInvalid, "state.secret_malformed", "field", "sealed")
		}
	}
	for i := range body.Secrets {
		sealed := &body.Secrets[i]
		known, there := get[*structs.Secret](tx, tableSecrets, secretKey(sealed.Ref))
		if !there || known.Version != sealed.Version {
			continue // deleted, or another value by now
		}
		after := *known
		after.Key, after.Sealed = sealed.Key, sealed.Sealed
		tx.putSecret(&after)
	}
	if body.Forget {
		tx.forgetSecretKeys(ring)
	}
	return accepted()
}

// forgetSecretKeys leaves of the data keys the current one and those that still seal
// something.
func (tx *txn) forgetSecretKeys(ring *structs.SecretKeyring) {
	used := map[string]bool{ring.Current().ID: true}
	for _, secret := range listRows[*structs.Secret](tx, tableSecrets, indexID, nil) {
		used[secret.Key] = true
	}
	kept := slices.DeleteFunc(slices.Clone(ring.Keys), func(key structs.SecretKey) bool { return !used[key.ID] })
	if len(kept) != len(ring.Keys) {
		tx.putSecretKeyring(&structs.SecretKeyring{Keys: kept})
	}
}

// secretProblem reports what keeps a secret out of the tables, "" for nothing.
func secretProblem(secret *structs.Secret) string {
	switch {
	case structs.SecretNameProblem(secret.Name) != "":
		return "name"
	case (secret.Project == "") == (secret.User == ""):
		return "project"
	case !validKey(cmp.Or(secret.Project, secret.User)):
		return "user"
	case len(secret.Sealed) == 0 || len(secret.Sealed) > structs.SecretSizeMax+structs.SealedOverhead:
		return "sealed"
	}
	return ""
}
