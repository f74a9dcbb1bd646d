package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// fakeCluster answers what watching a job asks, from memory.
type fakeCluster struct {
	mu struct {
		sync.Mutex
		index   uint64
		job     api.JobDetail
		allocs  []structs.Allocation
		logs    map[string]*fakeLog // by allocation and stream
		changed chan struct{}
		away    int // requests that nobody answers
		asked   []string
		reading int // logs
		most    int // of them at a time
	}
}

// fakeLog is a log that grows until it is closed.
type fakeLog struct {
	text   string
	closed bool
	breaks int // bytes after which the stream breaks off, once; 0: never
}

func newFakeCluster(nodes int) *fakeCluster {
	c := &fakeCluster{}
	c.mu.index, c.mu.logs, c.mu.changed = 1, make(map[string]*fakeLog), make(chan struct{})
	c.mu.job = api.JobDetail{Job: &structs.Job{ID: "job1", Name: "job", Nodes: nodes}, JobStatus: api.JobStatus{State: structs.JobRunning, Attempt: 1}}
	return c
}

// change changes the cluster and wakes whoever waits.
func (c *fakeCluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.mu.index++
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// start adds a running rank with its log.
func (c *fakeCluster) start(attempt uint64, rank int, log *fakeLog) {
	id := fmt.Sprintf("alloc-%d-%d", attempt, rank)
	c.change(func() {
		c.mu.allocs = append(c.mu.allocs, structs.Allocation{
			ID: id, JobID: "job1", Attempt: attempt, Rank: rank, NodeName: "node" + strconv.Itoa(rank), Status: structs.AllocRunning, StartedAt: 1,
		})
		c.mu.logs[id+"/stdout"] = log
		c.mu.logs[id+"/stderr"] = &fakeLog{closed: true}
	})
}

func (c *fakeCluster) write(log *fakeLog, text string) { c.change(func() { log.text += text }) }
func (c *fakeCluster) close(log *fakeLog)              { c.change(func() { log.closed = true }) }
func (c *fakeCluster) end(state structs.JobState)      { c.change(func() { c.mu.job.State = state }) }

// RoundTrip answers a request.
func (c *fakeCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	index, _ := strconv.ParseUint(query.Get("index"), 10, 64)
	wait, _ := time.ParseDuration(query.Get("wait"))
	limit := time.NewTimer(wait)
	defer limit.Stop()
	c.mu.Lock()
	c.mu.asked = append(c.mu.asked, r.URL.Path+"?"+r.URL.RawQuery)
	if c.mu.away > 0 {
		c.mu.away--
		c.mu.Unlock()
		return answer(http.StatusServiceUnavailable, 0, structs.NewError(structs.CodeUnavailable, "agent.no_server")), nil
	}
	for index > 0 && c.mu.index <= index {
		changed := c.mu.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			index = 0
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	switch path := r.URL.Path; {
	case path == "/v1/jobs/job1":
		return answer(http.StatusOK, c.mu.index, c.mu.job), nil
	case path == "/v1/jobs/job1/allocations":
		return answer(http.StatusOK, c.mu.index, api.AllocationList{Allocations: c.mu.allocs}), nil
	case strings.HasSuffix(path, "/logs"):
		id := strings.Split(path, "/")[3] + "/" + query.Get("stream")
		log := c.mu.logs[id]
		if log == nil {
			return answer(http.StatusNotFound, 0, structs.NewError(structs.CodeNotFound, "auth.not_found")), nil
		}
		offset, _ := strconv.Atoi(query.Get("offset"))
		c.mu.reading++
		c.mu.most = max(c.mu.most, c.mu.reading)
		return &http.Response{StatusCode: http.StatusOK, Body: &fakeStream{
			c: c, log: log, at: offset, follow: query.Get("follow") == "true", ctx: r.Context(),
		}}, nil
	}
	return answer(http.StatusNotFound, 0, structs.NewError(structs.CodeNotFound, "agent.route_unknown")), nil
}

func answer(status int, index uint64, value any) *http.Response {
	data, _ := json.Marshal(value)
	header := http.Header{}
	if index > 0 {
		header.Set(api.HeaderIndex, strconv.FormatUint(index, 10))
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(data))}
}

// fakeStream reads a log as it grows.
type fakeStream struct {
	c      *fakeCluster
	log    *fakeLog
	at     int
	follow bool
	ctx    context.Context // of the request whose body this is
}

// Read returns what is there, waits, or breaks.
func (s *fakeStream) Read(p []byte) (int, error) {
	for {
		s.c.mu.Lock()
		rest, changed := s.log.text[min(s.at, len(s.log.text)):], s.c.mu.changed
		if s.log.breaks > 0 && s.at < s.log.breaks {
			rest = rest[:min(len(rest), s.log.breaks-s.at)]
		} else if s.log.breaks > 0 {
			s.log.breaks = 0
			s.c.mu.Unlock()
			return 0, io.ErrUnexpectedEOF
		}
		over := s.log.closed || !s.follow
		s.c.mu.Unlock()
		switch {
		case len(rest) > 0:
			n := copy(p, rest)
			s.at += n
			return n, nil
		case over:
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
}

// Close ends the reading.
func (s *fakeStream) Close() error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.mu.reading--
	return nil
}

// watched is a job that somebody watches with its logs.
type watched struct {
	*fakeCluster
	out, complaints *bytes.Buffer
	done            chan error
	began           time.Time
	cancel          context.CancelFunc
}

// watch runs `job run -logs` after the submission, in a synctest bubble.
func watch(t *testing.T, c *fakeCluster) *watched {
	t.Helper()
	env, out, complaints := paper()
	ctx, cancel := context.WithCancel(t.Context())
	env.Context = ctx
	client, err := api.New(api.Config{HTTPClient: &http.Client{Transport: c}, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{fakeCluster: c, out: out, complaints: complaints, done: make(chan error, 1), began: time.Now(), cancel: cancel}
	go func() {
		_, err := env.watchJob(client, "job1", c.mu.job.Job, watchOptions{toEnd: true, logs: true})
		w.done <- err
	}()
	synctest.Wait()
	return w
}

func (w *watched) check(t *testing.T, out, complaints string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(out, w.out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	got := w.complaints.String()
	if complaints != "" && !strings.Contains(got, complaints) {
		t.Errorf("complaints %q hold no %q", got, complaints)
	}
}

func TestLogsAreMergedLineByLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		w := watch(t, c)
		zero, one := &fakeLog{}, &fakeLog{}
		c.start(1, 0, zero)
		c.start(1, 1, one)
		c.write(zero, "from ze")
		c.write(one, "from one\nagain\n")
		w.check(t, "1| from one\n1| again\n", "running")
		c.write(zero, "ro\n")
		w.check(t, "1| from one\n1| again\n0| from zero\n", "")
		c.close(zero)
		c.write(one, "no line end")
		c.end(structs.JobSucceeded)
		c.close(one)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "1| from one\n1| again\n0| from zero\n1| no line end\n", "succeeded")
		if took := time.Since(w.began); took > 0 {
			t.Errorf("waited %s though nothing was to be waited for", took)
		}
	})
}

func TestLogsGoOnWhereTheyBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		w := watch(t, c)
		log := &fakeLog{text: "first\nsecond\n", breaks: 8}
		c.start(1, 0, log)
		synctest.Wait()
		pause(t.Context(), logRetry) // virtual
		c.write(log, "third\n")
		c.close(log)
		c.end(structs.JobSucceeded)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "first\nsecond\nthird\n", "")
		var again bool
		for _, asked := range c.mu.asked {
			again = again || strings.Contains(asked, "offset=8")
		}
		if !again {
			t.Errorf("asked %q", c.mu.asked)
		}
	})
}

func TestLogsOfTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		w := watch(t, c)
		c.start(1, 0, &fakeLog{text: "attempt 1\n", closed: true})
		w.check(t, "attempt 1\n", "")
		c.change(func() { c.mu.job.State, c.mu.job.Attempt = structs.JobQueued, 2 })
		c.start(2, 0, &fakeLog{text: "attempt 2\n", closed: true})
		c.end(structs.JobFailed)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "attempt 1\nattempt 2\n", "failed, attempt 2")
	})
}

func TestLogsOfLostNodesHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		w := watch(t, c)
		dead := &fakeLog{text: "last words\n"} // its stream stays open and silent
		c.start(1, 0, &fakeLog{closed: true})
		c.start(1, 1, dead)
		synctest.Wait()
		c.change(func() { c.mu.allocs[1].Status = structs.AllocLost })
		synctest.Wait()
		c.end(structs.JobFailed)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "1| last words\n", "the log of rank 1 on node node1 cannot be read")
		if took := time.Since(w.began); took > 0 {
			t.Errorf("waited %s", took)
		}
	})
}

func TestLogsThatNeverEndAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		w := watch(t, c)
		c.start(1, 0, &fakeLog{text: "x\n"})
		synctest.Wait()
		c.end(structs.JobSucceeded)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "x\n", "succeeded")
		if took := time.Since(w.began); took != logDrain {
			t.Errorf("waited %s, not %s", took, logDrain)
		}
	})
}

func TestWatchingOutlivesTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		w := watch(t, c)
		log := &fakeLog{}
		c.start(1, 0, log)
		synctest.Wait()
		c.change(func() { c.mu.away = 10 })
		c.write(log, "still there\n")
		pause(t.Context(), time.Minute) // virtual
		c.close(log)
		c.end(structs.JobSucceeded)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		w.check(t, "still there\n", "the cluster does not answer; still watching")
		if said := strings.Count(w.complaints.String(), "does not answer"); said != 1 {
			t.Errorf("said %d times", said)
		}
	})
}

func TestLeavingAWatchedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		w := watch(t, c)
		c.start(1, 0, &fakeLog{text: "x\n"})
		synctest.Wait()
		w.cancel()
		err := <-w.done
		w.check(t, "x\n", "no longer watching; job job continues\n  `nomadlike job status job1` shows it")
		env, _, complaints := paper()
		env.Context = t.Context()
		if code := env.exitCode(verb{}, err); code != ExitError || complaints.Len() == 0 {
			t.Errorf("an error of another context: exit code %d, %q", code, complaints)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		env, _, complaints = paper()
		env.Context = ended
		if code := env.exitCode(verb{}, err); code != ExitInterrupted || complaints.Len() > 0 {
			t.Errorf("exit code %d, %q", code, complaints)
		}
	})
}

func TestLogsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		c.start(1, 0, &fakeLog{text: "zero\n"})
		c.start(1, 1, &fakeLog{text: "one\n"})
		c.change(func() { delete(c.mu.logs, "alloc-1-1/stdout") })
		c.change(func() {
			c.mu.allocs = append(c.mu.allocs, structs.Allocation{ID: "never-ran", Attempt: 1, Rank: 2, Status: structs.AllocPending})
		})
		env, out, complaints := paper()
		env.Context = t.Context()
		client, err := api.New(api.Config{HTTPClient: &http.Client{Transport: c}, RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		f := newLogFollower(env, client, "job1")
		f.nameRanks(c.mu.job.Job)
		err = f.once(t.Context())
		if code := env.exitCode(verb{}, err); code != ExitError {
			t.Errorf("a log that is missing: exit code %d", code)
		}
		if out.String() != "0| zero\n" || !strings.Contains(complaints.String(), "rank 1 on node node1 cannot be read") {
			t.Errorf("printed %q, complained %q", out, complaints)
		}
	})
}

// However many ranks a job has, an agent sees a bounded number of readers,
// and every log is read.
func TestLogsOfManyRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(3 * logStreamsMax)
		w := watch(t, c)
		logs := make([]*fakeLog, 3*logStreamsMax)
		for rank := range logs {
			logs[rank] = &fakeLog{text: "x\n"}
			c.start(1, rank, logs[rank])
		}
		synctest.Wait()
		c.mu.Lock()
		most := c.mu.most
		c.mu.Unlock()
		if most != logStreamsMax {
			t.Errorf("%d logs are read at a time, not %d", most, logStreamsMax)
		}
		for _, log := range logs {
			c.close(log)
		}
		c.end(structs.JobSucceeded)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		if lines := strings.Count(w.out.String(), "\n"); lines != len(logs) {
			t.Errorf("%d lines", lines)
		}
	})
}
