package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// The people of these figures, and what they do.
const (
	peopleUsers      = 1_000
	peopleProjects   = 200
	peopleFew        = 10 // projects of the same queue, to compare with
	peopleQueued     = 20_000
	peopleRuns       = 20
	peopleSubmitters = 20
	peopleJobs       = 4_000
	peopleSignIns    = 20
	peopleTold       = 20
)

// peopleFigures measures what many people cost: the same queue of few projects and
// of many, the same server with and without accounts, a sign-in beside the hashing of
// its password, and how long it takes until somebody is told of a failure.
func peopleFigures(ctx context.Context, b *bench) error {
	for _, measure := range []func(context.Context, *bench) error{peopleQueues, peopleServers, peopleAreTold} {
		if err := measure(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// peopleQueues passes over one queue of which nothing can start, turn by turn as that
// of few projects and of many with quotas.
func peopleQueues(context.Context, *bench) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	few, many := peopleQueue(peopleFew), peopleQueue(peopleProjects)
	var fewAnew, manyAnew samples
	for range peopleRuns {
		few.PutPool(structs.PoolDefault, nil)
		fewAnew.time(func() { few.Pass(1, 1) })
		many.PutPool(structs.PoolDefault, nil)
		manyAnew.time(func() { many.Pass(1, 1) })
	}
	fewAnew.report(fmt.Sprintf("people_queue_%d_projects_all_anew", peopleFew), "ms", 1e3)
	manyAnew.report(fmt.Sprintf("people_queue_%d_projects_all_anew", peopleProjects), "ms", 1e3)
	return nil
}

// peopleQueue is a board with a long queue of so many projects, after everybody has
// been told why they wait.
func peopleQueue(projects int) *scheduler.Board {
	c := newCluster(queueNodes, queueNodeCPU/2)
	maximum := queueNodes * queueNodeCPU
	for i := range projects {
		p := &structs.Project{Name: fmt.Sprintf("project-%d", i), Weight: float64(1 + i%3)}
		p.Quotas = []structs.Quota{{Kind: structs.QuotaCPU, Guaranteed: maximum / projects / 2, Maximum: &maximum}}
		c.changes.Projects = append(c.changes.Projects, structs.ProjectChange{Name: p.Name, Project: p})
	}
	for i := range peopleQueued {
		// No two need the same, so that both queues have as many different jobs.
		j := queueJob(fmt.Sprintf("stuck-%06d", i), 1+i%7, queueNodeCPU/2+1+float64(i)/peopleQueued, i%3)
		j.Project, j.User = fmt.Sprintf("project-%d", i%projects), fmt.Sprintf("user-%d", i%peopleUsers)
		j.TimeLimit = structs.Duration(1+i%5) * structs.Duration(time.Hour)
		c.queue(j)
	}
	board := c.board(scheduler.Settings{Alone: true})
	for len(board.Pass(1, 1).Waits) > 0 {
	}
	return board
}

// peopleServers submits and signs in at a server that holds nobody, and at one that
// holds many people.
func peopleServers(ctx context.Context, b *bench) error {
	rates := map[bool][]float64{}
	for range max(b.runs/2, 2) {
		for _, peopled := range []bool{false, true} {
			rate, err := peopleServer(ctx, b, peopled)
			if err != nil {
				return err
			}
			rates[peopled] = append(rates[peopled], rate)
		}
	}
	report("people_none_submissions_per_s", "1/s", rates[false])
	report(fmt.Sprintf("people_%d_submissions_per_s", peopleUsers), "1/s", rates[true])
	return peopleSignIn(ctx, b)
}

// peopleServer reports how many jobs a second one server takes.
func peopleServer(ctx context.Context, b *bench, peopled bool) (float64, error) {
	f, err := b.newFleet(ctx, heldNodes)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if peopled {
		if err := f.populate(ctx); err != nil {
			return 0, err
		}
	}
	users := make([]*asker, peopleSubmitters)
	for i := range users {
		if users[i], err = f.asker(ctx, fmt.Sprintf("user-%d", i)); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	errs := make([]error, len(users))
	var next atomic.Int64
	var group sync.WaitGroup
	for u, user := range users {
		group.Go(func() {
			for next.Add(1) <= peopleJobs && errs[u] == nil {
				_, errs[u] = submitPatiently(ctx, user, pictureJob())
			}
		})
	}
	group.Wait()
	took := time.Since(begin).Seconds()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return peopleJobs / took, f.problem()
}

// populate makes the people and their projects.
func (f *fleet) populate(ctx context.Context) error {
	for i := range peopleUsers {
		user := &structs.User{Name: fmt.Sprintf("user-%d", i)}
		if i < peopleSubmitters {
			user.Role = "admin" // as their tokens
		}
		if _, err := f.w.client.PutUser(ctx, user); err != nil {
			return err
		}
	}
	maximum := 1 << 20
	for i := range peopleProjects {
		p := &structs.Project{Name: fmt.Sprintf("group-%d", i), Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &maximum}}}
		for k := range peopleUsers / peopleProjects {
			p.Members = append(p.Members, fmt.Sprintf("user-%d", i*peopleUsers/peopleProjects+k))
		}
		if _, err := f.w.client.PutProject(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// peopleSignIn measures sign-ins with a password among many people, and beside them
// what the hashing of one takes in this process.
func peopleSignIn(ctx context.Context, b *bench) error {
	f, err := b.newFleet(ctx, heldNodes)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.populate(ctx); err != nil {
		return err
	}
	const user, password = "user-1", "correct horse battery staple"
	first, err := f.w.client.SetPassword(ctx, user, api.PasswordRequest{Reset: true})
	if err != nil {
		return err
	}
	nobody := f.w.client.WithToken("")
	if _, err := nobody.Login(ctx, api.LoginRequest{User: user, Password: first.First, NewPassword: password}); err != nil {
		return err
	}
	var signIn, hash []float64
	for range peopleSignIns {
		begin := time.Now()
		if _, err := nobody.Login(ctx, api.LoginRequest{User: user, Password: password}); err != nil {
			return err
		}
		signIn = append(signIn, time.Since(begin).Seconds()*1e3)
		begin = time.Now()
		if _, err := auth.PasswordCost().Hash(password, rand.Reader); err != nil {
			return err
		}
		hash = append(hash, time.Since(begin).Seconds()*1e3)
	}
	rest := make([]float64, len(signIn))
	for i := range signIn {
		rest[i] = max(signIn[i]-hash[i], 0)
	}
	report("people_sign_in_ms", "ms", signIn)
	report("people_sign_in_without_hash_ms", "ms", rest)
	return nil
}

// peopleAreTold measures from the end of a failed job until its owner has the message
// at the bell.
func peopleAreTold(ctx context.Context, b *bench) error {
	w, err := b.dev(ctx, "")
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	rule := api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{structs.ChannelBell}}}}
	if _, err := w.client.SetNotify(ctx, rule); err != nil {
		return err
	}
	var told []float64
	for i := range peopleTold {
		job := trivialJob(fmt.Sprintf("told-%d", i), "false")
		if _, err := w.submit(ctx, job); err != nil {
			return err
		}
		for len(told) == i {
			list, err := w.client.Notifications(ctx)
			if err != nil {
				return err
			}
			for _, one := range list.Notifications {
				if one.Job == job.Name {
					told = append(told, time.Since(time.Unix(0, int64(one.Time))).Seconds()*1e3)
				}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	report("people_told_of_a_failure_ms", "ms", told)
	return nil
}
