package state

import (
	"cmp"
	"iter"
	"slices"

	"nomadlike/nomadlike/structs"
)

// NotifySettings returns what a person chose to be told: for an account that chose
// nothing structs.DefaultNotify, for anybody else without settings nil, and so for a
// disabled account.
func (s *Snapshot) NotifySettings(user string) *structs.NotifySettings {
	account := s.User(user)
	if settings, ok := first[*structs.NotifySettings](s.db, tableNotify, indexID, idKey(user)); ok && (account == nil || !account.Disabled) {
		return settings
	}
	if account != nil && !account.Disabled {
		return structs.DefaultNotify(user, account.CreatedAt)
	}
	return nil
}

// NotifyChosen iterates the settings of all who made some, by name.
func (s *Snapshot) NotifyChosen() iter.Seq[*structs.NotifySettings] {
	return each[*structs.NotifySettings](s.db, tableNotify, indexID, nil)
}

// Notifications lists what a person was told and is kept, newest first.
func (s *Snapshot) Notifications(user string) []*structs.Notification {
	var list []*structs.Notification
	if user == "" {
		return nil
	}
	for n := range each[*structs.Notification](s.db, tableNotifications, indexID, idKey(user)) {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *structs.Notification) int {
		return cmp.Or(cmp.Compare(b.MadeIndex, a.MadeIndex), cmp.Compare(b.Time, a.Time), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Notification returns one message, nil when it is not kept.
func (s *Snapshot) Notification(user, id string) *structs.Notification {
	n, _ := first[*structs.Notification](s.db, tableNotifications, indexID, nameKey(user, id))
	return n
}

// DueNotifications lists messages with deliveries that are due at now, those first that
// have been due longest, at most limit. It costs what it lists.
func (s *Snapshot) DueNotifications(now structs.UnixNano, limit int) []*structs.Notification {
	var due []*structs.Notification
	for n := range each[*structs.Notification](s.db, tableNotifications, indexDelayed, nil) {
		if n.Due() > now || len(due) == limit {
			break
		}
		due = append(due, n)
	}
	return due
}

// NotifyMark is how far notifications are decided.
func (s *Snapshot) NotifyMark() structs.NotifyMark {
	if mark, ok := first[*structs.NotifyMark](s.db, tableNotifyMark, indexID, metaKey()); ok {
		return *mark
	}
	return structs.NotifyMark{}
}

// EventsFrom is the place before the oldest event that is kept.
func (s *Snapshot) EventsFrom() structs.Cursor {
	meta := s.meta()
	if meta.EventsDropped == 0 {
		return structs.Cursor{}
	}
	return structs.CursorAfter(meta.EventsDropped)
}

// WatchNotifyChosen is the Watch twin of NotifyChosen.
func (s *Snapshot) WatchNotifyChosen() <-chan struct{} {
	return s.watchPrefix(tableNotify, indexID, nil)
}
