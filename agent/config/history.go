package config

import (
	"math"
	"time"
)

// Defaults and bounds of the history of ended attempts.
const (
	historyKeepDefault = 5 * 365 * 24 * time.Hour
	historyKeepMin     = 31 * 24 * time.Hour
	historySizeDefault = 8 << 30
	historySizeMin     = 64 << 20
)

// HistoryBlock is the block of the history of ended attempts.
type HistoryBlock struct {
	Keep    *string
	SizeMax *string
}

// History is the part of the history of ended attempts.
type History struct {
	Keep    time.Duration
	SizeMax int64 // bytes
}

func walkHistory(v visitor, b *HistoryBlock, c *History) {
	v.setting("keep", span(&b.Keep, &c.Keep, historyKeepDefault).from(float64(historyKeepMin), math.Inf(1)).orBlank().refused("agent.config.history_keep"))
	v.setting("max_size", size(&b.SizeMax, &c.SizeMax, historySizeDefault).from(historySizeMin, math.Inf(1)).orBlank().refused("agent.config.history_size"))
}
