package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// TestTranscripts plays the stories in testdata. A line that begins with "> "
// is what the line before it answered; -rewrite writes the answers anew.
//
//	node NAME [cpu=N] [memory=SIZE] [ports=A-B] [pool=P] [drivers=a,b] [devices=N:KIND:MODEL] [rdma=true] [at=room/rack]
//	    [protocol=N] [masks=DRIVER]
//	mark NODE ready|lost|disconnected|cordoned|draining|eligible
//	sick NODE DEVICE
//	pool NAME [order=fair] [half=SPAN] [age=HOURS] [dedicated=true] [rdma=true] [nodes=MAX] [devices=MAX]
//	project NAME [weight=N] [quota=KIND:GUARANTEED:MAXIMUM,…]
//	job NAME [nodes=N] [min=N] [resize=true] [range=N] [cpu=N] [memory=SIZE] [priority=P] [batch=N] [mode=M] [servers=N] [master=PORT]
//	    [port=NAME:N] [devices=N:KIND[:MODEL]] [on=a,b] [pool=P] [place=spread] [driver=D] [or=cpu:memory] [secret=NAME] [credentials=NAME]
//	    [project=P] [limit=SPAN] [preemptible=true] [vip=NODE:wait|ask|kill,…] [silence=kill]
//	    [after=JOB,…] [begin=SPAN]
//	move JOB first|last
//	consent JOB VICTIM [yes|no] [until=SPAN]     what the owner of VICTIM was asked for JOB, and said
//	schedule [seed=N] | finish JOB[/N] | fail JOB[/N] [delay=SPAN] | stopped | checkpoint JOB[/N] | lose JOB[/N] RANK [own=true] | tick SPAN
//	free | queue | reservations | due     due: when time alone makes the next pass worth it
//
// Before every schedule a board that was kept from the beginning and one that
// is made anew are compared.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			story := &story{world: newWorld(), board: NewBoard(Settings{})}
			var out strings.Builder
			for line := range strings.Lines(string(data)) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, ">") {
					continue
				}
				out.WriteString(line + "\n")
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				for _, answer := range story.play(t, line) {
					out.WriteString("> " + answer + "\n")
				}
				story.checkNodes(t)
				story.checkGangs(t)
				checkBoard(t, story.board)
			}
			golden.Assert(t, path, out.String())
		})
	}
}

// story is a world with the board of its leader.
type story struct {
	*world
	board *Board
}

func (w *story) play(t *testing.T, line string) []string {
	t.Helper()
	words := strings.Fields(line)
	options := map[string]string{}
	var args []string
	for _, word := range words[1:] {
		if name, value, ok := strings.Cut(word, "="); ok {
			options[name] = value
		} else {
			args = append(args, word)
		}
	}
	switch words[0] {
	case "node":
		w.addNode(nodeFrom(t, args[0], options))
	case "mark":
		w.mark(args[0], args[1])
	case "sick":
		w.setNode("id-"+args[0], func(n *structs.Node) {
			n.Devices[slices.IndexFunc(n.Devices, func(d structs.Device) bool { return d.ID == args[1] })].Healthy = false
		})
	case "pool":
		w.addPool(poolFrom(t, args[0], options))
	case "project":
		w.addProject(projectFrom(t, args[0], options))
	case "job":
		job := jobFrom(t, args[0], options)
		if options["begin"] != "" {
			job.BeginAt = w.now.Add(span(t, options["begin"]))
		}
		w.submit(job)
	case "move":
		w.move("id-"+args[0], args[1])
	case "consent":
		id, of := subjobOf(t, args[0]), subjobOf(t, args[1])
		asked := structs.Consent{
			Of:      structs.AttemptKey{JobID: of.job, Subjob: of.index, Number: w.attempts[of].Number},
			AskedAt: w.now, Until: w.now.Add(span(t, cmp.Or(options["until"], "30m"))),
		}
		if len(args) > 2 && !strings.Contains(args[2], "=") {
			asked.Answer = structs.ConsentAnswer(args[2])
		}
		w.set(id, func(s *structs.Subjob) {
			s.Consents = append(slices.DeleteFunc(slices.Clone(s.Consents), func(c structs.Consent) bool { return c.Of == asked.Of }), asked)
		})
	case "schedule":
		return w.schedule(t, options["seed"])
	case "finish", "fail":
		id := subjobOf(t, args[0])
		if words[0] == "finish" {
			w.end(id.job, id.index, structs.JobSucceeded)
			break
		}
		w.end(id.job, id.index, structs.JobQueued)
		if options["avoid"] != "" {
			w.set(id, func(s *structs.Subjob) { s.Avoid = []string{"id-" + options["avoid"]} })
		}
		if options["delay"] != "" {
			w.set(id, func(s *structs.Subjob) { s.NotBefore = w.now.Add(span(t, options["delay"])) })
		}
	case "stopped":
		w.endStopping()
	case "checkpoint":
		id := subjobOf(t, args[0])
		a := *w.attempts[id]
		a.CheckpointAt = w.now
		w.attempts[id] = &a
		w.touchJob(id)
	case "lose":
		w.lose(subjobOf(t, args[0]), number(t, args[1]), options["own"] != "")
	case "tick":
		w.now = w.now.Add(span(t, args[0]))
	case "due":
		w.board.Sync(w)
		at, known := w.board.Due(w.now)
		if !known {
			return []string{"never"}
		}
		return []string{"in " + at.Sub(w.now).String()}
	case "free":
		return w.tellFree()
	case "queue":
		return w.tellQueue()
	case "reservations":
		return w.tellReservations()
	default:
		t.Fatalf("unknown line %q", line)
	}
	return nil
}

