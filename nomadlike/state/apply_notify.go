package state

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyNotifySet stores what a person chose to be told. A kind that was on already goes
// on as it was; of one that is new, only what happens from now on is told.
func applyNotifySet(tx *txn, body *structs.NotifySet) (structs.ApplyResult, *structs.Error) {
	if body.Settings == nil {
		return tx.seeNotifications(body)
	}
	settings := *body.Settings
	if problem := notifyProblem(&settings); problem != "" {
		return refuse(structs.CodeInvalid, "state.notify_malformed", "field", problem)
	}
	known, there := get[*structs.NotifySettings](tx, tableNotify, idKey(settings.User))
	switch {
	case there && known.ModifyIndex != body.Before, !there && body.Before != 0:
		return refuse(structs.CodeConflict, "state.notify_changed")
	case !there && tx.user(settings.User) != nil:
		known = structs.DefaultNotify(settings.User, tx.user(settings.User).CreatedAt)
	case !there && len(listRows[*structs.NotifySettings](tx, tableNotify, indexID, nil)) >= UsersMax:
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "users", "max", UsersMax)
	}
	if known != nil {
		settings.Seen = known.Seen
	}
	for i := range settings.On {
		rule := &settings.On[i]
		rule.Since = tx.now
		if before := known.Rule(rule.Kind); before != nil && len(before.Channels) > 0 {
			rule.Since = before.Since
		}
	}
	tx.putNotify(&settings)
	return accepted()
}

func (tx *txn) putNotify(settings *structs.NotifySettings) {
	settings.ModifyIndex = tx.index()
	tx.put(tableNotify, idKey(settings.User), settings)
}

// seeNotifications notes how far a person has seen what the bell holds. It only ever
// moves on.
func (tx *txn) seeNotifications(body *structs.NotifySet) (structs.ApplyResult, *structs.Error) {
	if !validKey(body.User) || body.Seen > tx.index() {
		return refuse(structs.CodeInvalid, "state.notify_malformed", "field", "seen")
	}
	known, there := get[*structs.NotifySettings](tx, tableNotify, idKey(body.User))
	if !there {
		user := tx.user(body.User)
		if user == nil {
			return accepted() // nobody who is told anything
		}
		known = structs.DefaultNotify(user.Name, user.CreatedAt)
	}
	if known.Seen >= body.Seen {
		return accepted()
	}
	after := *known
	after.Seen = body.Seen
	tx.put(tableNotify, idKey(after.User), &after) // ModifyIndex is of what was chosen
	return accepted()
}

// removeNotifyOf removes what a person chose and was told.
func (tx *txn) removeNotifyOf(user string) {
	if known, there := get[*structs.NotifySettings](tx, tableNotify, idKey(user)); there {
		tx.remove(tableNotify, idKey(user), known)
	}
	for _, n := range listRows[*structs.Notification](tx, tableNotifications, indexID, idKey(user)) {
		tx.removeNotification(n)
	}
}

func (tx *txn) removeNotification(n *structs.Notification) {
	tx.remove(tableNotifications, nameKey(n.User, n.ID), n)
	tx.meta.Notifications--
}

func (tx *txn) notifyMark() structs.NotifyMark {
	mark, there := get[*structs.NotifyMark](tx, tableNotifyMark, metaKey())
	if !there {
		return structs.NotifyMark{}
	}
	return *mark
}

// applyNotifyStep stores what a leader decided to tell, unless another one decided
// meanwhile, and how deliveries went.
func applyNotifyStep(tx *txn, body *structs.NotifyStep) (structs.ApplyResult, *structs.Error) {
	if len(body.Made) > structs.NotifyMadeMax || len(body.Settled) > structs.NotifySettledMax || body.Index == 0 && len(body.Made) > 0 ||
		max(len(body.Raised), len(body.Cleared)) > structs.NotifyRaisedMax {
		return refuse(structs.CodeInvalid, "state.notify_malformed", "field", "made")
	}
	for i := range body.Made {
		if problem := notificationProblem(&body.Made[i]); problem != "" {
			return refuse(structs.CodeInvalid, "state.notify_malformed", "field", problem)
		}
	}
	if slices.ContainsFunc(body.Raised, func(key string) bool { return !validKey(key) }) {
		return refuse(structs.CodeInvalid, "state.notify_malformed", "field", "raised")
	}
	for i := range body.Settled {
		tx.settleDelivery(&body.Settled[i])
	}
	if body.Index == 0 {
		return accepted()
	}
	mark := tx.notifyMark()
	if body.Before != mark.Step {
		return refuse(structs.CodeConflict, "state.notify_passed")
	}
	for i := range body.Made {
		made := body.Made[i]
		tx.putNotification(&made)
	}
	tx.put(tableNotifyMark, metaKey(), &structs.NotifyMark{
		Step: mark.Step + 1, Index: body.Index, Place: body.Place, Time: max(mark.Time, body.Time), Holds: tx.holds(mark.Holds, body),
	})
	return accepted()
}

