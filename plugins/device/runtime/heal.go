package runtime

import (
	"context"
	"errors"
	"fmt"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
)

// healer brings cards back to work: it ends what dead tasks have left, resets
// cards and tests them, and forgets faults by an operator's word. What becomes
// of a card's health is the record's to know.
type healer[F any] struct {
	v interface {
		Library[F]
		Reset(ctx context.Context, id string, facts *F) error
	}
	o        Options
	calls    *guard.Guard
	known    *record[F]
	meter    *meter[F]
	lookSoon func()
}

// cardsOf lists the cards of devices, each once.
func cardsOf(chosen []structs.Device) []string {
	var ids []string
	seen := make(map[string]bool)
	for i := range chosen {
		if id := cardOf(&chosen[i]); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// Heal resets the cards that wait for it and tests them.
func (h *healer[F]) Heal(ctx context.Context, ids []string) error {
	chosen, err := h.known.choose(ids)
	if err != nil {
		return err
	}
	for _, id := range cardsOf(chosen) {
		if err := h.heal(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (h *healer[F]) heal(ctx context.Context, id string) error {
	action := h.known.worst(id)
	if action.TakesWork() || action == device.ActCordon && !h.o.ResetsCordoned {
		return nil // there is nothing that a reset is for
	}
	if action != device.ActReset && action != device.ActCordon {
		return structs.NewError(structs.CodeConflict, "device.heal_needs", "device", id, "action", action)
	}
	if !h.o.MayReset {
		return structs.NewError(structs.CodeConflict, "device.reset_forbidden", "device", id)
	}
	if h.o.Free != nil {
		defer h.o.Free(ctx, id)()
	}
	sampled, err := h.meter.sample(ctx)
	if err != nil {
		return fmt.Errorf("heal device %s: %w: %w", id, device.ErrUnavailable, err)
	}
	for _, each := range sampled {
		if each.ID == id && len(each.Processes) > 0 {
			return fmt.Errorf("heal device %s: %w by %s", id, device.ErrBusy, processList(each.Processes))
		}
	}
	facts, err := h.reset(ctx, id)
	if err != nil {
		return err
	}
	return h.test(id, &facts)
}

// reset resets a card, and reads the cards again.
func (h *healer[F]) reset(ctx context.Context, id string) (F, error) {
	failed := func(err error) error {
		return structs.NewError(structs.CodeUnavailable, "device.reset_failed", "device", id, "cause", err)
	}
	if h.o.ResetClosed {
		facts, err := h.resetClosed(ctx, id)
		if err != nil {
			return facts, failed(err)
		}
		return facts, nil
	}
	if err := h.v.Reset(ctx, id, h.known.newest()); err != nil {
		var none F
		return none, failed(err)
	}
	facts, err := guard.Run(ctx, h.calls, callLibrary, nil, h.v.Read)
	if err != nil {
		return facts, fmt.Errorf("test device %s after its reset: %w: %w", id, device.ErrUnavailable, err)
	}
	return facts, nil
}

// resetClosed resets a card with the library closed.
func (h *healer[F]) resetClosed(ctx context.Context, id string) (F, error) {
	return guard.Run(ctx, h.calls, "exclusive", nil, func() (F, error) {
		var facts F
		// All other calls wait, or are waited for.
		for _, kind := range []string{callLibrary, callSample, CallWait} {
			done, err := h.calls.Take(ctx, kind)
			if err != nil {
				return facts, err
			}
			defer done()
		}
		h.v.Close()
		err := h.v.Reset(ctx, id, h.known.newest())
		if reason := h.v.Open(); reason != nil {
			return facts, errors.Join(err, fmt.Errorf("the library cannot be opened again: %s", reason.ID))
		}
		facts, readErr := h.v.Read()
		return facts, errors.Join(err, readErr)
	})
}

// test judges a card after its reset; it is well when nothing that is measured
// is wrong.
func (h *healer[F]) test(id string, facts *F) error {
	worst := h.known.reset(id, facts)
	h.known.publish()
	if !worst.TakesWork() {
		return structs.NewError(structs.CodeConflict, "device.test_failed", "device", id, "action", worst)
	}
	return nil
}

// Clear forgets the faults of cards by an operator's word.
func (h *healer[F]) Clear(_ context.Context, ids []string) error {
	chosen, err := h.known.choose(ids)
	if err != nil {
		return err
	}
	h.known.forget(cardsOf(chosen))
	h.known.publish()
	h.lookSoon()
	return nil
}