func (w *story) schedule(t *testing.T, seed string) []string {
	t.Helper()
	if seed != "" {
		w.seed = uint64(number(t, seed))
	}
	fresh := NewBoard(Settings{})
	fresh.Sync(w)
	again := fresh.Pass(w.now, w.seed)
	w.board.Sync(w)
	plan := w.board.Pass(w.now, w.seed)
	if diff := gocmp.Diff(again, plan); diff != "" {
		t.Errorf("the board that was kept decides otherwise (-new +kept):\n%s", diff)
	}
	w.apply(t, plan)
	return w.tell(plan)
}

func (w *world) mark(name, word string) {
	w.setNode("id-"+name, func(n *structs.Node) {
		switch word {
		case "cordoned", "draining", "eligible":
			n.Eligibility = structs.Eligibility(word)
		default:
			n.Status = structs.NodeStatus(word)
		}
	})
}

// lose takes a rank from a gang that goes on without it. What it held is kept
// until its node has told what runs there, or freed when it failed by itself.
func (w *world) lose(id subjobID, rank int, own bool) {
	at := slices.IndexFunc(w.allocs, func(a *structs.Allocation) bool {
		return a.JobID == id.job && a.Subjob == id.index && a.Rank == rank
	})
	w.touchJob(id)
	if own {
		w.touch("n", w.allocs[at].NodeID)
		w.allocs = slices.Delete(w.allocs, at, at+1)
		return
	}
	lost, a := *w.allocs[at], *w.attempts[id]
	lost.Status, lost.Quarantined = structs.AllocLost, true
	w.allocs[at] = &lost
	a.Lost++
	w.attempts[id] = &a
}

// move puts every subjob of a job in another place.
func (w *world) move(jobID, where string) {
	place := uint64(1)
	if where == "last" {
		place = 1 << 60
	}
	for i := range w.jobs[jobID].SubjobCount() {
		w.set(subjobID{jobID, i}, func(s *structs.Subjob) { s.Place, s.Moved = place, true })
	}
}

// tell writes a plan for people.
func (w *world) tell(plan structs.Plan) []string {
	var lines []string
	for _, g := range plan.Gangs {
		var places []string
		for _, p := range g.Placements {
			place := w.nodes[p.NodeID].Name
			for _, name := range slices.Sorted(maps.Keys(p.Ports)) {
				place += fmt.Sprintf(" %s:%d", name, p.Ports[name])
			}
			if len(p.Devices) > 0 {
				place += " " + strings.Join(p.Devices, "+")
			}
			places = append(places, place)
		}
		spec := ""
		if g.Spec > 0 {
			spec = fmt.Sprintf(" alternative %d", g.Spec)
		}
		verb := "start"
		if g.Nominate || len(g.Victims) > 0 {
			verb = "nominate"
		}
		text := fmt.Sprintf("%s %s attempt %d%s on %s", verb, w.called(g.JobID, g.Subjob), g.Attempt, spec, strings.Join(places, ", "))
		if len(g.Victims) > 0 {
			var victims []string
			for _, v := range g.Victims {
				victims = append(victims, w.called(v.JobID, v.Subjob))
			}
			text += ", ends " + strings.Join(victims, ", ")
		}
		lines = append(lines, text)
	}
	for _, u := range plan.Waits {
		lines = append(lines, w.tellWait(u)...)
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing changes")
	}
	return lines
}