// holds are the conditions that were told and hold after a step.
func (tx *txn) holds(before map[string]structs.UnixNano, body *structs.NotifyStep) map[string]structs.UnixNano {
	if len(body.Raised)+len(body.Cleared) == 0 {
		return before
	}
	after := maps.Clone(before)
	for _, key := range body.Cleared {
		delete(after, key)
	}
	for _, key := range body.Raised {
		if after == nil {
			after = make(map[string]structs.UnixNano)
		}
		if _, there := after[key]; !there && len(after) < structs.NotifyHoldsMax {
			after[key] = tx.now
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

// putNotification stores a message, and drops the oldest of those that are too many.
func (tx *txn) putNotification(n *structs.Notification) {
	n.MadeIndex = tx.index()
	key := nameKey(n.User, n.ID)
	known, there := get[*structs.Notification](tx, tableNotifications, key)
	if there {
		tx.removeNotification(known) // its place in the order changes
	}
	tx.put(tableNotifications, key, n)
	tx.meta.Notifications++
	of := listRows[*structs.Notification](tx, tableNotifications, indexID, idKey(n.User))
	for len(of) > structs.NotifyKeptPerUser {
		oldest := 0
		for i, one := range of {
			if cmp.Or(cmp.Compare(one.MadeIndex, of[oldest].MadeIndex), cmp.Compare(one.Time, of[oldest].Time)) < 0 {
				oldest = i
			}
		}
		tx.removeNotification(of[oldest])
		of = append(of[:oldest], of[oldest+1:]...)
	}
	for tx.meta.Notifications > structs.NotifyKeptMax {
		tx.flush(tableNotifications)
		for oldest := range each[*structs.Notification](tx.db, tableNotifications, indexCreated, nil) {
			tx.removeNotification(oldest)
			break
		}
	}
}

// settleDelivery notes how a try went. What is over already stays as it is.
func (tx *txn) settleDelivery(settled *structs.NotifySettled) {
	if len(settled.Delivery.Problem) > structs.NotifyProblemMax {
		return
	}
	known, there := get[*structs.Notification](tx, tableNotifications, nameKey(settled.User, settled.ID))
	if !there {
		return
	}
	for i := range known.Deliveries {
		if known.Deliveries[i].Channel != settled.Delivery.Channel || known.Deliveries[i].NextAt == 0 {
			continue
		}
		after := *known
		after.Deliveries = append([]structs.NotifyDelivery(nil), known.Deliveries...)
		after.Deliveries[i] = settled.Delivery
		tx.put(tableNotifications, nameKey(after.User, after.ID), &after)
		return
	}
}

// notifyProblem reports what keeps settings out of the tables, "" for nothing. What a
// zone is depends on a server's files, and is judged before the log.
func notifyProblem(s *structs.NotifySettings) string {
	if !validKey(s.User) {
		return "user"
	}
	without := *s
	without.Quiet = nil
	if problems := without.Validate(); len(problems) > 0 {
		return problems[0].Path
	}
	if q := s.Quiet; q != nil && (q.From < 0 || q.To < 0 || q.From >= 24*60 || q.To >= 24*60 || len(q.Zone) > idLengthMax) {
		return "quiet"
	}
	return ""
}

// notificationProblem does the same for a message.
func notificationProblem(n *structs.Notification) string {
	size := len(n.Event) + len(n.Job)
	for key, value := range n.Params { // a sum: in any order
		size += len(key) + len(value)
	}
	if n.Cause != nil {
		for key, value := range n.Cause.Params {
			size += len(key) + len(value)
		}
	}
	for _, line := range n.Lines {
		size += len(line)
	}
	for _, name := range n.Names {
		size += len(name)
	}
	switch {
	case !validKey(n.User):
		return "user"
	case !validKey(n.ID):
		return "id"
	case size > notificationSizeMax || len(n.Names) > structs.NotifyNamesMax || len(n.Lines) > structs.NotifyLinesMax:
		return "size"
	case len(n.Deliveries) > structs.NotifyChannelsMax || len(n.Counts) > len(structs.NotifyKinds()):
		return "deliveries"
	}
	return ""
}
