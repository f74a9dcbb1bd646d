package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// lifeRanks is the size of the gang of which a rank dies, lifeRounds how often
// that is measured in one cluster.
const (
	lifeRanks  = 3
	lifeRounds = 10
)

// rankDies measures, in a gang over several hosts, the time from the end of one
// rank until the last of the others has got its stop signal: their own stamps
// tell.
func rankDies(ctx context.Context, b *bench) error {
	w, err := b.cluster(ctx, 3, lifeRanks)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	var values []float64
	for round := range lifeRounds {
		dir, err := w.stageDir(fmt.Sprintf("round-%d", round))
		if err != nil {
			return err
		}
		script := filepath.Join(dir, "rank.sh")
		text := strings.ReplaceAll(`cd DIR
if [ $NOMADLIKE_RANK = 0 ]; then
	while [ ! -e up.1 ] || [ ! -e up.2 ]; do sleep 0.05; done
	sleep 0.5
	echo $EPOCHREALTIME >died
	exit 1
fi
trap 'echo $EPOCHREALTIME >signalled.$NOMADLIKE_RANK.new; mv signalled.$NOMADLIKE_RANK.new signalled.$NOMADLIKE_RANK; exit 0' TERM
touch up.$NOMADLIKE_RANK
sleep 1000 &
wait
`, "DIR", dir)
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			return err
		}
		job := trivialJob(fmt.Sprintf("dies-%d", round), "bash "+script)
		job.Nodes, job.Distributed.Mode, job.Placement.SpreadOrPack = lifeRanks, structs.ModeNone, structs.Spread
		id, err := w.submit(ctx, job)
		if err != nil {
			return err
		}
		last := time.Duration(0)
		for rank := 1; rank < lifeRanks; rank++ {
			stamp := filepath.Join(dir, fmt.Sprintf("signalled.%d", rank))
			err := until(ctx, 60*time.Second, "the signal to rank "+fmt.Sprint(rank), func() bool { _, err := os.Stat(stamp); return err == nil })
			if err != nil {
				return fmt.Errorf("job %s: %w", id, err)
			}
			at, err := readStamp(stamp)
			if err != nil {
				return err
			}
			died, err := readStamp(filepath.Join(dir, "died"))
			if err != nil {
				return err
			}
			last = max(last, at.Sub(died))
		}
		values = append(values, float64(last)/float64(time.Millisecond))
	}
	report("life_rank_dies_others_signalled_ms", "ms", values)
	return nil
}

// gangResumes measures, for a gang over three hosts of four, the time from the
// moment at which one machine vanishes until all ranks of the next attempt have
// read what the one before has saved, and run: their own stamps tell.
func gangResumes(ctx context.Context, b *bench) error {
	var values []float64
	for range b.runs {
		took, err := b.gangResumes(ctx)
		if err != nil {
			return err
		}
		values = append(values, took.Seconds())
	}
	report("life_node_loss_resumed_s", "s", values)
	return nil
}

func (b *bench) gangResumes(ctx context.Context) (time.Duration, error) {
	w, err := b.cluster(ctx, 3, lifeRanks+1)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return 0, err
	}
	dir, err := w.stageDir("shared")
	if err != nil {
		return 0, err
	}
	script := filepath.Join(dir, "rank.sh")
	text := strings.ReplaceAll(`cd DIR
step=$(cat saved 2>/dev/null || echo 0)
if [ $NOMADLIKE_RANK = 1 ]; then echo $NOMADLIKE_NODE_NAME >node; fi
if [ $NOMADLIKE_RANK = 0 ] && [ $step = 0 ]; then echo 7 >saved.new; mv saved.new saved; fi
if [ $NOMADLIKE_ATTEMPT = 2 ] && [ $step != 7 ]; then exit 1; fi
echo $EPOCHREALTIME >up.$NOMADLIKE_RANK.new
mv up.$NOMADLIKE_RANK.new up.$NOMADLIKE_ATTEMPT.$NOMADLIKE_RANK
sleep 1000
`, "DIR", dir)
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		return 0, err
	}
	job := trivialJob("resumes", "bash "+script)
	job.Nodes, job.Distributed.Mode, job.Placement.SpreadOrPack = lifeRanks, structs.ModeNone, structs.Spread
	if _, err := w.submit(ctx, job); err != nil {
		return 0, err
	}
	if _, err := gangUp(ctx, dir, 1); err != nil {
		return 0, err
	}
	name, err := os.ReadFile(filepath.Join(dir, "node"))
	if err != nil {
		return 0, err
	}
	time.Sleep(time.Second) // a gang that has settled
	lost := time.Now()
	w.lose(strings.TrimSpace(string(name)))
	up, err := gangUp(ctx, dir, 2)
	return up.Sub(lost), err
}

// gangUp waits until all ranks of an attempt run, and reports since when.
func gangUp(ctx context.Context, dir string, attempt int) (last time.Time, err error) {
	for rank := range lifeRanks {
		stamp := filepath.Join(dir, fmt.Sprintf("up.%d.%d", attempt, rank))
		what := fmt.Sprintf("rank %d of attempt %d", rank, attempt)
		if err := until(ctx, 60*time.Second, what, func() bool { _, err := os.Stat(stamp); return err == nil }); err != nil {
			return last, err
		}
		at, err := readStamp(stamp)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}
