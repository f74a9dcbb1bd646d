package front

import (
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Bounds of the limiter's own memory.
const (
	limiterKeysMax = 16384 // callers remembered; the idle ones are forgotten first
	burstSeconds   = 2     // of the allowed rate may come at once
	failureWindow  = time.Minute

	failuresToldEvery = 10 * time.Second // of one address, in the log
)

// Limits bound one caller.
type Limits struct {
	Streams        int // open at a time
	RequestsPerSec float64
	SubmitsPerSec  float64
	TokenFailures  int // a minute from one address
}

// limiter bounds what each caller may ask: requests a second, submissions a
// second, open streams, and wrong tokens a minute. It is a token bucket per
// caller, in memory of this agent alone.
type limiter struct {
	config Limits
	now    func() time.Time

	mu struct {
		sync.Mutex
		callers  map[string]*usage
		failures map[string]*failuresOf // by peer address
		bodies   map[string]int64       // bytes held, by caller
		held     int64                  // of all
	}
}

// usage is what one caller has taken.
type usage struct {
	requests, submits bucket
	streams           int
}

// failuresOf are the wrong secrets of one peer.
type failuresOf struct {
	bucket
	toldAt time.Time // in the log
	untold int       // since then
}

// bucket refills with time.
type bucket struct {
	level float64
	at    time.Time
}

func newLimiter(config Limits, now func() time.Time) *limiter {
	l := &limiter{config: config, now: now}
	l.mu.callers = map[string]*usage{}
	l.mu.failures = map[string]*failuresOf{}
	l.mu.bodies = map[string]int64{}
	return l
}

// take removes one from the bucket, or reports how long to wait for it.
func (b *bucket) take(now time.Time, rate, burst float64) time.Duration {
	b.fill(now, rate, burst)
	if b.level >= 1 {
		b.level--
		return 0
	}
	return time.Duration((1 - b.level) / rate * float64(time.Second))
}

func (b *bucket) fill(now time.Time, rate, burst float64) {
	if b.at.IsZero() {
		b.level = burst
	} else {
		b.level = math.Min(burst, b.level+now.Sub(b.at).Seconds()*rate)
	}
	b.at = now
}

// enter takes a place for one request; the returned function frees it.
func (l *limiter) enter(key string, route api.Route) (func(), error) {
	now := l.now()
	stream := route.Stream == api.StreamNDJSON || route.Stream == api.StreamWebsocket || route.Blocking || route.Name == "allocations.logs" || route.Name == "jobs.file_content"
	l.mu.Lock()
	defer l.mu.Unlock()
	who := l.mu.callers[key]
	if who == nil {
		l.forgetLocked(now)
		who = &usage{}
		l.mu.callers[key] = who
	}
	if wait := who.requests.take(now, l.config.RequestsPerSec, burstSeconds*l.config.RequestsPerSec); wait > 0 {
		return func() {}, TooMany(structs.CodeUnavailable, "agent.rate", wait)
	}
	if route.Name == "jobs.submit" || route.Name == "jobs.parse" || route.Name == "jobs.plan" || route.Name == "jobs.validate" {
		if wait := who.submits.take(now, l.config.SubmitsPerSec, burstSeconds*l.config.SubmitsPerSec); wait > 0 {
			return func() {}, TooMany(structs.CodeUnavailable, "agent.rate", wait)
		}
	}
	if !stream {
		return func() {}, nil
	}
	if who.streams >= l.config.Streams {
		return func() {}, structs.NewError(structs.CodeUnavailable, "agent.streams", "max", l.config.Streams)
	}
	who.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		who.streams--
	}, nil
}

// streams is how many streams a caller has open.
func (l *limiter) streams(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who := l.mu.callers[key]; who != nil {
		return who.streams
	}
	return 0
}

// TooMany asks a caller to wait. The code tells clients whether repeating the
// request by themselves makes sense.
func TooMany(code structs.ErrorCode, id string, wait time.Duration) error {
	seconds := int(math.Ceil(wait.Seconds()))
	return &RetryError{wait, structs.NewError(code, id, "seconds", seconds)}
}

// forgetLocked makes room by dropping callers whose buckets are full again:
// remembering them changes nothing. When none are, all are dropped, since an
// attacker that made so many must not cost memory.
func (l *limiter) forgetLocked(now time.Time) {
	if len(l.mu.callers) < limiterKeysMax {
		return
	}
	for key, who := range l.mu.callers {
		if who.streams == 0 && now.Sub(who.requests.at) > burstSeconds*time.Second {
			delete(l.mu.callers, key)
		}
	}
	if len(l.mu.callers) >= limiterKeysMax {
		clear(l.mu.callers)
	}
}

func (l *limiter) failureRate() (rate, burst float64) {
	n := float64(l.config.TokenFailures)
	return n / failureWindow.Seconds(), n
}

// patient reports how long a peer that gave too many wrong secrets of late must
// wait; 0 when it need not.
func (l *limiter) patient(peer string) time.Duration {
	rate, burst := l.failureRate()
	l.mu.Lock()
	defer l.mu.Unlock()
	failures := l.mu.failures[peer]
	if failures == nil {
		return 0
	}
	failures.fill(l.now(), rate, burst)
	if failures.level >= 1 {
		return 0
	}
	return time.Duration((1 - failures.level) / rate * float64(time.Second))
}

// failed counts a wrong secret of a peer. tell is how many the log should hear
// of, 0 while it has heard of this peer lately: whoever guesses must not fill it.
func (l *limiter) failed(peer string) (tell int) {
	now := l.now()
	rate, burst := l.failureRate()
	l.mu.Lock()
	defer l.mu.Unlock()
	failures := l.mu.failures[peer]
	if failures == nil {
		if len(l.mu.failures) >= limiterKeysMax {
			for key, other := range l.mu.failures {
				if now.Sub(other.at) > failureWindow {
					delete(l.mu.failures, key)
				}
			}
			if len(l.mu.failures) >= limiterKeysMax {
				clear(l.mu.failures)
			}
		}
		failures = new(failuresOf)
		l.mu.failures[peer] = failures
	}
	failures.fill(now, rate, burst)
	failures.level = math.Max(0, failures.level-1)
	failures.untold++
	if !failures.toldAt.IsZero() && now.Sub(failures.toldAt) < failuresToldEvery {
		return 0
	}
	tell, failures.untold, failures.toldAt = failures.untold, 0, now
	return tell
}

// hostList is the set of host names and addresses that an agent answers for.
type hostList struct {
	names map[string]bool
}

// newHostList always holds the addresses of the machine itself: a page that
// rebinds its own DNS name to one of them still sends its own name.
func newHostList(names []string) hostList {
	list := hostList{names: map[string]bool{"localhost": true}}
	for _, name := range names {
		list.names[strings.ToLower(name)] = true
	}
	return list
}

// has reports whether the agent answers for the Host header host. IP literals
// always pass: DNS rebinding needs a name.
func (l hostList) has(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if net.ParseIP(name) != nil {
		return true
	}
	return l.names[strings.ToLower(strings.TrimSuffix(name, "."))]
}
