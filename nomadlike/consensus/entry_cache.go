package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Bounds of the cache of the newest log entries.
const (
	cachedEntries = 1024
	cachedBytes   = 8 << 20
)

// entryCache holds the newest entries of the log, which the replication to
// each follower and the application of commits read a moment after they were
// written. It holds one unbroken range of indexes.
type entryCache struct {
	mu struct {
		sync.Mutex
		ring  [cachedEntries]*raft.Log // entry i lies at i % cachedEntries
		first uint64                   // oldest cached index; the cache is empty when first > last
		last  uint64
		bytes int
	}
}

func newEntryCache() *entryCache {
	cache := &entryCache{}
	cache.mu.first = 1
	return cache
}

func entrySize(entry *raft.Log) int { return len(entry.Data) + len(entry.Extensions) }

// get copies an entry, which shares its bytes with the cache; nobody may
// change them.
func (c *entryCache) get(index uint64, entry *raft.Log) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if index < c.mu.first || index > c.mu.last {
		return false
	}
	*entry = *c.mu.ring[index%cachedEntries]
	return true
}

// put adds entries that were just stored.
func (c *entryCache) put(entries []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range entries {
		if entry.Index != c.mu.last+1 || c.mu.first > c.mu.last {
			c.clearLocked()
			c.mu.first = entry.Index
		}
		if entry.Index-c.mu.first == cachedEntries {
			c.dropFirstLocked()
		}
		c.mu.ring[entry.Index%cachedEntries] = entry
		c.mu.last = entry.Index
		c.mu.bytes += entrySize(entry)
		for c.mu.bytes > cachedBytes && c.mu.first <= c.mu.last {
			c.dropFirstLocked()
		}
	}
}

// remove forgets a range that is deleted from the log.
func (c *entryCache) remove(from, to uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case to < c.mu.first || from > c.mu.last:
	case from > c.mu.first: // a suffix
		for c.mu.last >= from {
			slot := c.mu.last % cachedEntries
			c.mu.bytes -= entrySize(c.mu.ring[slot])
			c.mu.ring[slot] = nil
			c.mu.last--
		}
	default: // a prefix
		for c.mu.first <= to && c.mu.first <= c.mu.last {
			c.dropFirstLocked()
		}
	}
}

func (c *entryCache) dropFirstLocked() {
	slot := c.mu.first % cachedEntries
	c.mu.bytes -= entrySize(c.mu.ring[slot])
	c.mu.ring[slot] = nil
	c.mu.first++
}

func (c *entryCache) clearLocked() {
	c.mu.ring = [cachedEntries]*raft.Log{}
	c.mu.first, c.mu.last, c.mu.bytes = 1, 0, 0
}
