package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The long queue that pages look at.
const (
	picturesNodes     = 100 // of eight cards
	picturesRunning   = 400
	picturesQueued    = 5000
	picturesUsers     = 20
	picturesProjects  = 6
	picturesAsked     = 20 // questions of each kind, each after a change
	picturesPollers   = 50
	picturesPollEvery = time.Second
	picturesSubmits   = 150
	picturesSubmitGap = 50 * time.Millisecond
	picturesPreviews  = 300 // of one user
)

// asker is somebody with a token of their own.
type asker struct {
	http   *http.Client
	base   string
	secret string
	client *api.Client
}

// pictures measures what a server with a long queue answers to those who look at
// it, how long submissions take beside them, and how long one user's previews
// make another wait.
func pictures(ctx context.Context, b *bench) error {
	f, err := b.newFleet(ctx, picturesNodes)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.connect(ctx); err != nil {
		return err
	}
	if err := f.register(ctx); err != nil {
		return err
	}
	users := make([]*asker, picturesUsers)
	for i := range users {
		if users[i], err = f.asker(ctx, fmt.Sprintf("u%02d", i)); err != nil {
			return err
		}
	}
	ids, err := longQueue(ctx, users)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "load:", loadAverage())
	if err := askAfterChanges(ctx, users, ids); err != nil {
		return err
	}
	alone, err := submitSome(ctx, users)
	if err != nil {
		return err
	}
	report("pictures_submit_alone_ms", "ms", alone)
	if err := f.besidePollers(ctx, users, ids); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "load:", loadAverage())
	if err := besidePreviews(ctx, users, ids); err != nil {
		return err
	}
	report("pictures_server_cpu_s", "s", []float64{cpuSeconds(f.w.agents["s1"].cmd.Process.Pid)})
	report("pictures_server_rss_mb", "MB", []float64{residentMB(f.w.agents["s1"].cmd.Process.Pid)})
	return f.problem()
}

func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	return string(data)
}

// asker makes a token for a user, and clients that use it.
func (f *fleet) asker(ctx context.Context, user string) (*asker, error) {
	made, err := f.w.client.CreateToken(ctx, api.TokenRequest{Name: user, Role: "admin", User: user})
	if err != nil {
		return nil, err
	}
	host := f.w.agents["s1"]
	ca, err := os.ReadFile(filepath.Join(host.dir, "data", "identity", "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	a := &asker{base: fmt.Sprintf("https://%s:%d", host.addr, host.port), secret: made.Secret}
	a.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 2 * time.Minute}
	a.client, err = api.New(api.Config{Address: a.base, CAPEM: ca, Token: made.Secret})
	return a, err
}

// get asks and throws the answer away, as whoever draws it elsewhere does; it
// reports how long it took, in milliseconds.
func (a *asker) get(ctx context.Context, path string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+a.secret)
	begin := time.Now()
	response, err := a.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("get %s: status %d", path, response.StatusCode)
	}
	return float64(time.Since(begin).Microseconds()) / 1000, nil
}

// pictureJobs counts the jobs that were made: no two have one name.
var pictureJobs atomic.Int64

// pictureJob is one of many different jobs.
func pictureJob() *structs.Job {
	number := int(pictureJobs.Add(1))
	job := trivialJob(fmt.Sprintf("j%05d", number), "true")
	devices := []int{1, 1, 1, 2, 4, 8}[number%6]
	job.Project = fmt.Sprintf("p%d", number%picturesProjects)
	job.TimeLimit = structs.Duration(time.Duration(1+number*7%48) * time.Hour)
	job.Resources = []structs.Resources{{
		CPU: float64(devices), Memory: int64(devices) << 30,
		Devices: []structs.DeviceRequest{{Kind: fleetDevice, Count: devices}},
	}}
	return job
}

// longQueue fills the cluster and the queue, and returns the ids of what waits.
func longQueue(ctx context.Context, users []*asker) ([]string, error) {
	all := make([]string, picturesRunning+picturesQueued)
	errs := make([]error, len(users))
	var next atomic.Int64
	var group sync.WaitGroup
	for u, user := range users {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) || errs[u] != nil {
					return
				}
				if all[i], errs[u] = submitPatiently(ctx, user, pictureJob()); errs[u] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all[picturesRunning:], nil
}

