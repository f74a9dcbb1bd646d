package structs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// HistoryKind says what a row of the history is about.
type HistoryKind string

// The kinds of rows.
const (
	// HistoryHolding is what one rank held of its node, until it let go of it: cards
	// and cores from when to when. What is charged is the sum of these and nothing
	// else.
	HistoryHolding HistoryKind = "holding"
	// HistoryAttempt is how an attempt of a gang came and ended, with how long it
	// had waited.
	HistoryAttempt HistoryKind = "attempt"
)

// HistoryRow is one line of the cluster's history, which outlives the jobs in the
// state. state.Apply makes it of the entry at Index and every server keeps it outside of
// the replicated state; none is ever changed. Index and Ordinal name it: they are the
// same on every server.
//
// Times are the log's, not those of the nodes. A field that came later is at its zero
// value in rows from before.
type HistoryRow struct {
	Index   uint64      `json:"index"`
	Ordinal int         `json:"ordinal"` // among the rows of the entry, from 0
	Kind    HistoryKind `json:"kind"`

	JobID     string   `json:"job_id"`
	JobName   string   `json:"job_name"`
	JobNumber uint64   `json:"job_number,omitempty"`
	Subjob    int      `json:"subjob"`
	Attempt   uint64   `json:"attempt"`
	User      string   `json:"user"`
	Project   string   `json:"project"`
	Pool      string   `json:"pool,omitempty"` // of the node, or of rank 0
	Category  string   `json:"category,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Priority  Priority `json:"priority,omitempty"`

	// Cards are devices by DeviceKey: of a rank what it held, of an attempt what all
	// ranks were given. MilliCPU is the same of thousandths of cores.
	Cards    QuotaUsage `json:"cards,omitempty"`
	MilliCPU int64      `json:"milli_cpu,omitempty"`
	Memory   int64      `json:"memory,omitempty"` // bytes that were asked for

	Start UnixNano `json:"start"` // of a holding when it began, of an attempt when it was placed
	End   UnixNano `json:"end"`

	// Outcome is that of the attempt, and how the rank ended.
	Outcome Outcome     `json:"outcome,omitempty"`
	Status  AllocStatus `json:"status,omitempty"`
	Cause   string      `json:"cause,omitempty"` // id of the reason
	Infra   bool        `json:"infra,omitempty"` // the cause lies with a node
	Node    string      `json:"node,omitempty"`  // of the rank; of an attempt the one that failed first
	Device  string      `json:"device,omitempty"`
	Exit    int         `json:"exit,omitempty"`

	Rank int `json:"rank,omitempty"` // of a holding

	// Of an attempt alone.
	Nodes        int      `json:"nodes,omitempty"` // that it was given
	NodesAsked   int      `json:"nodes_asked,omitempty"`
	LostNodes    int      `json:"lost_nodes,omitempty"` // that it went on without
	Submitted    UnixNano `json:"submitted,omitempty"`
	Queued       UnixNano `json:"queued,omitempty"`   // when it entered the queue for this attempt
	Eligible     UnixNano `json:"eligible,omitempty"` // from when on nothing but room kept it
	Running      UnixNano `json:"running,omitempty"`  // when all ranks ran; 0: they never did
	Ending       UnixNano `json:"ending,omitempty"`   // when they were asked to stop
	CheckpointAt UnixNano `json:"checkpoint_at,omitempty"`
	Paused       Duration `json:"paused,omitempty"`
	TimeLimit    Duration `json:"time_limit,omitempty"`
	YieldedTo    string   `json:"yielded_to,omitempty"`   // id of the job that it made room for
	ForecastP50  UnixNano `json:"forecast_p50,omitempty"` // of its start, as first told
	ForecastP90  UnixNano `json:"forecast_p90,omitempty"`
	Last         bool     `json:"last,omitempty"` // no other attempt follows
	Image        string   `json:"image,omitempty"`
	Code         string   `json:"code,omitempty"` // digest of the code that travelled with it
}

// CardCount is the number of cards of all kinds.
func (r *HistoryRow) CardCount() int64 {
	n := int64(0)
	for _, count := range r.Cards {
		n += count
	}
	return n
}

// Less reports whether the row came before another one.
func (r *HistoryRow) Less(other *HistoryRow) bool {
	return r.Index < other.Index || r.Index == other.Index && r.Ordinal < other.Ordinal
}

// CardsText writes a usage as one text, such as "nvidia/gpu/A100=4": the same usage
// always as the same text.
func CardsText(usage QuotaUsage) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(usage)) {
		if text.Len() > 0 {
			text.WriteByte(cardsSeparator)
		}
		text.WriteString(key + "=" + strconv.FormatInt(usage[key], 10))
	}
	return text.String()
}

// cardsSeparator stands between two kinds of cards in a text; no name of a kind or a
// model holds it, since fingerprints take control characters away.
const cardsSeparator = '\x1f'

// ParseCards reads what CardsText writes; what is no card is left out.
func ParseCards(text string) QuotaUsage {
	if text == "" {
		return nil
	}
	usage := QuotaUsage{}
	for part := range strings.SplitSeq(text, string(cardsSeparator)) {
		at := strings.LastIndexByte(part, '=')
		if at < 0 {
			continue
		}
		if n, err := strconv.ParseInt(part[at+1:], 10, 64); err == nil {
			usage[part[:at]] += n
		}
	}
	return usage
}

// HistoryAsk asks another server for rows of the history behind an index.
type HistoryAsk struct {
	After uint64 `json:"after"`
	Until uint64 `json:"until"` // the last index that is of interest
}

// HistoryPart answers a HistoryAsk: all rows behind After and up to Until, as far as that
// server has them. Until not behind After: it has none of them.
type HistoryPart struct {
	After uint64       `json:"after"`
	Until uint64       `json:"until"`
	Rows  []HistoryRow `json:"rows,omitempty"`
}
