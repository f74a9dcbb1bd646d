package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"nomadlike/internal/golden"
)

// lines are what trainers print.
const lines = `step 100 loss 0.523 acc 0.91
step=10 loss=0.5 grad_norm=1.25e-2 tokens=4096
Train Epoch: 2 [640/60000 (1%)]	Loss: 1.532100
{'loss': 2.3146, 'grad_norm': 1.0, 'learning_rate': 4.9e-05, 'epoch': 0.13}
 iteration      100/     500 | consumed samples: 800 | learning rate: 1.500E-04 | lm loss: 6.512345E+00 | grad norm: 1.234 |
60/60 [==============================] - 1s 3ms/step - loss: 0.3241 - accuracy: 0.9021 - val_loss: 0.4 - val_accuracy: 0.88
epoch: 1 step: 1875, loss is 0.21432
| epoch 001:    500 / 1000 loss=4.5, ppl=22.6, num_updates=500, lr=0.0005, gnorm=0.9
loss=tensor(0.25, grad_fn=<NllLossBackward>) step=7
Epoch 3:  30%|###       | 3/10 [00:01<00:03, 2.1it/s, loss=0.5, v_num=0]
val loss: 0.75, validation accuracy: 0.8
loss=nan step=3
[2024-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]
INFO:root:listening on host=10.0.0.1 port=8080
a loss of 12 people in 3 towns
time: 12:30:45 nothing here
gloss=3 colossal: 4`

func TestCommonLines(t *testing.T) {
	var b strings.Builder
	for line := range strings.SplitSeq(lines, "\n") {
		fmt.Fprintf(&b, "%s\n", line)
		for _, o := range (scanner{}).scan(line) {
			fmt.Fprintf(&b, "    %s = %v at %d\n", o.Name, o.Value, o.Step)
		}
	}
	golden.Assert(t, "testdata/lines.txt", b.String())
}

func TestPatterns(t *testing.T) {
	s := newScanner([]string{`^\[(?P<step>\d+)\] (?P<name>\w+) -> (?P<value>\S+)`, `took (?P<seconds>[0-9.]+) s`, `(unreadable`})
	for line, want := range map[string]string{
		"[12] loss -> 0.5":             "[{loss 12 0.5}]",
		"batch took 3.25 s":            "[{seconds -1 3.25}]",
		"step=1 loss=2":                "[]",
		"[1] loss -> high took 0.25 s": "[{seconds -1 0.25}]",
	} {
		if got := fmt.Sprint(s.scan(line)); got != want {
			t.Errorf("%q gives %s, want %s", line, got, want)
		}
	}
}

// FuzzScan: whatever a program prints, its figures are parts of the line and can
// be told as JSON.
func FuzzScan(f *testing.F) {
	for line := range strings.SplitSeq(lines, "\n") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		found := (scanner{}).scan(line)
		if len(found) > perLineMax {
			t.Fatalf("%d observations", len(found))
		}
		for _, o := range found {
			if !utf8.ValidString(o.Name) || o.Name == "" || o.Step < -1 {
				t.Fatalf("observation %+v", o)
			}
		}
		s := set{series: map[seriesKey]*series{}}
		for _, o := range found {
			s.add("log", 1, o)
		}
		for _, one := range s.sorted() {
			if _, err := json.Marshal(one.shown(10)); err != nil || math.IsNaN(one.Last.Value) {
				t.Fatal(err)
			}
		}
	})
}