// submitPatiently submits again when the caller was asked to wait.
func submitPatiently(ctx context.Context, user *asker, job *structs.Job) (string, error) {
	for {
		made, err := user.client.SubmitJob(ctx, api.JobRequest{Job: job}, "")
		if err == nil {
			return made.JobID, nil
		}
		if structs.CodeOf(err) != structs.CodeUnavailable || ctx.Err() != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// askAfterChanges asks for pictures, each a moment after something changed.
func askAfterChanges(ctx context.Context, users []*asker, ids []string) error {
	user := users[0]
	for _, kind := range []struct {
		name string
		path func() string
	}{
		{"pictures_timeline_ms", func() string { return "/v1/queue/timeline" }},
		{"pictures_job_forecast_ms", func() string { return "/v1/jobs/" + ids[rand.IntN(len(ids))] + "/forecast" }},
		{"pictures_queue_forecast_ms", func() string { return "/v1/queue/forecast" }},
		{"pictures_queue_page_ms", func() string { return "/v1/queue?forecast=true" }},
	} {
		var took []float64
		for i := range picturesAsked {
			if _, err := submitPatiently(ctx, users[i%len(users)], pictureJob()); err != nil {
				return err
			}
			one, err := user.get(ctx, kind.path())
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		report(kind.name, "ms", took)
	}
	return nil
}

// submitSome submits jobs at an even pace, and reports how long each took.
func submitSome(ctx context.Context, users []*asker) ([]float64, error) {
	tick := time.NewTicker(picturesSubmitGap)
	defer tick.Stop()
	var took []float64
	for i := range picturesSubmits {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		begin := time.Now()
		if _, err := users[i%len(users)].client.SubmitJob(ctx, api.JobRequest{Job: pictureJob()}, ""); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
	}
	return took, nil
}

// besidePollers measures submissions while many clients draw pictures.
func (f *fleet) besidePollers(ctx context.Context, users []*asker, ids []string) error {
	polling, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	var mu sync.Mutex
	var polled []float64
	var failed int
	for i := range picturesPollers {
		poller, err := f.asker(ctx, fmt.Sprintf("poller%02d", i))
		if err != nil {
			return err
		}
		group.Go(func() {
			paths := []string{"/v1/queue/timeline", "/v1/queue?forecast=true", "/v1/jobs/" + ids[i*17%len(ids)] + "/forecast", "/v1/queue/forecast"}
			for k := i; polling.Err() == nil; k++ {
				took, err := poller.get(polling, paths[k%len(paths)])
				mu.Lock()
				if err == nil {
					polled = append(polled, took)
				} else if polling.Err() == nil {
					failed++
				}
				mu.Unlock()
				select {
				case <-polling.Done():
				case <-time.After(picturesPollEvery):
				}
			}
		})
	}
	took, err := submitSome(ctx, users)
	stop()
	group.Wait()
	if err != nil {
		return err
	}
	report("pictures_submit_beside_pollers_ms", "ms", took)
	if failed > 0 {
		fmt.Fprintln(os.Stderr, failed, "polls failed")
	}
	if len(polled) > 0 {
		report("pictures_polled_ms", "ms", polled)
	}
	return nil
}

// besidePreviews measures what another user waits while one asks for very many
// previews.
func besidePreviews(ctx context.Context, users []*asker, ids []string) error {
	var group sync.WaitGroup
	var computed, refused atomic.Int64
	begin := time.Now()
	for range picturesPreviews {
		group.Go(func() {
			if _, err := users[0].client.ForecastJob(ctx, api.JobRequest{Job: pictureJob()}); err != nil {
				refused.Add(1)
				return
			}
			computed.Add(1)
		})
	}
	var plans, forecasts []float64
	for i := range 5 {
		asked := time.Now()
		if _, err := users[1].client.PlanJob(ctx, api.JobRequest{Job: pictureJob()}); err != nil {
			return err
		}
		plans = append(plans, float64(time.Since(asked).Microseconds())/1000)
		one, err := users[2].get(ctx, "/v1/jobs/"+ids[i]+"/forecast")
		if err != nil {
			return err
		}
		forecasts = append(forecasts, one)
	}
	report("pictures_plan_beside_previews_ms", "ms", plans)
	report("pictures_forecast_beside_previews_ms", "ms", forecasts)
	group.Wait()
	report("pictures_300_previews_s", "s", []float64{time.Since(begin).Seconds()})
	fmt.Fprintln(os.Stderr, computed.Load(), "previews computed,", refused.Load(), "refused")
	return nil
}
