package trace

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Write writes a trace in the CSV form that Read takes. Equal traces give
// equal bytes.
func (t *Trace) Write(to io.Writer) error {
	writer := csv.NewWriter(to)
	if err := writer.Write(Columns()); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	for i := range t.Jobs {
		job := &t.Jobs[i]
		record := []string{
			job.ID, job.User, job.Group, secondsText(job.Submit), secondsText(job.Start), secondsText(job.Duration),
			strconv.Itoa(job.GPUs), countText(job.Nodes), countText(job.CPUs), "", job.State, job.Name,
		}
		if job.Limit > 0 {
			record[9] = secondsText(job.Limit)
		}
		if err := writer.Write(record); err != nil {
			return fmt.Errorf("write trace: %w", err)
		}
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// WritePools writes pools in the form that ReadPools takes.
func WritePools(pools []Pool, to io.Writer) error {
	writer := csv.NewWriter(to)
	lines := [][]string{{"vc", "nodes", "gpus_per_node"}}
	for _, pool := range pools {
		lines = append(lines, []string{pool.Name, strconv.Itoa(pool.Nodes), strconv.Itoa(pool.GPUs)})
	}
	if err := writer.WriteAll(lines); err != nil {
		return fmt.Errorf("write pools: %w", err)
	}
	return nil
}

// secondsText is blank for what is not known.
func secondsText(span time.Duration) string {
	if span < 0 {
		return ""
	}
	text := strconv.FormatInt(int64(span/time.Second), 10)
	if rest := span % time.Second; rest > 0 {
		text += fmt.Sprintf(".%09d", int64(rest))
	}
	return text
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
