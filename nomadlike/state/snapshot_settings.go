package state

import "nomadlike/nomadlike/structs"

// Settings returns what is set for the whole cluster, nil before anything was.
func (s *Snapshot) Settings() *structs.Settings {
	settings, _ := first[*structs.Settings](s.db, tableSettings, indexID, metaKey())
	return settings
}

// WatchSettings is the Watch twin of Settings.
func (s *Snapshot) WatchSettings() <-chan struct{} {
	return s.watchKey(tableSettings, metaKey())
}
