package config

import "math"

// LimitsBlock bounds what callers of the API may use.
type LimitsBlock struct {
	ConnectionsPeer *int
	Streams         *int
	RequestsPerSec  *float64
	TokenFailures   *int
	JobsPerSecond   *float64
}

// Limits is the part of limits.
type Limits struct {
	ConnectionsPeer int     // open from one address
	Streams         int     // open of one token: events, logs, exec, blocking queries
	RequestsPerSec  float64 // of one token
	SubmitsPerSec   float64 // of one token
	TokenFailures   int     // a minute from one address
}

func walkLimits(v visitor, b *LimitsBlock, c *Limits) {
	const rateMax = 1e6
	v.setting("connections_peer", number(&b.ConnectionsPeer, &c.ConnectionsPeer, 1024).from(1, math.Inf(1)))
	v.setting("streams", number(&b.Streams, &c.Streams, 1000).from(1, math.Inf(1)))
	v.setting("token_failures", number(&b.TokenFailures, &c.TokenFailures, 20).from(1, math.Inf(1)).in("per_minute"))
	v.setting("requests_per_sec", decimal(&b.RequestsPerSec, &c.RequestsPerSec, 5000).from(0, rateMax).aboveZero().in("per_second"))
	v.setting("submissions_per_s", decimal(&b.JobsPerSecond, &c.SubmitsPerSec, 2000).from(0, rateMax).aboveZero().in("per_second"))
}
