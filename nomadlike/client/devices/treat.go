package devices

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Treat does to a device what an operator asks for. Errors are *structs.Error.
func (d *Devices) Treat(ctx context.Context, order *structs.DeviceTreat) error {
	_, plugin, ok := d.watch.find(order.Device)
	if !ok {
		return structs.NewError(structs.CodeNotFound, "client.device_gone", "device", order.Device)
	}
	d.Log.Info("operator treats device", "device", order.Device, "act", string(order.Act), logkey.User, order.By)
	err := d.treat(ctx, plugin, order)
	var told *structs.Error
	switch {
	case err == nil || errors.As(err, &told):
		return err
	case errors.Is(err, device.ErrBusy):
		return structs.NewError(structs.CodeConflict, "client.device_busy", "device", order.Device).Because(err)
	case errors.Is(err, device.ErrUnsupported):
		return structs.NewError(structs.CodeConflict, "client.device_untreatable", "device", order.Device).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "client.device_failed", "device", order.Device, "cause", err)
}

// mayReset refuses to reset a device that an allocation of this node is on, or
// whose other parts are in use, and keeps the node's own healing away from it.
func (d *Devices) mayReset(ctx context.Context, id string) error {
	var refusal error
	err := d.Inbox.Ask(ctx, func(l *loop.Loop) {
		devices, _ := d.watch.registered()
		card := make(map[string]string, len(devices)) // the physical device of each
		for i := range devices {
			card[devices[i].ID] = cmp.Or(devices[i].Attrs[device.AttrParent], devices[i].ID)
		}
		for _, s := range l.States() {
			a := l.Assignment(s.AllocID)
			if s.Phase == alloc.PhaseEnded || a == nil {
				continue
			}
			if slices.ContainsFunc(a.Alloc.Devices, func(used string) bool { return card[used] == card[id] }) {
				refusal = structs.NewError(structs.CodeConflict, "client.device_in_use", "device", id, "job", a.Alloc.JobName)
			}
		}
		d.healing[id] = d.Now().Add(healRetry)
	})
	if err != nil {
		return err
	}
	return refusal
}

// treat executes an order. A device that only its operators kept from work
// needs no plugin that can heal.
func (d *Devices) treat(ctx context.Context, plugin string, order *structs.DeviceTreat) error {
	healer, can := d.Plugins[plugin].(device.Healer)
	switch order.Act {
	case structs.DeviceQuarantine:
		if err := d.watch.isolated.put(order.Device, isolated{By: order.By, Reason: order.Reason, At: structs.At(d.Now())}); err != nil {
			return err
		}
		d.watch.tell()
		return nil
	case structs.DeviceClear:
		was, err := d.watch.isolated.take(order.Device)
		if err != nil {
			return err
		}
		if was {
			d.watch.tell()
			if now, _, _ := d.watch.find(order.Device); device.ActionOf(&now).TakesWork() {
				return nil
			}
		}
		if can {
			return healer.Clear(ctx, []string{order.Device})
		}
	case structs.DeviceReset:
		if can {
			if err := d.mayReset(ctx, order.Device); err != nil {
				return err
			}
			return healer.Heal(ctx, []string{order.Device})
		}
	default:
		return structs.NewError(structs.CodeInvalid, "client.device_act", "act", order.Act)
	}
	return structs.NewError(structs.CodeConflict, "client.device_untreatable", "device", order.Device)
}
