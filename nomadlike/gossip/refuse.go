package gossip

// Refuse has nothing heard of a member any more: it is no member here, whatever
// it or others tell of it. A member that is alive goes on answering to those
// who hold the key; changing the key shuts it out.
func (g *Gossip) Refuse(id string) { g.table.refuse(id) }

func (t *table) refuse(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.refused == nil {
		t.mu.refused = make(map[string]bool)
	}
	t.mu.refused[id] = true
	if m := t.mu.members[id]; m != nil {
		if m.Meta.Role == roleServer {
			t.mu.servers++
		}
		delete(t.mu.members, id)
		delete(t.mu.acks, id)
	}
}
