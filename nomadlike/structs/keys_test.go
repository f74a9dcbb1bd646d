package structs

import (
	"slices"
	"testing"
)

// A rotation goes on only when everybody that is alive has done what its stage
// asks, and says whom it waits for.
func TestRotationWaitsForEverybody(t *testing.T) {
	for _, step := range []struct {
		stage   KeyStage
		holders []AgentKeys
		next    KeyStage
		waiting []string
	}{
		{KeyInstall, nil, "", nil}, // nobody was asked yet
		{KeyInstall, []AgentKeys{{"a", []string{"old", "new"}}, {"b", []string{"old"}}}, "", []string{"b"}},
		{KeyInstall, []AgentKeys{{"a", []string{"old", "new"}}, {"b", nil}}, "", []string{"b"}},
		{KeyInstall, []AgentKeys{{"a", []string{"old", "new"}}, {"b", []string{"new"}}}, KeyUse, nil},
		{KeyUse, []AgentKeys{{"a", []string{"new", "old"}}, {"b", []string{"old", "new"}}}, "", []string{"b"}},
		{KeyUse, []AgentKeys{{"a", []string{"new", "old"}}, {"b", []string{"new"}}}, KeyDone, nil},
	} {
		next, waiting := (&KeyRotation{From: "old", To: "new", Stage: step.stage}).Next(step.holders)
		if next != step.next || !slices.Equal(waiting, step.waiting) {
			t.Errorf("%s with %v: next %q, waits for %v", step.stage, step.holders, next, waiting)
		}
	}
}

// What agents hold follows the stages; an unknown record leaves them alone.
func TestKeysHeldByStage(t *testing.T) {
	rotation := func(stage KeyStage) *KeyState {
		return &KeyState{Current: "old", Rotation: &KeyRotation{From: "old", To: "new", Stage: stage}}
	}
	for _, step := range []struct {
		state *KeyState
		want  []string
	}{
		{nil, nil},
		{&KeyState{}, nil},
		{rotation(KeyInstall), []string{"old", "new"}},
		{rotation(KeyUse), []string{"new", "old"}},
		{&KeyState{Current: "new"}, []string{"new"}},
	} {
		if got := step.state.Fingerprints(); !slices.Equal(got, step.want) {
			t.Errorf("%+v: %v, want %v", step.state, got, step.want)
		}
	}
}
