package agent

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
)

// roomEvery is how often a server looks whether its log still has room.
const roomEvery = time.Second

// tellRoom tells the other servers through gossip when the log of this one has
// no room for entries, and when it has again: a leader without room hands over
// to one that has, and every server shows which one lacks it. It
// runs from when the log is open until stopping is closed. tell tells them how this
// agent is when it is called.
func (c *conditions) tellRoom(tell func(context.Context) error, stopping <-chan struct{}) {
	ticker := time.NewTicker(roomEvery)
	defer ticker.Stop()
	told := false
	for {
		if full := c.raft.Load().DiskFull(); full != told {
			ctx, cancel := context.WithTimeout(context.Background(), roomEvery)
			if err := tell(ctx); err != nil {
				c.log.Warn("the other servers were not told about the room of this one", logkey.Error, err)
			} else {
				told = full
			}
			cancel()
		}
		select {
		case <-ticker.C:
		case <-stopping:
			return
		}
	}
}
