package docker

import (
	"context"
	"slices"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

var _ driver.Masker = (*Driver)(nil)

// mask is what is known of the texts that a task's logs do not hold.
type mask struct {
	list     []structs.Mask
	withhold bool // there are some, and nobody knows them any more
}

// texts is the mask as a keeper takes it.
func (m *mask) texts() []tasklog.Masked {
	if m == nil {
		return nil
	}
	var texts []tasklog.Masked
	for _, one := range m.list {
		texts = append(texts, tasklog.Masked{Name: one.Name, Text: one.Text})
	}
	return texts
}

// maskedSecret is a secret of which a task's logs hold nothing, as the task's record
// has it: without the value.
type maskedSecret struct {
	Name    string `json:"name"`
	Version uint64 `json:"version"`
}

// maskedSecrets lists the secrets that a mask comes from.
func maskedSecrets(list []structs.Mask) []maskedSecret {
	var named []maskedSecret
	for _, one := range list {
		if secret := (maskedSecret{one.Name, one.Version}); !slices.Contains(named, secret) {
			named = append(named, secret)
		}
	}
	return named
}

// sameSecrets reports whether two lists have the same secrets in the same versions.
func sameSecrets(a, b []maskedSecret) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one maskedSecret) bool { return !slices.Contains(b, one) })
}

// Mask implements driver.Masker: the keeper of a task that was recovered may have to
// be started anew, and has nothing but what it is told here. What does not come from
// the secrets that the task was started with, in those versions, is no mask for it.
func (d *Driver) Mask(_ context.Context, id driver.TaskID, list []structs.Mask) error {
	t, err := d.known.Find(id)
	if err != nil {
		return err
	}
	learnMask(t, list)
	return nil
}

// learnMask takes what to mask, and has a keeper that waits for it told.
func learnMask(t *task, list []structs.Mask) {
	t.masking.Lock()
	defer t.masking.Unlock()
	if t.masking.mask != nil {
		return
	}
	t.masking.mask = &mask{list: list}
	if t.record.Unsure || !sameSecrets(t.record.Masked, maskedSecrets(list)) {
		t.masking.mask = &mask{withhold: true}
		t.home.log.Warn("secrets of a running task are no longer known: a new keeper of its logs withholds its output", logkey.TaskID, t.id)
	}
	_ = t.keeper.tellMask(t.masking.mask) // one that is not there is told when it is started
}

// keep starts another keeper for a container that runs.
func (t *task) keep() error {
	t.masking.Lock()
	defer t.masking.Unlock()
	known := t.masking.mask
	if known == nil && len(t.record.Masked) == 0 && !t.record.Unsure {
		known = &mask{} // it has no secrets
	}
	if err := t.keeper.start(&t.record, nil, known); err != nil {
		return err
	}
	if known != nil && known.withhold {
		_ = t.keeper.tellMask(known) // its socket is there; it comes when it comes
	}
	return nil
}
