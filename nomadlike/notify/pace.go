package notify

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// pace is how many messages a robot takes within a time; what comes beyond them its maker
// refuses, for minutes.
type pace struct {
	most   int
	within time.Duration
}

// paces are those that the makers' documents name, by kind of channel: DingTalk and WeCom
// 20 a minute, Feishu 100 a minute and 5 a second. Of others nothing is known: a webhook
// that has enough answers so.
var paces = map[string][]pace{
	structs.ChannelDingTalk: {{20, time.Minute}},
	structs.ChannelWeCom:    {{20, time.Minute}},
	structs.ChannelFeishu:   {{100, time.Minute}, {5, time.Second}},
}

// Paced reports whether a kind of channel takes only so many messages within a time.
func Paced(kind string) bool { return len(paces[kind]) > 0 }

// Paces holds when messages went to robots, which several people may share. The zero
// value has sent nothing. Use it from one goroutine at a time.
type Paces struct {
	sent map[string][]structs.UnixNano // by robot, the newest last
}

// Take notes a message to a robot of a kind at now, and returns 0; or how long it has to
// wait, and notes nothing.
func (p *Paces) Take(kind, robot string, now structs.UnixNano) (wait time.Duration) {
	limits := paces[kind]
	if len(limits) == 0 {
		return 0
	}
	sent := p.sent[robot]
	for _, limit := range limits {
		if len(sent) >= limit.most {
			wait = max(wait, sent[len(sent)-limit.most].Add(limit.within).Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	if p.sent == nil {
		p.sent = make(map[string][]structs.UnixNano)
	}
	p.forget(now)
	longest := slices.MaxFunc(limits, func(a, b pace) int { return cmp.Compare(a.most, b.most) }).most
	sent = append(sent, now)
	p.sent[robot] = slices.Clone(sent[max(0, len(sent)-longest):])
	return 0
}

// forget drops the robots that nothing was sent to of late.
func (p *Paces) forget(now structs.UnixNano) {
	for robot, sent := range p.sent {
		if now.Sub(sent[len(sent)-1]) > time.Minute {
			delete(p.sent, robot)
		}
	}
}

// Merged is one message of several to one person, to be sent in their place where they
// are more than a channel takes. There is at least one. Pure.
func Merged(list []*structs.Notification) *structs.Notification {
	if len(list) == 1 {
		return list[0]
	}
	merged := &structs.Notification{
		ID: digestID(list[0].ID, false, []string{"merged"}), User: list[0].User, Kind: structs.NotifyDigest, Time: list[0].Time,
		Counts: make(map[string]int),
	}
	for _, n := range list {
		merged.Time = min(merged.Time, n.Time)
		names := n.Names
		if n.Kind == structs.NotifyDigest {
			for kind, count := range n.Counts {
				merged.Counts[kind] += count
			}
		} else {
			merged.Counts[n.Kind]++
			names = []string{n.Job}
		}
		for _, name := range names {
			if name != "" && len(merged.Names) < structs.NotifyNamesMax && !slices.Contains(merged.Names, name) {
				merged.Names = append(merged.Names, name)
			}
		}
	}
	return merged
}
