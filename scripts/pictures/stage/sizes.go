package stage

import (
	"context"
	"fmt"
	"time"

	"nomadlike/plugins/device"
)

// Four is one machine of four cards, of which a job holds two.
func Four(ctx context.Context, s *Stage) error {
	if err := s.register(ctx, "box", "rack-1", single, nil); err != nil {
		return err
	}
	s.plan(&play{name: "mnist", user: "ada", at: 50 * time.Minute, hcl: training("mnist", "vision", "default", 1, 2, `expected_runtime = "2h"`)})
	return s.pass(ctx)
}

// Thousand is 125 nodes of eight cards in six racks and two pools, most of them held.
func Thousand(ctx context.Context, s *Stage) error {
	for i := range 125 {
		m := a800
		if i%3 == 0 {
			m = h800
		}
		if err := s.register(ctx, fmt.Sprintf("gpu-%03d", i), fmt.Sprintf("rack-%d", i%6), m, nil); err != nil {
			return err
		}
	}
	people := []struct{ user, project string }{{"chen", "vision"}, {"li", "speech"}, {"wang", "nlp"}, {"ada", "vision"}}
	for i := range 46 {
		who, pool := people[i%4], "train"
		if i%3 == 0 {
			pool = "h800"
		}
		nodes, cards := 1+i%4, 8
		if i%5 == 4 {
			nodes, cards = 1, 3
		}
		name := fmt.Sprintf("train-%02d", i)
		s.plan(&play{name: name, user: who.user, at: 10*time.Hour - time.Duration(i)*11*time.Minute, hcl: training(name, who.project, pool, nodes, cards, saves, fmt.Sprintf("expected_runtime = \"%dh\"", 11+i%9))})
	}
	for _, one := range []struct {
		node      string
		card, xid int
	}{{"gpu-002", 5, 94}, {"gpu-040", 0, 79}} {
		s.agenda.add(before(sickSince), func(ctx context.Context) error {
			return s.register(ctx, one.node, s.node(one.node).Topology[1], a800, ail(one.card, one.xid, device.ActReset))
		})
	}
	s.agenda.add(before(40*time.Minute), func(ctx context.Context) error { return s.lose(ctx, "gpu-007") })
	s.agenda.add(before(30*time.Minute), func(ctx context.Context) error {
		_, err := s.people["olga"].CordonNode(ctx, "gpu-118")
		return err
	})
	return s.pass(ctx)
}
