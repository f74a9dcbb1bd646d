package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// generated is rows as a busy cluster makes them: of each attempt a holding and a row of its
// own, 50 projects, 400 users, two years.
func generated(from, count int) []structs.HistoryRow {
	random := rand.New(rand.NewPCG(uint64(from), 1))
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	models := []string{"nvidia/gpu/NVIDIA A100-SXM4-80GB", "nvidia/gpu/NVIDIA H100 80GB HBM3", "huawei/npu/910B"}
	outcomes := []structs.Outcome{structs.OutcomeSucceeded, structs.OutcomeSucceeded, structs.OutcomeFailed, structs.OutcomeStopped, structs.OutcomeLost}
	rows := make([]structs.HistoryRow, 0, count)
	for i := from; len(rows) < count; i++ {
		at := structs.At(begin.Add(time.Duration(i) * 25 * time.Second)).Add(time.Duration(random.IntN(1e9)))
		user := random.IntN(400)
		row := structs.HistoryRow{
			Index: uint64(i*11 + 1), Kind: structs.HistoryHolding, JobID: fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64()),
			JobName: fmt.Sprintf("train-%d-%d", user, random.IntN(30)), JobNumber: uint64(i), Attempt: 1,
			User: fmt.Sprintf("user-%d", user), Project: fmt.Sprintf("group-%d", user%50), Pool: "default", Priority: structs.PriorityNormal,
			Cards: structs.QuotaUsage{models[random.IntN(3)]: int64(1 << random.IntN(4))}, MilliCPU: 8000, Memory: 64 << 30,
			Start: at.Add(-time.Duration(random.ExpFloat64() * float64(3*time.Hour))), End: at,
			Outcome: outcomes[random.IntN(len(outcomes))], Status: structs.AllocComplete, Node: fmt.Sprintf("gpu-%03d", random.IntN(200)),
		}
		rows = append(rows, row)
		row.Ordinal, row.Kind, row.Status, row.Nodes, row.NodesAsked, row.Last = 1, structs.HistoryAttempt, "", 1, 1, true
		row.Submitted = row.Start.Add(-time.Duration(random.ExpFloat64() * float64(time.Hour)))
		row.Queued, row.Eligible, row.Running, row.Ending = row.Submitted, row.Submitted, row.Start.Add(3*time.Second), row.End.Add(-time.Second)
		row.ForecastP50, row.ForecastP90 = row.Start.Add(time.Minute), row.Start.Add(time.Hour)
		rows = append(rows, row)
	}
	return rows[:count]
}

// BenchmarkUseByProjectAndMonth sums up a million rows in segments that lie in memory.
func BenchmarkUseByProjectAndMonth(b *testing.B) {
	const count = 1_000_000
	var segments [][]byte
	size := 0
	for from := 0; from < count; from += history.SegmentRowsMax {
		data, err := history.Encode(uint64(from), uint64(from+history.SegmentRowsMax), generated(from/2, history.SegmentRowsMax))
		if err != nil {
			b.Fatal(err)
		}
		segments, size = append(segments, data), size+len(data)
	}
	for b.Loop() {
		uses, err := history.NewUses(history.Question{
			By: history.ByProject, Per: history.PerMonth,
			From: structs.At(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)), To: structs.At(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)),
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, data := range segments {
			segment, err := history.Open(bytes.NewReader(data))
			if err == nil {
				err = uses.Take(segment)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if len(uses.Lines()) < 100 {
			b.Fatal("too few lines")
		}
	}
	b.ReportMetric(float64(size)/float64(len(segments)*history.SegmentRowsMax), "B/row")
}

// BenchmarkEncode makes one segment.
func BenchmarkEncode(b *testing.B) {
	rows := generated(0, history.SegmentRowsMax)
	for b.Loop() {
		if _, err := history.Encode(0, 1<<40, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}