func (w *world) tellWait(u structs.WaitUpdate) []string {
	var lines []string
	if u.Wait != nil {
		text := messages.Text(messages.English, u.Wait.ID, u.Wait.Params)
		if u.Wait.Never {
			text = "never: " + text
		}
		if len(u.Wait.Holders) > 0 {
			var names []string
			for _, id := range u.Wait.Holders {
				names = append(names, w.jobs[id].Name)
			}
			text += " (held by " + strings.Join(names, ", ") + ")"
		}
		lines = append(lines, fmt.Sprintf("wait %s: %s", w.called(u.JobID, u.Subjob), text))
	}
	if u.NoPassingAt != 0 {
		lines = append(lines, fmt.Sprintf("%s goes by limits alone after %s", w.called(u.JobID, u.Subjob), u.NoPassingAt.Time().Format("15:04:05")))
	}
	return lines
}

func (w *world) tellFree() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		n, u := w.nodes[id], w.usage(id)
		lines = append(lines, fmt.Sprintf("%s cpu %s, memory %s", n.Name, structs.FormatMilliCPU(n.Free(u).CPU), structs.FormatSize(n.Free(u).Memory)))
	}
	return lines
}

func (w *story) tellQueue() []string {
	w.board.Sync(w)
	var lines []string
	for q := range w.board.Queued() {
		lines = append(lines, fmt.Sprintf("%s %d. %s", q.Pool, q.Position, w.called(q.Job.ID, q.Subjob.Index)))
	}
	return lines
}

func (w *story) tellReservations() []string {
	var lines []string
	for _, r := range w.board.Reservations() {
		when := "at a time that nobody knows"
		if r.At != 0 {
			when = "at " + r.At.Time().Format("15:04:05")
		}
		if r.Strict {
			when += ", strictly"
		}
		var names []string
		for _, id := range r.Nodes {
			names = append(names, w.nodes[id].Name)
		}
		lines = append(lines, fmt.Sprintf("%s on %s %s", w.called(r.JobID, r.Subjob), strings.Join(names, ", "), when))
	}
	return lines
}

func (w *world) called(id string, index int) string {
	if w.jobs[id].Batch != nil {
		return fmt.Sprintf("%s/%d", w.jobs[id].Name, index)
	}
	return w.jobs[id].Name
}

func nodeFrom(t *testing.T, name string, options map[string]string) *structs.Node {
	n := testNode(name, 8, 16*structs.GiB)
	for key, value := range options {
		switch key {
		case "cpu":
			n.Capacity.CPU = cores(t, value)
		case "memory":
			n.Capacity.Memory = size(t, value)
		case "ports":
			low, high, _ := strings.Cut(value, "-")
			n.Capacity.PortMin, n.Capacity.PortMax = number(t, low), number(t, high)
		case "pool":
			n.Pool = value
		case "drivers":
			n.Drivers = strings.Split(value, ",")
		case "devices":
			for group := range strings.SplitSeq(value, "+") {
				count, kind, model := deviceWords(t, group)
				for _, d := range testDevices(count, kind, model) {
					d.ID = fmt.Sprintf("dev-%d", len(n.Devices))
					n.Devices = append(n.Devices, d)
				}
			}
		case "rdma":
			n.RDMA = true
		case "raw":
			n.Raw, n.Attributes = true, map[string]string{structs.AttrIsolationReason: value}
		case "protocol", "masks":
			if n.Attributes == nil {
				n.Attributes = map[string]string{}
			}
			if key == "protocol" {
				n.Version, n.Attributes[structs.AttrProtocol] = "1."+value, value
			} else {
				n.Attributes[structs.AttrMasks(value)] = structs.MasksYes
			}
		case "at":
			n.Topology = strings.Split(value, "/")
		default:
			t.Fatalf("node option %s", key)
		}
	}
	return n
}

func poolFrom(t *testing.T, name string, options map[string]string) *structs.Pool {
	p := &structs.Pool{Name: name}
	for key, value := range options {
		switch key {
		case "order":
			p.Order = structs.QueueOrder(value)
		case "half":
			p.HalfLife = structs.Duration(span(t, value))
		case "age":
			p.AgeWeight = cores(t, value)
		case "dedicated":
			p.Dedicated = true
		case "rdma":
			p.RDMA = true
		case "raw":
			p.Raw = true
		case "nodes":
			p.Ceilings.Nodes = number(t, value)
		case "devices":
			p.Ceilings.Devices = number(t, value)
		case "by":
			p.CeilingsBy = value
		default:
			t.Fatalf("pool option %s", key)
		}
	}
	return p
}

