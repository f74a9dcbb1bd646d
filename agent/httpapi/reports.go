package httpapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/history/store"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// History is the rows of ended attempts that this server has.
type History interface {
	View() *store.View
}

// reportHandlers answers questions about years of ended attempts.
type reportHandlers struct {
	*core
	history History
}

// Times of reports.
const (
	reportPatience = 30 * time.Second
	reportCatchUp  = time.Millisecond // between looks whether the history is as new as the state
)

// reportMe stands for the caller's own user.
const reportMe = "me"

// tally sums up parts of the history.
type tally interface{ Take(history.Columns) error }

// usage answers reports.usage.
func (h *reportHandlers) usage(r *front.Request) (*api.UsageReport, error) {
	var uses *history.Uses
	about, err := h.report(r, func(q history.Question) (tally, error) {
		var err error
		uses, err = history.NewUses(q)
		return uses, err
	})
	if err != nil {
		return nil, err
	}
	return &api.UsageReport{ReportSpan: *about, Lines: uses.Lines()}, nil
}

// waits answers reports.waits.
func (h *reportHandlers) waits(r *front.Request) (*api.WaitsReport, error) {
	var waits *history.Waits
	about, err := h.report(r, func(q history.Question) (tally, error) {
		var err error
		waits, err = history.NewWaits(q)
		return waits, err
	})
	if err != nil {
		return nil, err
	}
	return &api.WaitsReport{ReportSpan: *about, Lines: waits.Lines()}, nil
}

// report sums up what is asked for: what has ended, by the history, and what is held now, by
// the state that the history is as new as.
func (h *reportHandlers) report(r *front.Request, begin func(history.Question) (tally, error)) (*api.ReportSpan, error) {
	ctx, cancel := context.WithTimeout(r.Context(), reportPatience)
	defer cancel()
	snapshot, err := h.replica.Consistent(ctx)
	if err != nil {
		return nil, err
	}
	now := h.now()
	q, zone, err := h.question(r, snapshot, now)
	if err != nil {
		return nil, err
	}
	sums, err := begin(q)
	if errors.Is(err, history.ErrPeriods) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.report_periods", "max", history.PeriodsMax)
	} else if err != nil {
		return nil, err
	}
	view, err := h.viewOf(ctx, snapshot.Index())
	if err != nil {
		return nil, err
	}
	about := &api.ReportSpan{By: q.By, Per: q.Per, From: q.From, To: q.To, Zone: zone, Since: view.Since(), Index: snapshot.Index(), Gaps: []api.HistoryGap{}}
	about.Rows, _ = view.Rows()
	for _, gap := range view.Gaps {
		if gap.After > 0 { // what was before the first row is none
			about.Gaps = append(about.Gaps, api.HistoryGap{After: gap.After, Until: gap.Until})
		}
	}
	err = view.Each(ctx, q.From, q.To, func(part history.Columns) error {
		if rows, loose := part.(history.Loose); loose {
			n := len(rows)
			for n > 0 && rows[n-1].Index > snapshot.Index() {
				n-- // the state has it as not ended yet
			}
			part = rows[:n]
		}
		return sums.Take(part)
	})
	if err != nil {
		return nil, err
	}
	held := snapshot.Holdings(structs.At(now))
	for i := range held {
		held[i].Outcome = history.OutcomeRunning
	}
	return about, sums.Take(history.Loose(held))
}

// viewOf returns the history when it has the rows of every entry up to index.
func (h *reportHandlers) viewOf(ctx context.Context, index uint64) (*store.View, error) {
	tick := time.NewTicker(reportCatchUp)
	defer tick.Stop()
	for {
		if view := h.history.View(); view.Through >= index {
			return view, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// question reads what is asked for. Of a project that the caller may not read it says what
// it says of one that is not there.
func (h *reportHandlers) question(r *front.Request, snapshot *state.Snapshot, now time.Time) (history.Question, string, error) {
	query := front.Query{R: r}
	zoneName := cmp.Or(query.Text("zone"), "UTC")
	zone, err := structs.ZoneOf(zoneName)
	if err != nil {
		query.Refuse("zone", zoneName)
		return history.Question{}, "", query.Err
	}
	local := now.In(zone)
	q := history.Question{
		By: history.By(cmp.Or(query.Text("by"), string(history.ByProject))), Per: history.Per(query.Text("per")), Zone: zone,
		From: structs.At(time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, zone)), To: structs.At(now),
		User: query.Text("user"), Project: query.Text("project"), Pool: query.Text("pool"), Tag: query.Text("tag"),
	}
	if !slices.Contains(history.Bys(), q.By) {
		query.Refuse("by", string(q.By))
	}
	if !slices.Contains(history.Pers(), q.Per) {
		query.Refuse("per", string(q.Per))
	}
	for name, at := range map[string]*structs.UnixNano{"from": &q.From, "to": &q.To} {
		text := query.Text(name)
		if text == "" {
			continue
		}
		if *at, err = history.ParseMoment(text, now, zone); err != nil {
			query.Refuse(name, text)
		}
	}
	if query.Err != nil {
		return history.Question{}, "", query.Err
	}
	if q.From >= q.To {
		return history.Question{}, "", structs.NewError(structs.CodeInvalid, "agent.report_range", "from", q.From.Time().In(zone).Format(time.RFC3339), "to", q.To.Time().In(zone).Format(time.RFC3339))
	}
	own, within := "", "" // the caller's user, and the one project that the token is good for
	if token := r.Caller.Token; token != nil {
		own, within = token.User, token.Project
	}
	if q.User == reportMe {
		q.User = own
		if own == "" {
			return history.Question{}, "", structs.NewError(structs.CodeInvalid, "agent.report_nobody")
		}
	}
	projects := make(map[string]bool)
	reads := func(project string) bool {
		may, known := projects[project]
		if !known {
			may = mayReadProject(r, project) || isMember(r, snapshot, project)
			projects[strings.Clone(project)] = may
		}
		return may
	}
	mine := func(user, project string) bool {
		return own != "" && user == own && (within == "" || project == within)
	}
	if q.Project != "" && !reads(q.Project) && !mine(q.User, q.Project) {
		return history.Question{}, "", auth.NotFound(auth.ObjectProject, q.Project)
	}
	q.May = func(user, project string) bool { return mine(user, project) || reads(project) }
	return q, zoneName, nil
}
