package notify

import (
	"hash/fnv"
	"time"

	"nomadlike/nomadlike/structs"
)

// waits are those between the tries of one delivery; after the last it is given up.
var waits = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
}

// After is how a delivery stands after a try at now: sent, to be tried again, or given
// up. Tries that fail together do not come together again: each waits up to a quarter
// longer, by its own name.
func After(n *structs.Notification, delivery structs.NotifyDelivery, result Result, now structs.UnixNano) structs.NotifyDelivery {
	delivery.Tries++
	delivery.Problem, delivery.NextAt = bounded(result.Problem, structs.NotifyProblemMax), 0
	switch {
	case result.Sent:
		delivery.SentAt, delivery.Problem = now, ""
	case result.Final || delivery.Tries > len(waits):
	default:
		wait := waits[delivery.Tries-1]
		sum := fnv.New64a()
		sum.Write([]byte(n.ID + delivery.Channel))
		wait += time.Duration(sum.Sum64()%1000) * wait / 4000
		delivery.NextAt = now.Add(max(wait, min(result.Wait, waits[len(waits)-1])))
	}
	return delivery
}

// Result is how a try went.
type Result struct {
	Sent    bool
	Final   bool          // another try would go the same way
	Wait    time.Duration // that the channel asked for
	Problem string        // what went wrong, "" when nothing did
}

// bounded cuts a text at a limit of bytes, between characters.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
