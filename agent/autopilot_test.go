package agent

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// peer is a living voter at its own address.
func peer(id string) serverView {
	return serverView{id: id, addr: id, seenAddr: id, seen: true, seenFor: time.Hour, voter: true, alive: true, since: time.Hour, heard: true}
}

func with(s serverView, edit func(*serverView)) serverView {
	edit(&s)
	return s
}

func TestAutopilot(t *testing.T) {
	leader := with(peer("a"), func(s *serverView) { s.self = true })
	dead := func(id string, since time.Duration) serverView {
		return with(peer(id), func(s *serverView) { s.alive, s.since, s.heard, s.seen = false, since, false, false })
	}
	fresh := func(id string) serverView {
		return serverView{id: id, seenAddr: id, seen: true, seenFor: time.Second, alive: true, since: time.Second}
	}
	for _, test := range []struct {
		name    string
		servers []serverView
		want    change
	}{
		{"nothing to do", []serverView{leader, peer("b"), peer("c")}, change{}},
		{"a new server gets the log", []serverView{leader, fresh("b")}, change{changeAdd, "b", "b"}},
		{"not at the first sight", []serverView{leader, with(fresh("b"), func(s *serverView) { s.since, s.seenFor = 0, 0 })}, change{}},
		{"one that was removed stays out", []serverView{leader, with(fresh("b"), func(s *serverView) { s.removed = true })}, change{}},
		{"and gets no vote", []serverView{leader, with(peer("b"), func(s *serverView) { s.voter, s.removed = false, true })}, change{}},
		{"then its vote", []serverView{leader, with(peer("b"), func(s *serverView) { s.voter = false })}, change{changePromote, "b", "b"}},
		{"not before it caught up", []serverView{leader, with(peer("b"), func(s *serverView) { s.voter, s.behind = false, 5000 })}, change{}},
		{"not before it was heard", []serverView{leader, with(peer("b"), func(s *serverView) { s.voter, s.heard = false, false })}, change{}},
		{"a server moved", []serverView{leader, with(peer("b"), func(s *serverView) { s.seenAddr = "b2" })}, change{changeMove, "b", "b2"}},
		{"a dead server stays while nobody replaces it", []serverView{leader, peer("b"), dead("c", time.Hour)}, change{}},
		{"it goes after days", []serverView{leader, peer("b"), dead("c", 73*time.Hour)}, change{changeRemove, "c", "c"}},
		{"it goes when it is replaced", []serverView{leader, peer("b"), dead("c", time.Minute), peer("d")}, change{changeRemove, "c", "c"}},
		{"not in the first seconds", []serverView{leader, peer("b"), dead("c", time.Second), peer("d")}, change{}},
		{"a wiped server is replaced at once", []serverView{
			leader, peer("b"), dead("c", time.Second),
			with(fresh("d"), func(s *serverView) { s.seenAddr = "c" }),
		}, change{changeRemove, "c", "c"}},
		{"never without a quorum", []serverView{leader, dead("b", 100*time.Hour), dead("c", 100*time.Hour)}, change{}},
		{"the last one but one stays", []serverView{leader, dead("b", 100*time.Hour)}, change{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := nextChange(test.servers, 3); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Whatever autopilot does, a quorum of living voters stays, and it comes to
// rest.
func TestAutopilotKeepsTheQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "servers")
		servers := make([]serverView, n)
		for i := range servers {
			id := string(rune('a' + i))
			servers[i] = serverView{
				id: id, seenAddr: id, self: i == 0, heard: true,
				alive: i == 0 || rapid.Bool().Draw(t, "alive"),
				since: time.Duration(rapid.IntRange(0, 100).Draw(t, "hours")) * time.Hour,
			}
			servers[i].seen, servers[i].seenFor = servers[i].alive, servers[i].since
			if i == 0 || rapid.Bool().Draw(t, "in raft") {
				servers[i].addr = id
				servers[i].voter = i == 0 || rapid.Bool().Draw(t, "voter")
			}
		}
		hadQuorum := quorate(servers)
		for step := 0; ; step++ {
			if step > 3*n {
				t.Fatalf("no rest after %d changes: %+v", step, servers)
			}
			next := nextChange(servers, 3)
			if next.act == changeNone {
				break
			}
			servers = applied(servers, next)
			if hadQuorum && !quorate(servers) {
				t.Fatalf("%+v lost the quorum: %+v", next, servers)
			}
		}
	})
}

func quorate(servers []serverView) bool {
	voters, living := 0, 0
	for _, s := range servers {
		if s.addr != "" && s.voter {
			voters++
			if s.alive {
				living++
			}
		}
	}
	return living > voters/2
}

func applied(servers []serverView, c change) []serverView {
	var after []serverView
	for _, s := range servers {
		if s.id == c.id {
			switch c.act {
			case changeAdd, changeMove:
				s.addr = c.addr
			case changePromote:
				s.voter = true
			case changeRemove:
				s.addr, s.voter = "", false
				if !s.alive {
					continue
				}
			}
		}
		after = append(after, s)
	}
	return after
}
