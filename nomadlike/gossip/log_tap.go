package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
)

// refusedReport is how often refused packets are mentioned in the log, at
// most: whoever can send packets must not be able to fill the disk.
const refusedReport = 10 * time.Second

// logTap turns memberlist's lines into slog records. It also reads two facts
// off them that memberlist tells nowhere else: packets that do not belong to
// the cluster, which it counts, and probes that went unanswered.
type logTap struct {
	logger  *slog.Logger
	suspect func(id string)

	refused    atomic.Uint64
	reportedAt atomic.Int64 // Unix nanoseconds
}

// Write takes one line; log.Logger calls it once per record.
func (l *logTap) Write(line []byte) (int, error) {
	level, text := splitLevel(string(bytes.TrimSpace(line)))
	switch {
	case strings.HasSuffix(text, errUnproven.Error()): // it is being looked into
		level = slog.LevelDebug
		l.logger.Log(context.Background(), level, text)
	case isRefusal(text):
		l.countRefusal(text)
	default:
		if id, found := unansweredProbe(text); found {
			l.suspect(id)
		}
		l.logger.Log(context.Background(), level, text)
	}
	return len(line), nil
}

func (l *logTap) countRefusal(text string) {
	total := l.refused.Add(1)
	now, last := time.Now().UnixNano(), l.reportedAt.Load()
	if now-last >= int64(refusedReport) && l.reportedAt.CompareAndSwap(last, now) {
		l.logger.Warn("refused gossip that does not belong to the cluster", logkey.Count, total, logkey.Reason, text)
	}
}

// splitLevel reads "[WARN] memberlist: text". What memberlist calls an error
// is a peer that is away or sends rubbish: nothing that a person must act on.
func splitLevel(line string) (slog.Level, string) {
	level := slog.LevelDebug
	if rest, found := strings.CutPrefix(line, "["); found {
		name, text, _ := strings.Cut(rest, "] ")
		switch name {
		case "ERR", "ERROR":
			level = slog.LevelWarn
		case "WARN":
			level = slog.LevelInfo
		}
		line = text
	}
	return level, strings.TrimPrefix(line, "memberlist: ")
}

// isRefusal recognises lines about input without the cluster's key or label.
func isRefusal(text string) bool {
	for _, start := range []string{
		"Decrypt packet failed",
		"discarding packet with unacceptable label",
		"discarding stream with unacceptable label",
		"unexpected double packet label header",
		"unexpected double stream label header",
		"failed to receive",
		"cannot decode",
		"packet is truncated",
		"label header",
		"ignoring alive message",
		"Got invalid checksum",
		"UDP packet too short",
		"missing message type byte",
		"msg type (",
		"Received invalid msgType",
		"Remote node state size is", // more than twice of what all members take
		"remote node state is larger",
		"Failed to send error",
	} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// unansweredProbe reads the id out of memberlist's line about a failed probe.
func unansweredProbe(text string) (string, bool) {
	rest, found := strings.CutPrefix(text, "Suspect ")
	if !found {
		return "", false
	}
	return strings.CutSuffix(rest, " has failed, no acks received")
}
