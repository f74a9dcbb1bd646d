package client

import (
	"context"
	"errors"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// ErrStorage is the cause of Run's error when the disk below the local store
// cannot be trusted any more.
var ErrStorage = errors.New("the local store is not durable")

// syncStore makes what the store holds durable every now and then. After an
// error of fsync the kernel may have dropped what it could not write and say
// nothing the next time, so nothing that the file holds is certain: the agent
// stops, as a server does, and the one that starts next reads what is really
// there. Tasks go on without it. A full disk is not such an error: the pages
// are still there and are written when there is room.
func (c *Client) syncStore(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(storeSyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := c.store.Sync()
		switch {
		case err == nil:
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			c.log.Error("local store is not durable: the disk is full", logkey.Error, err)
		default:
			c.log.Error("agent stops: the local store cannot be made durable; tasks go on", logkey.Path, c.config.DataDir, logkey.Error, err)
			end(structs.NewError(structs.CodeUnavailable, "client.store_lost", "dir", c.config.DataDir, "reason", err).Because(errors.Join(ErrStorage, err)))
			return
		}
	}
}
