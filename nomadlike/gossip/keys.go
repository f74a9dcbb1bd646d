package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// SetKeys replaces the keys: the first encrypts from now on, and what any of
// them encrypted is understood. What another key encrypted is refused, also when
// it is on its way already. To rotate, give every agent the new key behind the
// old one, then before it, then alone. One goroutine calls it at a time.
func (g *Gossip) SetKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("set gossip keys: there is none")
	}
	for _, key := range keys {
		if len(key) != KeySize {
			return fmt.Errorf("set gossip keys: one has %d bytes, want %d", len(key), KeySize)
		}
	}
	if err := g.addKey(keys[0]); err != nil {
		return err
	}
	if err := g.keys.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use gossip key: %w", err)
	}
	held := g.keys.GetKeys()
	if slices.ContainsFunc(held, func(key []byte) bool { return !containsKey(keys, key) }) {
		// From the end: memberlist would move the others within an array that
		// whoever decrypts is reading.
		for _, key := range slices.Backward(slices.Clone(held[1:])) {
			if err := g.keys.RemoveKey(key); err != nil {
				return fmt.Errorf("remove gossip key: %w", err)
			}
		}
	}
	for _, key := range keys[1:] {
		if err := g.addKey(key); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gossip) addKey(key []byte) error {
	if err := g.keys.AddKey(slices.Clone(key)); err != nil {
		return fmt.Errorf("add gossip key: %w", err)
	}
	return nil
}

func containsKey(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(one []byte) bool { return bytes.Equal(one, key) })
}
