package agent

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// eventFile is an event file of TensorBoard with one scalar a step.
func eventFile(at time.Time, tag string, values ...float32) []byte {
	masked := func(data []byte) uint32 {
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		return (sum>>15 | sum<<17) + 0xa282ead8
	}
	long := func(to []byte, number protowire.Number, data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), data)
	}
	var file []byte
	for step, v := range values {
		value := protowire.AppendFixed32(protowire.AppendTag(long(nil, 1, []byte(tag)), 2, protowire.Fixed32Type), math.Float32bits(v))
		record := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(float64(at.UnixNano())/1e9))
		record = protowire.AppendVarint(protowire.AppendTag(record, 2, protowire.VarintType), uint64(step))
		record = long(record, 5, long(nil, 1, value))
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(record)))
		file = append(file, binary.LittleEndian.AppendUint32(head, masked(head))...)
		file = binary.LittleEndian.AppendUint32(append(file, record...), masked(record))
	}
	return file
}

// TestCurvesOfAJob: what a training prints and writes into event files is there
// as curves, for each attempt, while it runs and after its end.
func TestCurvesOfAJob(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events.out.tfevents.9.host")
	if err := os.WriteFile(events, eventFile(time.Now().Add(time.Hour), "train/loss", 4, 2, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "train.sh")
	text := fmt.Sprintf(`for step in 0 1 2 3 4; do echo "step=$step loss=$((9 - step)).5 extra=7"; done
echo "step=5 loss=nan" >&2
[ "$NOMADLIKE_ATTEMPT" = 1 ] && exit 1
mkdir -p $NOMADLIKE_WORKSPACE/outputs/tb && cp %s $NOMADLIKE_WORKSPACE/outputs/tb/
while [ ! -e %s/end ]; do sleep 0.1; done
`, events, dir)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
	client := savedClient(t, options)
	letRoot(t, client)
	if err := os.MkdirAll(filepath.Join(dir, "nas", "output"), 0o755); err != nil {
		t.Fatal(err)
	}
	id := runJob(t, client, `
job "curves" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sh `+script+`"
  }
  output "run" {}
  restart { max_restarts = 1 }
}
`, structs.JobRunning).Job.ID
	series := func(rank api.RankMetrics, name, source string) structs.MetricSeries {
		for _, s := range rank.Series {
			if s.Name == name && s.Source == source {
				return s
			}
		}
		return structs.MetricSeries{}
	}
	var found *api.JobMetrics
	whole := func() bool {
		var err error
		if found, err = client.JobMetrics(t.Context(), id, api.MetricsFilter{}); err != nil {
			t.Fatal(err)
		}
		return len(found.Ranks) == 2 && series(found.Ranks[0], "loss", "log").Count == 5 && series(found.Ranks[0], "train/loss", "events/tb").Count == 3 &&
			series(found.Ranks[1], "loss", "log").Count == 5
	}
	eventually.Within(t, time.Minute, "see the curves of both attempts while the job runs", whole)
	loss := series(found.Ranks[0], "loss", "log")
	if found.Ranks[0].Attempt != 2 || found.Ranks[1].Attempt != 1 || loss.Max != 9.5 || loss.Min != 5.5 || loss.Last.Step != 4 || loss.NotFinite != 1 || len(loss.Points) != 5 {
		t.Errorf("curves %+v", found)
	}
	if got := series(found.Ranks[0], "extra", "log"); got.Count != 5 || got.Last.Value != 7 {
		t.Errorf("extra=7 gives %+v", got)
	}
	list, _, err := client.Jobs(t.Context(), api.JobFilter{Trends: true}, nil)
	if err != nil || len(list.Jobs) != 1 || !reflect.DeepEqual(list.Jobs[0].Trend, &api.JobTrend{Metric: "loss", Values: []float64{9.5, 8.5, 7.5, 6.5, 5.5}}) {
		t.Errorf("trends: %+v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, id, structs.JobSucceeded)
	eventually.Within(t, time.Minute, "see the curves after the end", whole)
	rank := 0
	found, err = client.JobMetrics(t.Context(), id, api.MetricsFilter{Attempt: 2, Rank: &rank, Names: []string{"train/loss"}, Points: 2})
	if err != nil || len(found.Ranks) != 1 || len(found.Ranks[0].Series) != 1 || len(found.Ranks[0].Series[0].Points) != 2 {
		t.Errorf("one figure: %+v, %v", found, err)
	}
}
