package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// ServiceAccount returns a service account by what it is called where names of users
// stand (structs.ServiceAccountID), nil when there is none.
func (s *Snapshot) ServiceAccount(id string) *structs.ServiceAccount {
	key, ok := serviceKey(id)
	if !ok {
		return nil
	}
	account, _ := first[*structs.ServiceAccount](s.db, tableServices, indexID, key)
	return account
}

// WatchServiceAccount is the Watch twin of ServiceAccount; nil, which never closes, for
// a name that is no service account's.
func (s *Snapshot) WatchServiceAccount(id string) <-chan struct{} {
	key, ok := serviceKey(id)
	if !ok {
		return nil
	}
	return s.watchKey(tableServices, key)
}

// ServiceAccountsOf iterates the service accounts of a project by name, or those of the
// cluster where project is "".
func (s *Snapshot) ServiceAccountsOf(project string) iter.Seq[*structs.ServiceAccount] {
	return each[*structs.ServiceAccount](s.db, tableServices, indexID, idKey(project))
}
