package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// forecastHandlers answers when jobs will start.
type forecastHandlers struct {
	*core
	futures  Forecasts
	admit    func(*front.Request, *structs.Job) (*admission, *structs.Error) // of a job that a caller asks about
	protocol func() int                                                      // the lowest that a server of the log speaks
	views    views
}

const (
	timelineHours    = 24
	timelineHoursMax = 168
)

// readable remembers which jobs that a forecast names the caller may read.
type readable struct {
	r        *front.Request
	snapshot *state.Snapshot
	may      map[string]bool
	all      bool   // every one
	told     []byte // the answers, in the order of the questions
}

func newReadable(r *front.Request, snapshot *state.Snapshot) *readable {
	return &readable{r: r, snapshot: snapshot, may: make(map[string]bool)}
}

// newViewer is newReadable for a whole forecast: whoever may read everything is asked
// about no job by itself.
func newViewer(r *front.Request, snapshot *state.Snapshot) *readable {
	may := newReadable(r, snapshot)
	may.all = readsAll(r)
	return may
}

func (m *readable) job(id string) bool {
	if m.all {
		return true
	}
	may, asked := m.may[id]
	if !asked {
		view, ok := m.snapshot.Job(id)
		may = ok && mayRead(m.r, view.Job)
		m.may[id] = may
		told := byte('0')
		if may {
			told = '1'
		}
		m.told = append(m.told, told)
	}
	return may
}

// key tells apart what callers may see of the same things.
func (m *readable) key() string {
	if m.all {
		return "all"
	}
	return string(m.told)
}

// snapshot is the newest forecast, and the newest state to judge by who may see
// what of it.
func (h *forecastHandlers) snapshot(r *front.Request) (*state.Snapshot, *server.ForecastSnapshot, error) {
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, nil, err
	}
	shown, err := h.futures.ForecastSnapshot(r.Context(), 0, "")
	return snapshot, shown, err
}

// previewPatience is what whoever asked for too many previews is told to wait.
const previewPatience = time.Second

// asker is on whose account a preview about a project is computed.
func asker(r *front.Request, project string) server.Asker {
	return server.Asker{User: r.Caller.Principal.ID, Project: project}
}

// patiently asks whoever has too many previews under way to wait.
func patiently(err error) error {
	var refused *structs.Error
	if errors.As(err, &refused) && strings.HasPrefix(refused.ID, "server.previews_") {
		return &front.RetryError{After: previewPatience, Err: refused}
	}
	return err
}

// preview lets ask compute on the caller's account, see Server.Preview.
func (h *forecastHandlers) preview(r *front.Request, project string, ask func(*forecast.Futures) error) error {
	return patiently(h.futures.Preview(r.Context(), asker(r, project), ask))
}

// queue reports when everything that the caller may read will start.
func (h *forecastHandlers) queue(r *front.Request) (*front.Encoded[api.QueueForecast], error) {
	snapshot, shown, err := h.snapshot(r)
	if err != nil {
		return nil, err
	}
	may := newViewer(r, snapshot)
	if !may.all {
		for i := range shown.Starts {
			may.job(shown.Starts[i].JobID)
		}
	}
	return drawn(&h.views, shown, "queue "+may.key(), func() *api.QueueForecast {
		out := api.QueueForecast{At: shown.At, Starts: []outlook.Start{}}
		for i := range shown.Starts {
			if may.job(shown.Starts[i].JobID) {
				out.Starts = append(out.Starts, shown.Starts[i])
			}
		}
		return &out
	})
}

// timeline draws the next hours. Bars of jobs that the caller may not
// read keep their place and lose their name.
func (h *forecastHandlers) timeline(r *front.Request) (*front.Encoded[outlook.Timeline], error) {
	q := front.Query{R: r}
	hours, pool := q.Int("hours", 1, timelineHoursMax), q.Text("pool")
	if q.Err != nil {
		return nil, q.Err
	}
	span := structs.Duration(time.Duration(cmp.Or(hours, timelineHours)) * time.Hour)
	snapshot, shown, err := h.snapshot(r)
	if err != nil {
		return nil, err
	}
	may := newViewer(r, snapshot)
	cut := sync.OnceValue(func() *outlook.Timeline {
		out := shown.Timeline(span, func(node *structs.Node) bool { return pool == "" || poolOf(node.Pool) == pool })
		for i := range out.Rows {
			for k := range out.Rows[i].Bars {
				if bar := &out.Rows[i].Bars[k]; !may.job(bar.JobID) {
					bar.JobID, bar.JobName, bar.Project, bar.Subjob = "", "", "", 0
				}
			}
		}
		return &out
	})
	if !may.all {
		cut() // asks what the caller may see
	}
	key := fmt.Sprintf("timeline %d %q %s", span, pool, may.key())
	return drawn(&h.views, shown, key, cut)
}

