package main

import (
	"context"
	"fmt"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// rotateKeys replaces the key of gossip and the CA, and ends an agent in the
// middle of it. It is over when every agent holds the new ones alone. The
// harness' own clients know the first CA: they follow as often as anybody does.
func rotateKeys(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		kinds := []structs.KeyKind{structs.KeyGossip}
		if s.cluster.cas < structs.PastCAsMax {
			s.cluster.cas++
			kinds = append(kinds, structs.KeyCA)
		}
		before := make(map[structs.KeyKind]string)
		for _, kind := range kinds {
			err := wait(ctx, patient(recoveryMax), "a rotation of "+string(kind)+" to begin", func(ctx context.Context) bool {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				if before[kind] == "" {
					now, err := s.cluster.all.Keys(ctx, kind)
					if err != nil {
						return false
					}
					before[kind] = now.Current
				}
				keys, err := s.cluster.all.RotateKeys(ctx, kind, false)
				return err == nil && (keys.Rotation != nil || keys.Current != before[kind])
			})
			if err != nil {
				return err
			}
		}
		s.undone(func(ctx context.Context) error {
			for _, kind := range kinds {
				var last *api.Keys
				err := wait(ctx, patient(recoveryMax), "the keys of "+string(kind)+" to settle", func(ctx context.Context) bool {
					ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
					keys, err := s.cluster.all.Keys(ctx, kind)
					if err == nil {
						last = keys
					}
					return err == nil && keys.Settled && keys.Current != before[kind]
				})
				if err != nil {
					return fmt.Errorf("%w: %+v", err, last)
				}
			}
			return nil
		})
		return kill(who)(ctx, s)
	}
}
