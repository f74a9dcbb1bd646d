package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// ReportSpan says what a report is about, and what of it is not known.
type ReportSpan struct {
	By    history.By       `json:"by"`
	Per   history.Per      `json:"per"`
	From  structs.UnixNano `json:"from"`
	To    structs.UnixNano `json:"to"`
	Zone  string           `json:"zone"`
	Since structs.UnixNano `json:"since,omitempty"` // start of the oldest row that there is
	Rows  int              `json:"rows"`            // of the history on this server
	Index uint64           `json:"index"`           // of the log, as of which this is
	Gaps  []HistoryGap     `json:"gaps"`            // rows that this server lacks and fetches
}

// HistoryGap is entries of the log whose rows a server does not have yet.
type HistoryGap struct {
	After uint64 `json:"after"`
	Until uint64 `json:"until"`
}

// UsageReport is who held how many cards for how long.
type UsageReport struct {
	ReportSpan
	Lines []history.Use `json:"lines"`
}

// WaitsReport is how long whoever waited.
type WaitsReport struct {
	ReportSpan
	Lines []history.Wait `json:"lines"`
}

var reportParams = []Param{
	{"by", "string", "a line for each: project unless told, or user, pool, cards, tag, size"},
	{"per", "string", "cut into spans of the calendar: day, week or month"},
	{"from", "string", "from when on: a time, a day such as 2026-11-01, a month such as 2026-11, or how far back, such as 30d; the beginning of this month unless told"},
	{"to", "string", "until when, likewise; now unless told"},
	{"zone", "string", "time zone of days and months, such as Asia/Shanghai; UTC unless told"},
	{"user", "string", "only what this user's jobs had; `me`: the caller's"},
	{"project", "string", "only what this project's jobs had"},
	{"pool", "string", "only what was in this pool"},
	{"tag", "string", "only what jobs with this tag had"},
}

// The endpoints of reports.
var (
	ReportsUsage = endpoint[None, UsageReport](Route{
		Name: "reports.usage", Method: http.MethodGet, Pattern: "/v1/reports/usage", Verb: VerbList, Kind: ObjectProject, From: FromKind,
		Query:   reportParams,
		Summary: "Who held how many cards for how long, of all years that are kept, and what became of it; of projects that the caller may read, and the caller's own",
	})
	ReportsWaits = endpoint[None, WaitsReport](Route{
		Name: "reports.waits", Method: http.MethodGet, Pattern: "/v1/reports/waits", Verb: VerbList, Kind: ObjectProject, From: FromKind,
		Query:   reportParams,
		Summary: "How long attempts had waited when they were placed, and whether the forecasts of their start held",
	})
)

func reportRoutes() []Route { return []Route{ReportsUsage.route, ReportsWaits.route} }

// ReportQuery says what a report is about; what is empty is left to the server.
type ReportQuery struct {
	By, Per, From, To        string
	Zone                     string // "": that of this machine
	User, Project, Pool, Tag string
}

func (q ReportQuery) values() url.Values {
	if q.Zone == "" {
		q.Zone = LocalZone()
	}
	values := url.Values{}
	for name, value := range map[string]string{
		"by": q.By, "per": q.Per, "from": q.From, "to": q.To, "zone": q.Zone, "user": q.User, "project": q.Project, "pool": q.Pool, "tag": q.Tag,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// ReportUsage reports who held how many cards for how long.
func (c *Client) ReportUsage(ctx context.Context, query ReportQuery) (*UsageReport, error) {
	out, _, err := read(ctx, c, ReportsUsage, "", query.values())
	return out, err
}

// ReportWaits reports how long whoever waited.
func (c *Client) ReportWaits(ctx context.Context, query ReportQuery) (*WaitsReport, error) {
	out, _, err := read(ctx, c, ReportsWaits, "", query.values())
	return out, err
}