// ofOffer reports when a job that is not submitted would start.
func (h *forecastHandlers) ofOffer(r *front.Request, offer *offered) (*api.JobOutlook, error) {
	admitted, failure := h.admit(r, offer.job)
	if failure != nil {
		return nil, failure
	}
	job := admitted.job
	job.ID, job.SubmittedAt = trialID(), structs.At(h.now())
	server.SetRules(job, h.protocol())
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	out := api.JobOutlook{Defaults: admitted.Defaults(), Warnings: admitted.warnings(r)}
	err = h.preview(r, job.Project, func(futures *forecast.Futures) error {
		out.Answer, out.At = futures.Job(unmet(snapshot, job)), futures.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	may := newReadable(r, snapshot)
	hideVictims(may, out.Victims)
	for i := range out.Helps {
		hideVictims(may, out.Helps[i].Victims)
	}
	if out.Wait != nil {
		out.Holders = holders(r, snapshot, waitHolders(snapshot, job, out.Wait))
		out.Wait = waitOf(r, snapshot, out.Wait)
	}
	for i := range out.Specs {
		out.Specs[i].Wait = waitOf(r, snapshot, out.Specs[i].Wait)
	}
	return &out, nil
}

// hideVictims takes the names from victims that the caller may not read; that
// there is one, and what it would lose, stays.
func hideVictims(may *readable, victims []outlook.Victim) {
	for i := range victims {
		if v := &victims[i]; !may.job(v.JobID) {
			v.JobID, v.JobName, v.Project, v.User, v.Subjob = "", "", "", "", 0
		}
	}
}

// ofJob reports when a job will start, and what was said before.
func (h *forecastHandlers) ofJob(r *front.Request, job *structs.Job) (*api.JobForecast, error) {
	q := front.Query{R: r}
	helps := q.Bool("helps")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.block(r, everything(func(now *state.Snapshot) <-chan struct{} { return now.WatchForecasts(job.ID) }))
	if err != nil {
		return nil, err
	}
	out := api.JobForecast{JobID: job.ID, Starts: []outlook.Start{}, History: [][]structs.Forecast{}}
	for said := range snapshot.Forecasts(job.ID) {
		said = slices.Clone(said)
		for i := range said {
			said[i].Features = nil // for the calibration, not for people
		}
		out.History = append(out.History, said)
	}
	view, ok := snapshot.Job(job.ID)
	if !ok || view.Status.Counts.Of(structs.JobQueued) == 0 {
		return &out, nil
	}
	shown, err := h.futures.ForecastSnapshot(r.Context(), view.Status.ModifyIndex, job.ID)
	if err != nil {
		return nil, err
	}
	out.At = shown.At
	named := make(map[string]bool)
	for start := range shown.OfJob(job.ID) {
		if len(out.Starts) == api.PageSizeDefault {
			break
		}
		told := *start
		told.Wait = waitOf(r, snapshot, start.Wait)
		out.Starts = append(out.Starts, told)
		if start.Wait == nil {
			continue
		}
		for _, holder := range holders(r, snapshot, waitHolders(snapshot, view.Job, start.Wait)) {
			if !named[holder.ID] {
				named[holder.ID] = true
				out.Holders = append(out.Holders, holder)
			}
		}
	}
	if helps && len(out.Starts) > 0 {
		if out.Helps, err = h.helpsOf(r, snapshot, &out.Starts[0], view.Job.Project); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// helpsOf proposes changes of a queued job itself, at its own place in the
// queue. What is no sooner than the start that is told beside them is left out.
func (h *forecastHandlers) helpsOf(r *front.Request, snapshot *state.Snapshot, start *outlook.Start, project string) ([]outlook.Help, error) {
	var list []outlook.Help
	err := h.preview(r, project, func(futures *forecast.Futures) error {
		list = futures.Helps(start.JobID, start.Subjob)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(help outlook.Help) bool { return start.P50 != 0 && help.P50 >= start.P50 })
	may := newReadable(r, snapshot)
	for i := range list {
		hideVictims(may, list[i].Victims)
	}
	return list, nil
}

// accuracy compares what was said with what came.
func (h *forecastHandlers) accuracy(r *front.Request) (*api.Accuracy, error) {
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	pools := make(map[string][]structs.Forecast)
	var all []structs.Forecast
	for _, said := range snapshot.EndedForecasts(0) {
		if len(said) == 0 || said[0].StartedAt == 0 || said[0].Withdrawn {
			continue
		}
		first := said[0]
		all = append(all, first)
		pools[poolOf(first.Pool)] = append(pools[poolOf(first.Pool)], first)
	}
	out := api.Accuracy{All: calibrationOf(all), Pools: make(map[string]api.Calibration, len(pools))}
	for name, said := range pools {
		out.Pools[name] = calibrationOf(said)
	}
	return &out, nil
}

// Which forecasts count as hits: within five minutes, or a fifth of the wait.
const (
	hitWithin = 300.0 // seconds
	hitShare  = 0.2
)

// calibrationOf judges first answers by the starts that came.
func calibrationOf(said []structs.Forecast) api.Calibration {
	c := api.Calibration{N: len(said)}
	if c.N == 0 {
		return c
	}
	misses := make([]float64, 0, len(said))
	hits, by50, by90 := 0, 0, 0
	for i := range said {
		f := &said[i]
		off := f.Point.Sub(f.StartedAt).Seconds()
		wait := max(f.StartedAt.Sub(f.GivenAt).Seconds(), 0)
		miss := max(off, -off)
		misses = append(misses, miss)
		c.Bias += off
		c.MAE += miss
		if miss <= max(hitWithin, hitShare*wait) {
			hits++
		}
		if f.StartedAt <= f.P50 {
			by50++
		}
		if f.StartedAt <= f.P90 {
			by90++
		}
	}
	n := float64(c.N)
	slices.Sort(misses)
	c.MAE, c.Bias = c.MAE/n, c.Bias/n
	c.MedAE, c.P90AbsErr = misses[len(misses)/2], misses[min(len(misses)-1, len(misses)*9/10)]
	c.HitPct, c.Cov50Pct, c.Cov90Pct = 100*float64(hits)/n, 100*float64(by50)/n, 100*float64(by90)/n
	return c
}

// whatIf returns what changes would do; nothing is changed.
func (h *forecastHandlers) whatIf(r *front.Request, body *api.WhatIfRequest) (*api.Effect, error) {
	if len(body.Changes) == 0 || len(body.Changes) > outlook.ChangesMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.what_if_count", "count", len(body.Changes), "max", outlook.ChangesMax)
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	changes := slices.Clone(body.Changes)
	for i := range changes {
		if err := h.checkChange(r, snapshot, &changes[i]); err != nil {
			return nil, err
		}
	}
	var out api.Effect
	err = h.preview(r, r.Caller.Standing.Project, func(futures *forecast.Futures) (err error) {
		out.Effect, err = futures.WhatIf(changes)
		return err
	})
	if err != nil {
		return nil, err
	}
	may := newReadable(r, snapshot)
	for i := range changes { // the caller's own idea
		if job := changes[i].Job; job != nil {
			may.may[job.ID] = true
		}
	}
	shifts := out.Shifts[:0]
	for _, shift := range out.Shifts {
		if may.job(shift.JobID) {
			shifts = append(shifts, shift)
		}
	}
	out.Hidden, out.Shifts = len(out.Shifts)-len(shifts), shifts
	return &out, nil
}

// checkChange finds the jobs that a change names, among those that the caller
// may read, and admits one that it submits.
func (h *forecastHandlers) checkChange(r *front.Request, snapshot *state.Snapshot, change *outlook.Change) error {
	if change.Kind == outlook.ChangeQuota {
		return checkQuota(r, snapshot, change)
	}
	for _, id := range []*string{&change.JobID, &change.Before} {
		if *id == "" {
			continue
		}
		named, err := findJob(r, *id, snapshot)
		if err != nil {
			return err
		}
		if !mayRead(r, named) {
			return auth.NotFound(auth.ObjectJob, *id)
		}
		*id = named.ID
		if change.Kind == outlook.ChangeSubmit && change.Job == nil { // one like it
			like := *named
			change.Job = &like
		}
	}
	if change.Job == nil {
		return nil
	}
	change.Job.Project = cmp.Or(change.Job.Project, r.Caller.Standing.Project)
	if !mayReadProject(r, change.Job.Project) {
		return auth.NotFound(auth.ObjectProject, change.Job.Project)
	}
	admitted, failure := h.admit(r, change.Job)
	if failure != nil {
		return failure
	}
	job := admitted.job
	job.ID, job.User, job.SubmittedAt = trialID(), r.Caller.Principal.ID, structs.At(h.now())
	change.Job = unmet(snapshot, job)
	return nil
}

func mayReadProject(r *front.Request, project string) bool {
	object := auth.Object{Kind: auth.ObjectProject, Project: project, ID: project}
	return auth.Allowed(r.Caller.Principal, auth.VerbRead, object).Allow
}

// checkQuota finds the project that a change gives quotas, and looks at these as when an
// administrator gives them.
func checkQuota(r *front.Request, snapshot *state.Snapshot, change *outlook.Change) error {
	if change.Project = cmp.Or(change.Project, r.Caller.Standing.Project); !mayReadProject(r, change.Project) {
		return auth.NotFound(auth.ObjectProject, change.Project)
	}
	known := change.Project == r.Caller.Principal.Project || snapshot.Project(change.Project) != nil || snapshot.ProjectUsage(change.Project) != nil
	for waiting := range snapshot.Waiting() {
		known = known || waiting.Project == change.Project
	}
	if !known {
		return auth.NotFound(auth.ObjectProject, change.Project)
	}
	tried := structs.Project{Name: change.Project, Quotas: change.Quotas}
	return invalid("agent.project_invalid", tried.Validate())
}
