package server

import (
	"context"
	"sync"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// leader does the duties of whoever leads: it watches nodes, serves the queue,
// keeps forecasts and sweeps, each in a goroutine of its own.
type leader struct {
	config    *Config
	proposals *proposals
	foresight *foresight
	placing   *placing

	leading struct {
		sync.Mutex
		watch *watch // non-nil while this server leads
	}
}

// run does the leader's duties while this server leads.
func (l *leader) run(ctx context.Context) {
	news, open := l.next(ctx)
	for open {
		if news.Leader {
			news, open = l.leadUntilNews(ctx, news)
		} else {
			news, open = l.next(ctx)
		}
	}
}

// next waits for news, and returns false when ctx ended instead.
func (l *leader) next(ctx context.Context) (consensus.Leadership, bool) {
	select {
	case news := <-l.config.Log.LeadershipCh():
		return news, true
	case <-ctx.Done():
		return consensus.Leadership{}, false
	}
}

// leadUntilNews leads until there are other news, which it returns.
func (l *leader) leadUntilNews(ctx context.Context, news consensus.Leadership) (consensus.Leadership, bool) {
	term, stop := context.WithCancel(ctx)
	defer stop()
	var duties sync.WaitGroup
	duties.Go(func() { l.lead(term, news) })
	next, open := l.next(ctx)
	stop()
	duties.Wait()
	return next, open
}

// lead does the leader's duties until ctx ends.
func (l *leader) lead(ctx context.Context, news consensus.Leadership) {
	log := l.config.Logger.With(logkey.Term, news.Term)
	log.Info("leading")
	defer log.Info("leading no more")

	nodes := newWatch(l.config, l.proposals)
	l.setWatch(nodes)
	defer l.setWatch(nil)
	var duties sync.WaitGroup
	duties.Go(func() { nodes.run(ctx) })
	duties.Go(func() { newQueue(l.config, l.proposals, l.placing).run(ctx) })
	duties.Go(func() {
		(&forecaster{config: l.config, proposals: l.proposals, foresight: l.foresight, placing: l.placing}).run(ctx)
	})
	duties.Go(func() { (&sweeper{config: l.config, proposals: l.proposals}).run(ctx) })
	duties.Go(func() { l.initCluster(ctx) })
	duties.Wait()
}

func (l *leader) setWatch(watch *watch) {
	l.leading.Lock()
	defer l.leading.Unlock()
	l.leading.watch = watch
}

// watch is the leader's watch over nodes, nil while this server does not
// lead.
func (l *leader) watch() *watch {
	l.leading.Lock()
	defer l.leading.Unlock()
	return l.leading.watch
}

// initCluster makes the cluster's record when the log is new.
func (l *leader) initCluster(ctx context.Context) {
	if l.config.ClusterInit == nil || l.config.Store.Snapshot().Cluster() != nil {
		return
	}
	if _, _, err := l.proposals.decide(ctx, structs.CommandClusterInit, l.config.ClusterInit); err != nil && ctx.Err() == nil {
		l.config.Logger.Error("cluster was not set up", logkey.Error, err)
	}
}
