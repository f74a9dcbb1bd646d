package server

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// scene runs a Liveness on virtual time after a script; every line of its
// transcript that begins with ">" is what the machine ordered.
//
//	nodes a b c            these nodes are registered and ready
//	servers s2 s3          these other servers exist
//	run 3s                 time passes; live nodes are heard every 200 ms
//	silence a              a's stream says nothing any more
//	close a                a's stream ends
//	speak a                a is heard again
//	dead a                 nothing reaches a's agent
//	refuse a               a's agent is killed, its machine refuses connections
//	unreachable a          the leader does not reach a's agent, its peers do
//	alive a                everybody reaches it
//	mute b                 b answers no question
//	bye a                  a leaves in order
//	register a             a registers anew
//	lead                   a new leader begins, knowing only the state
type scene struct {
	t       *testing.T
	out     strings.Builder
	now     time.Duration
	machine *Liveness
	seed    uint64
	nodes   map[string]*structs.Node
	ids     []string
	servers []string
	silent  map[string]time.Duration // since when
	closed  map[string]bool
	reach   map[string]string // "", dead, unreachable
	mute    map[string]bool
	pending []event
	index   uint64
}

// event is an answer on its way.
type event struct {
	at   time.Duration
	what func() []LivenessEffect
}

func TestLivenessTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/liveness/*.script")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("find scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".script"), func(t *testing.T) {
			s := &scene{
				t: t, nodes: make(map[string]*structs.Node), silent: make(map[string]time.Duration),
				closed: make(map[string]bool), reach: make(map[string]string), mute: make(map[string]bool),
			}
			s.machine = NewLiveness(LivenessTimings{}, 1)
			s.play(script)
			golden.Assert(t, strings.TrimSuffix(script, ".script")+".txt", s.out.String())
		})
	}
}

func (s *scene) play(script string) {
	file, err := os.Open(script)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		s.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			s.do(words[0], words[1:])
		}
	}
}

func (s *scene) do(verb string, names []string) {
	if verb == "run" {
		span, err := time.ParseDuration(names[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.run(span)
		return
	}
	if verb == "lead" {
		s.seed++
		s.pending = nil
		s.machine = NewLiveness(LivenessTimings{}, s.seed)
		s.machine.SetServers(s.servers)
		for _, id := range s.ids {
			s.machine.Know(s.now, s.nodes[id])
		}
		return
	}
	if verb == "servers" {
		s.servers = names
		s.machine.SetServers(names)
		return
	}
	for _, id := range names {
		s.doNode(verb, id)
	}
}

func (s *scene) doNode(verb, id string) {
	switch verb {
	case "nodes":
		s.ids = append(s.ids, id)
		s.index++
		s.know(&structs.Node{ID: id, Incarnation: 1, Status: structs.NodeReady, RegisterIndex: s.index})
	case "silence", "close":
		s.silent[id], s.closed[id] = s.now, verb == "close"
		if verb == "close" {
			s.hear(id)
		}
	case "speak":
		delete(s.silent, id)
		s.closed[id] = false
	case "dead", "unreachable", "refuse":
		s.reach[id] = verb
	case "alive":
		s.reach[id] = ""
	case "mute":
		s.mute[id] = true
	case "bye":
		s.silent[id], s.closed[id] = s.now, true
		node := *s.nodes[id]
		node.Status = structs.NodeLeft
		s.know(&node)
	case "register":
		s.index++
		node := *s.nodes[id]
		node.Status, node.RegisterIndex = structs.NodeReady, s.index
		node.Incarnation++
		delete(s.silent, id)
		s.closed[id], s.reach[id] = false, ""
		s.know(&node)
	default:
		s.t.Fatalf("unknown verb %s", verb)
	}
}

func (s *scene) know(node *structs.Node) {
	s.nodes[node.ID] = node
	s.machine.Know(s.now, node)
}

func (s *scene) hear(id string) {
	heartbeat := structs.NodeHeartbeat{NodeID: id, Incarnation: s.nodes[id].Incarnation, Closed: s.closed[id]}
	if since, silent := s.silent[id]; silent {
		heartbeat.SilentFor = structs.Duration(s.now - since)
	}
	s.machine.Hear(s.now, heartbeat)
}

// run lets time pass in steps of 50 ms.
func (s *scene) run(span time.Duration) {
	const step = 50 * time.Millisecond
	for end := s.now + span; s.now < end; {
		s.now += step
		if s.now%(200*time.Millisecond) == 0 {
			for _, id := range s.ids {
				s.hear(id)
			}
		}
		for len(s.pending) > 0 && s.pending[0].at <= s.now {
			next := s.pending[0]
			s.pending = s.pending[1:]
			s.obey(next.what())
		}
		s.obey(s.machine.Tick(s.now))
	}
}

// later queues an answer; answers come in the order of their times.
func (s *scene) later(in time.Duration, what func() []LivenessEffect) {
	at := len(s.pending)
	for at > 0 && s.pending[at-1].at > s.now+in {
		at--
	}
	s.pending = append(s.pending[:at], append([]event{{s.now + in, what}}, s.pending[at:]...)...)
}

func (s *scene) obey(effects []LivenessEffect) {
	for _, effect := range effects {
		switch {
		case effect.Probe != nil:
			order := effect.Probe
			s.say("probe %s", order.NodeID)
			answers := s.reach[order.NodeID] == ""
			wait := 300 * time.Millisecond
			if answers {
				wait = time.Millisecond
			}
			s.later(wait, func() []LivenessEffect {
				if s.reach[order.NodeID] == "refuse" {
					return s.machine.Refused(s.now, order.NodeID, order.Round)
				}
				return s.machine.Probed(s.now, order.NodeID, order.Round, answers)
			})
		case effect.Ask != nil:
			s.ask(effect.Ask)
		case effect.Declare != nil:
			change := effect.Declare
			s.say("declare %s %s: %s %s", change.NodeID, change.Status, reasonID(change.Reason), reasonText(change.Reason))
			s.later(5*time.Millisecond, func() []LivenessEffect {
				node := *s.nodes[change.NodeID]
				if node.Incarnation == change.Incarnation && node.Status.CanBecome(change.Status) {
					node.Status = change.Status
					s.know(&node)
				}
				return nil
			})
		}
	}
}

func (s *scene) ask(order *WitnessOrder) {
	var names []string
	for _, witness := range order.Witnesses {
		names = append(names, witness.ID)
		answers := !s.mute[witness.ID] && s.reach[witness.ID] == ""
		wait := 100 * time.Millisecond
		if !answers {
			wait = 400 * time.Millisecond
		}
		s.later(wait, func() []LivenessEffect {
			return s.machine.Witnessed(s.now, order.NodeID, order.Round, answers, s.reach[order.NodeID] == "" || s.reach[order.NodeID] == "unreachable")
		})
	}
	s.say("ask %s about %s", strings.Join(names, " "), order.NodeID)
}

func reasonID(reason *structs.Reason) string {
	if reason == nil {
		return "-"
	}
	return reason.ID
}

func reasonText(reason *structs.Reason) string {
	if reason == nil || len(reason.Params) == 0 {
		return ""
	}
	return "silence=" + reason.Params["silence"] + " witnesses=" + reason.Params["witnesses"]
}

func (s *scene) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "> %6ss %s\n", strconv.FormatFloat(s.now.Seconds(), 'f', 2, 64), strings.TrimSpace(fmt.Sprintf(format, args...)))
}
