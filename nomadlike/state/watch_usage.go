package state

// WatchUsage is the Watch twin of Usage. It is exact also for a node that
// holds nothing, where WatchOccupants wakes whenever a node with a similar id
// gets work.
func (s *Snapshot) WatchUsage(nodeID string) <-chan struct{} {
	return s.watchKey(tableUsage, idKey(nodeID))
}
