package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// participant is what both a Node and a FakeNode are to those who use them.
type participant interface {
	ID() string
	Propose(context.Context, []byte) (Result, error)
	ReadIndex(context.Context) (uint64, error)
	WaitApplied(context.Context, uint64) error
	AppliedIndex() uint64
	IsLeader() bool
	Term() uint64
	LeaderID() string
	LeaderAddr() string
	LeadershipCh() <-chan Leadership
	Peers() []Peer
}

var (
	_ participant = (*Node)(nil)
	_ participant = (*FakeNode)(nil)
)

func TestSequencerFates(t *testing.T) {
	sequencer := NewSequencer()
	first, second := &ledger{}, &ledger{}
	a, err := sequencer.Add("a", first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sequencer.Add("b", second)
	if err != nil {
		t.Fatal(err)
	}
	fates := map[string]Fate{"lost ack": FateLoseAck, "dropped": FateDrop, "twice": FateDuplicate, "refused": FateRefuse}
	sequencer.SetFate(func(p Proposal) Fate { return fates[string(p.Command)] })

	var story strings.Builder
	propose := func(node *FakeNode, command string) {
		result, err := node.Propose(t.Context(), []byte(command))
		fmt.Fprintf(&story, "%s %q: %d %v %v\n", node.ID(), command, result.Index, result.Value, err)
	}
	propose(a, "plain")
	propose(a, "lost ack")
	propose(a, "dropped")
	propose(a, "twice")
	propose(a, "refused")
	propose(b, "plain")
	if err := sequencer.SetLeader("b"); err != nil {
		t.Fatal(err)
	}
	propose(b, "plain")
	propose(a, "plain")
	want := `a "plain": 2 1 <nil>
a "lost ack": 0 <nil> propose: outcome of the proposal is unknown
a "dropped": 0 <nil> propose: outcome of the proposal is unknown
a "twice": 4 3 <nil>
a "refused": 0 <nil> not the leader, and no leader is known
b "plain": 0 <nil> not the leader, which is a at a
b "plain": 7 5 <nil>
a "plain": 0 <nil> not the leader, which is b at b
`
	if diff := cmp.Diff(want, story.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"plain", "lost ack", "twice", "twice", "plain"}, first.commands()); diff != "" {
		t.Errorf("a holds (-want +got):\n%s", diff)
	}
	if !slices.Equal(first.lines(), second.lines()) {
		t.Errorf("b holds %v, a holds %v", second.lines(), first.lines())
	}
	if news := <-a.LeadershipCh(); news != (Leadership{Term: 2}) {
		t.Errorf("a was told %+v", news)
	}
	if news := <-b.LeadershipCh(); news != (Leadership{Leader: true, Term: 2}) {
		t.Errorf("b was told %+v", news)
	}
}

// Whatever happens to the servers, all that run and are not held hold the same,
// and every acknowledged command is among it.
func TestSequencerAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequencer := NewSequencer()
		ids := []string{"a", "b", "c"}
		ledgers := make(map[string]*ledger)
		nodes := make(map[string]*FakeNode)
		for _, id := range ids {
			ledgers[id] = &ledger{}
			node, err := sequencer.Add(id, ledgers[id])
			if err != nil {
				t.Fatal(err)
			}
			nodes[id] = node
		}
		sequencer.SetFate(func(Proposal) Fate { return Fate(rapid.IntRange(0, 4).Draw(t, "fate")) })
		var acknowledged []string
		count := 0
		t.Repeat(map[string]func(*rapid.T){
			"propose": func(t *rapid.T) {
				count++
				command := fmt.Sprint(count)
				if _, err := nodes[rapid.SampledFrom(ids).Draw(t, "server")].Propose(context.Background(), []byte(command)); err == nil {
					acknowledged = append(acknowledged, command)
				}
			},
			"lead": func(t *rapid.T) { _ = sequencer.SetLeader(rapid.SampledFrom(ids).Draw(t, "server")) },
			"hold": func(t *rapid.T) {
				if err := sequencer.Lag(rapid.SampledFrom(ids).Draw(t, "server"), rapid.Bool().Draw(t, "held")); err != nil {
					t.Fatal(err)
				}
			},
			"crash": func(t *rapid.T) {
				if err := sequencer.Crash(rapid.SampledFrom(ids).Draw(t, "server")); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "server")
				if err := sequencer.Crash(id); err != nil {
					t.Fatal(err)
				}
				ledgers[id] = &ledger{}
				if err := sequencer.Restart(id, ledgers[id]); err != nil {
					t.Fatal(err)
				}
			},
			"compact": func(*rapid.T) { _ = sequencer.Compact() },
		})
		if err := sequencer.Crash("a"); err != nil {
			t.Fatal(err)
		}
		ledgers["a"] = &ledger{}
		if err := sequencer.Restart("a", ledgers["a"]); err != nil {
			t.Fatal(err)
		}
		want := ledgers["a"].lines()
		for _, id := range ids[1:] {
			if err := nodes[id].WaitApplied(context.Background(), nodes["a"].AppliedIndex()); errors.Is(err, ErrShutdown) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			if got := ledgers[id].lines(); !slices.Equal(got, want) {
				t.Fatalf("%s holds %v, a holds %v", id, got, want)
			}
		}
		held := ledgers["a"].commands()
		for _, command := range acknowledged {
			if !slices.Contains(held, command) {
				t.Fatalf("%s was acknowledged and is lost", command)
			}
		}
	})
}
