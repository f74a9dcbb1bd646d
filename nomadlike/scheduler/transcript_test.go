package scheduler

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// TestTranscripts plays the stories in testdata. A line that begins with "> "
// is what the line before it answered; -rewrite writes the answers anew.
//
//	node NAME [cpu=N] [memory=SIZE] [ports=A-B] [pool=P] [drivers=a,b] [devices=N:KIND:MODEL]
//	mark NODE ready|lost|disconnected|cordoned|draining|eligible
//	sick NODE DEVICE
//	job NAME [nodes=N] [cpu=N] [memory=SIZE] [priority=P] [batch=N] [mode=M] [master=PORT]
//	    [port=NAME:N] [devices=N:KIND[:MODEL]] [on=a,b] [pool=P] [place=spread] [driver=D] [or=cpu:memory]
//	schedule [seed=N] | finish JOB[/N] | fail JOB[/N] [delay=SPAN] | tick SPAN | free
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
			w := newWorld()
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
				for _, answer := range w.play(t, line) {
					out.WriteString("> " + answer + "\n")
				}
				w.checkNodes(t)
				w.checkGangs(t)
			}
			golden.Assert(t, path, out.String())
		})
	}
}

func (w *world) play(t *testing.T, line string) []string {
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
		devices := w.nodes["id-"+args[0]].Devices
		devices[slices.IndexFunc(devices, func(d structs.Device) bool { return d.ID == args[1] })].Healthy = false
	case "job":
		w.submit(jobFrom(t, args[0], options))
	case "schedule":
		if options["seed"] != "" {
			w.seed = uint64(number(t, options["seed"]))
		}
		plan := Schedule(Input{Snapshot: w}, w.now, w.seed)
		w.apply(t, plan)
		return w.tell(plan)
	case "finish", "fail":
		id, index := subjobOf(t, args[0])
		s := w.subjobs[id][index]
		if words[0] == "finish" {
			w.end(id, index, structs.JobSucceeded)
			break
		}
		w.end(id, index, structs.JobQueued)
		s.QueuedAt = w.now
		if options["delay"] != "" {
			s.NotBefore = w.now.Add(span(t, options["delay"]))
		}
	case "tick":
		w.now = w.now.Add(span(t, args[0]))
	case "free":
		return w.tellFree()
	default:
		t.Fatalf("unknown line %q", line)
	}
	return nil
}

func (w *world) mark(name, word string) {
	w.index++
	n := w.nodes["id-"+name]
	switch word {
	case "cordoned", "draining", "eligible":
		n.Eligibility = structs.Eligibility(word)
	default:
		n.Status = structs.NodeStatus(word)
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
		lines = append(lines, fmt.Sprintf("start %s attempt %d%s on %s", w.called(g.JobID, g.Subjob), g.Attempt, spec, strings.Join(places, ", ")))
	}
	for _, u := range plan.Waits {
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
	if len(lines) == 0 {
		lines = append(lines, "nothing changes")
	}
	return lines
}

func (w *world) tellFree() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		n, u := w.nodes[id], w.usage(id)
		lines = append(lines, fmt.Sprintf("%s cpu %s, memory %s", n.Name, structs.FormatMilliCPU(n.FreeCPU(u)), structs.FormatSize(n.FreeMemory(u))))
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
			count, kind, model := deviceWords(t, value)
			n.Devices = testDevices(count, kind, model)
		default:
			t.Fatalf("node option %s", key)
		}
	}
	return n
}

func jobFrom(t *testing.T, name string, options map[string]string) *structs.Job {
	j := testJob(name, 1, 1, structs.GiB)
	for key, value := range options {
		r := &j.Resources[0]
		switch key {
		case "nodes":
			j.Nodes = number(t, value)
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
		case "master":
			j.Distributed.MasterPort = number(t, value)
		case "port":
			port, fixed, _ := strings.Cut(value, ":")
			r.Ports = []structs.PortRequest{{Name: port, Static: number(t, fixed)}}
		case "devices":
			count, kind, model := deviceWords(t, value)
			r.Devices = []structs.DeviceRequest{{Kind: kind, Count: count, Model: model}}
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
		default:
			t.Fatalf("job option %s", key)
		}
	}
	return j
}

func subjobOf(t *testing.T, text string) (string, int) {
	name, index, ok := strings.Cut(text, "/")
	if !ok {
		return "id-" + name, 0
	}
	return "id-" + name, number(t, index)
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