func projectFrom(t *testing.T, name string, options map[string]string) *structs.Project {
	p := &structs.Project{Name: name}
	for key, value := range options {
		switch key {
		case "weight":
			p.Weight = cores(t, value)
		case "quota":
			for text := range strings.SplitSeq(value, ",") {
				words := strings.Split(text, ":")
				quota := structs.Quota{Kind: words[0], Guaranteed: number(t, words[1])}
				if words[2] != "" {
					most := number(t, words[2])
					quota.Maximum = &most
				}
				p.Quotas = append(p.Quotas, quota)
			}
		default:
			t.Fatalf("project option %s", key)
		}
	}
	return p
}

func jobFrom(t *testing.T, name string, options map[string]string) *structs.Job {
	j := testJob(name, 1, 1, structs.GiB)
	for key, value := range options {
		r := &j.Resources[0]
		switch key {
		case "nodes":
			j.Nodes = number(t, value)
		case "secret":
			j.Task.Secrets = []structs.SecretUse{{Name: value, Var: "TOKEN"}}
		case "workdir":
			j.Workdir = &structs.Workdir{Source: value}
		case "credentials":
			j.Task.Secrets = append(j.Task.Secrets, structs.SecretUse{Name: value, Image: true})
		case "min":
			j.Checkpoint = &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: number(t, value), AllowResize: options["resize"] != ""}}
		case "resize": // with min
		case "range":
			j.Distributed = structs.Distributed{Mode: structs.ModePyTorch, MinNodes: number(t, value)}
		case "cpu":
			r.CPU = cores(t, value)
		case "memory":
			r.Memory = size(t, value)
		case "priority":
			j.Priority = structs.Priority(value)
		case "batch":
			j.Batch = &structs.Batch{Count: number(t, value)}
		case "mode":
			j.Distributed.Mode = structs.Mode(value)
		case "servers":
			j.Distributed.ParameterServers = number(t, value)
		case "master":
			j.Distributed.MasterPort = number(t, value)
		case "port":
			port, fixed, _ := strings.Cut(value, ":")
			r.Ports = []structs.PortRequest{{Name: port, Static: number(t, fixed)}}
		case "devices":
			count, kind, model := deviceWords(t, value)
			r.Devices = []structs.DeviceRequest{{Kind: kind, Count: count, Model: model}}
		case "rdma":
			r.RDMA = true
		case "on":
			j.Placement.Nodes = strings.Split(value, ",")
		case "pool":
			j.Placement.Pool = value
		case "place":
			j.Placement.SpreadOrPack = value
		case "driver":
			j.Task.Driver = value
		case "or":
			cpu, memory, _ := strings.Cut(value, ":")
			j.Resources = append(j.Resources, structs.Resources{CPU: cores(t, cpu), Memory: size(t, memory)})
		case "project":
			j.Project = value
		case "limit":
			j.TimeLimit = structs.Duration(span(t, value))
		case "preemptible":
			j.Preemptible = true
		case "vip":
			j.VIP, j.KillsLast = &structs.VIP{}, true
			for text := range strings.SplitSeq(value, ",") {
				node, busy, _ := strings.Cut(text, ":")
				j.VIP.Machines = append(j.VIP.Machines, structs.VIPMachine{Node: node, Busy: busy})
				if busy == structs.BusyAsk {
					j.VIP.Ask = &structs.VIPAsk{For: structs.ConsentForDefault, Silence: structs.BusyWait}
				}
			}
			j.Nodes = len(j.VIP.Machines)
		case "after":
			for other := range strings.SplitSeq(value, ",") {
				j.After = append(j.After, structs.After{Job: other, When: structs.UntilEnded, ID: "id-" + other})
			}
		case "silence", "begin": // of its ask, and from now on
		default:
			t.Fatalf("job option %s", key)
		}
	}
	if silence := options["silence"]; silence != "" {
		j.VIP.Ask.Silence = silence
	}
	return j
}

func subjobOf(t *testing.T, text string) subjobID {
	name, index, ok := strings.Cut(text, "/")
	if !ok {
		return subjobID{"id-" + name, 0}
	}
	return subjobID{"id-" + name, number(t, index)}
}

func deviceWords(t *testing.T, text string) (int, string, string) {
	words := append(strings.Split(text, ":"), "")
	return number(t, words[0]), words[1], words[2]
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func cores(t *testing.T, text string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func size(t *testing.T, text string) int64 {
	t.Helper()
	n, err := structs.ParseSize(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func span(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := structs.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Std()
}
