package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// Secret returns the record of a secret, nil when there is none. Its value is sealed.
func (s *Snapshot) Secret(ref structs.SecretRef) *structs.Secret {
	secret, _ := first[*structs.Secret](s.db, tableSecrets, indexID, secretKey(ref))
	return secret
}

// SecretsOfProject iterates the secrets of a project, by name.
func (s *Snapshot) SecretsOfProject(project string) iter.Seq[*structs.Secret] {
	return each[*structs.Secret](s.db, tableSecrets, indexID, secretScopeKey(project, ""))
}

// SecretsOfUser iterates the secrets that are a user's own, by name.
func (s *Snapshot) SecretsOfUser(user string) iter.Seq[*structs.Secret] {
	if user == "" {
		return func(func(*structs.Secret) bool) {}
	}
	return each[*structs.Secret](s.db, tableSecrets, indexID, secretScopeKey("", user))
}

// Secrets iterates all secrets.
func (s *Snapshot) Secrets() iter.Seq[*structs.Secret] {
	return each[*structs.Secret](s.db, tableSecrets, indexID, nil)
}

// SecretKeyring returns the record of the data keys, nil before the first secret.
func (s *Snapshot) SecretKeyring() *structs.SecretKeyring {
	ring, _ := first[*structs.SecretKeyring](s.db, tableSecretKeys, indexID, metaKey())
	return ring
}

// WatchSecretKeyring is the Watch twin of SecretKeyring.
func (s *Snapshot) WatchSecretKeyring() <-chan struct{} {
	return s.watchKey(tableSecretKeys, metaKey())
}
