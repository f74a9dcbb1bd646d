package state

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// play applies the commands of a script, one a second, and writes down the
// events that each brings about.
//
//	node NAME [incarnation=N] [cpu=N] [devices=N] [pool=P] [attr=NAME=VALUE] [has=JOB/ATTEMPT/RANK,…]
//	submit NAME [nodes=N] [count=N] [restarts=N] [delay=D] [mode=M] [servers=N] [range=N] [limit=D] [key=K] [by=U] [project=P]
//	            [priority=T] [pool=P] [cpu=N] [devices=N] [yields] [vip=NODE:BUSY,…] [ask=D] [silence=kill] [min=N] [resize] [grace=D] [saves] [warn=D]
//	            [after=NAME:WHEN,…] [begin=D] [deadline=D] [queue=D] [unnumbered]
//	due                          what is to start no more leaves the queue, and limits that passed end attempts
//	number N                     the job of a number
//	plan NAME[/SUBJOB] NODE… [kill=NAME,…] [claim=yes]
//	report NAME[/SUBJOB] RANK… STATUS [exit=N] [infra] [attempt=N] [node=NAME]
//	lease NODE [register=N]      the lease of a lost node is over
//	paces NAME RANK [silent] [mute] [over] [idle|busy] [step=N] [for=D] [limit=D] [cards=ID,…]   a hang watch tells
//	rests NAME RANK D            its devices have had nothing to do for so long; 0s: one is at work; ahead: its clock is
//	slow NAME RANK               a performance watch tells
//	release NAME hold|devices    a person ends debug holds, or takes their devices
//	letgo NAME RANK hold|devices  a node has let go of them
//	evicted NAME RANK DEVICE     a node leaves a device
//	saves NAME RANK PATH [step=N] [seq=N] [attempt=N] [node=NAME]
//	sees NAME RANK NAME=VALUE…    a node tells what a rank sees
//	status NODE ready|disconnected|lost|left
//	drain|cordon|eligible NODE [deadline=D]
//	window ID NODE… in=D for=D [keep=yes] [pool=P] [all=yes]   maintenance
//	window ID begin|over|remove
//	stop|delete|expire NAME[/SUBJOB]
//	pause|continue|finish NAME[/SUBJOB]
//	throttle NAME[/SUBJOB] [busy=D] [idle=D]
//	obey NAME[/SUBJOB] RANK… [seq=N] [failed]   ranks answer what they were told last
//	priority NAME TIER
//	limit NAME D
//	move NAME first|last|OTHER
//	consent NAME VIP yes|no      the owner of what runs answers a VIP job
//	pool NAME [nodes=NODE,…] [attr=NAME=VALUE]
//	project NAME [urgent=N] [kind=K] [guaranteed=N] [max=N]
//	forget pool|project NAME
//	wait D                       time passes
//	show NAME                    how its subjobs and allocations stand
//	queue                        who waits, in order
//	held PROJECT                 what it holds, and what was booked
type play struct {
	t     *testing.T
	out   strings.Builder
	store *Store
	index uint64
	now   structs.UnixNano
	told  uint64
}

func TestTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.script")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("find scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".script"), func(t *testing.T) {
			p := &play{t: t, store: New(), now: 1}
			file, err := os.Open(script)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			for lines := bufio.NewScanner(file); lines.Scan(); {
				p.out.WriteString(lines.Text() + "\n")
				if words := strings.Fields(lines.Text()); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
					p.do(words[0], words[1:])
				}
				if found := CheckInvariants(p.store.Snapshot()); len(found) > 0 {
					t.Fatalf("after %q: %q", lines.Text(), found)
				}
			}
			golden.Assert(t, strings.TrimSuffix(script, ".script")+".txt", p.out.String())
		})
	}
}

// words splits arguments into plain ones and name=value ones.
func split(args []string) (plain []string, named map[string]string) {
	named = make(map[string]string)
	for _, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok {
			named[name] = value
		} else {
			plain = append(plain, arg)
		}
	}
	return plain, named
}

func (p *play) number(text string, otherwise int) int {
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *play) span(text string) structs.Duration {
	var d structs.Duration
	if text == "" {
		return 0
	}
	if err := d.UnmarshalJSON([]byte(strconv.Quote(text))); err != nil {
		p.t.Fatal(err)
	}
	return d
}

// jobOf reads NAME[/SUBJOB].
func (p *play) jobOf(text string) (id string, subjob int) {
	name, index, _ := strings.Cut(text, "/")
	return "job-" + name, p.number(index, 0)
}

func (p *play) do(verb string, args []string) {
	plain, named := split(args)
	switch verb {
	case "node":
		p.node(plain[0], named)
	case "submit":
		p.submit(plain, named)
	case "plan":
		p.plan(plain[0], plain[1:], named)
	case "report":
		p.report(plain, named)
	case "lease":
		node := p.store.Snapshot().Node("node-" + plain[0])
		p.apply(structs.CommandLeaseOver, &structs.LeaseOver{
			NodeID:        node.ID,
			RegisterIndex: uint64(p.number(named["register"], int(node.RegisterIndex))),
		})
	case "saves":
		p.saves(plain, named)
	case "release":
		p.apply(structs.CommandJobStop, &structs.JobStop{JobID: "job-" + plain[0], Release: plain[1], Reason: "seen enough"})
	case "paces", "rests", "slow", "evicted", "letgo", "sees":
		p.watched(verb, plain, named)
	case "status":
		node := p.store.Snapshot().Node("node-" + plain[0])
		p.apply(structs.CommandNodeStatus, &structs.NodeStatusChange{NodeID: node.ID, Incarnation: node.Incarnation, Status: structs.NodeStatus(plain[1])})
	case "drain", "cordon", "eligible":
		body := &structs.NodeEligibilityChange{NodeID: "node-" + plain[0], Eligibility: map[string]structs.Eligibility{
			"drain": structs.NodeDraining, "cordon": structs.NodeCordoned, "eligible": structs.NodeEligible,
		}[verb]}
		if named["deadline"] != "" {
			body.DrainDeadline = p.now.Add(p.span(named["deadline"]).Std())
		}
		p.apply(structs.CommandNodeEligibility, body)
	case "window":
		p.window(plain, named)
	case "treat":
		p.apply(structs.CommandDeviceTreated, &structs.DeviceTreatment{NodeID: "node-" + plain[0], Device: plain[1], Number: 1, Act: structs.DeviceAct(plain[2])})
	case "stop":
		id, subjob := p.jobOf(plain[0])
		body := &structs.JobStop{JobID: id, Reason: "enough"}
		if strings.Contains(plain[0], "/") {
			body.Subjob = &subjob
		}
		p.apply(structs.CommandJobStop, body)
	case "pause", "continue", "throttle", "finish":
		p.control(verb, plain[0], named)
	case "obey":
		p.obey(plain, named)
	case "delete":
		id, _ := p.jobOf(plain[0])
		p.apply(structs.CommandJobDelete, &structs.JobDelete{JobID: id})
	case "expire":
		id, subjob := p.jobOf(plain[0])
		p.apply(structs.CommandJobLimits, &structs.JobLimits{Expired: []structs.AttemptKey{{
			JobID: id, Subjob: subjob,
			Number: p.store.Snapshot().Subjob(id, subjob).Attempt,
		}}})
	case "due":
		due := p.store.Snapshot().DueQueued(p.now, LimitsMax)
		p.apply(structs.CommandJobLimits, &structs.JobLimits{Queued: due, Expired: p.store.Snapshot().DueAttempts(p.now, LimitsMax)})
	case "number":
		view, ok := p.store.Snapshot().JobNumbered(uint64(p.number(plain[0], 0)))
		if !ok {
			p.out.WriteString("  = nobody\n")
			break
		}
		fmt.Fprintf(&p.out, "  = %s\n", view.Job.ID)
	case "priority":
		p.apply(structs.CommandJobPriority, &structs.JobPriority{JobID: "job-" + plain[0], Priority: structs.Priority(plain[1])})
	case "consent":
		p.consent(plain)
	case "user", "disable", "enable", "dismiss", "member", "token", "archive", "unarchive", "password", "sign-in", "extend", "provider", "identity", "rights":
		p.people(verb, plain, named)
	case "tag", "note":
		p.annotate(verb, plain)
	case "parallel":
		p.apply(structs.CommandJobParallel, &structs.JobParallel{JobID: "job-" + plain[0], Parallel: p.number(plain[1], 0)})
	case "limit":
		p.apply(structs.CommandJobTimeLimit, &structs.JobTimeLimit{JobID: "job-" + plain[0], TimeLimit: p.span(plain[1])})
	case "move":
		body := &structs.QueueMove{JobID: "job-" + plain[0], Last: plain[1] == "last"}
		if plain[1] != "first" && plain[1] != "last" {
			body.Before = "job-" + plain[1]
		}
		p.apply(structs.CommandQueueMove, body)
	case "pool", "project", "forget":
		p.bounds(verb, plain, named)
	case "queue":
		for job, subjob := range p.store.Snapshot().Queue() {
			fmt.Fprintf(&p.out, "  = %s/%d %s\n", job.Name, subjob.Index, job.Priority)
		}
	case "held":
		p.held(plain[0])
	case "history":
		id, _ := p.jobOf(plain[0])
		events, _ := p.store.Snapshot().JobEvents(id)
		for _, event := range events {
			cause := ""
			if event.Cause != nil {
				cause = ": " + event.Cause.ID
			}
			fmt.Fprintf(&p.out, "  = %s%s\n", messages.Text(messages.English, event.ID, event.Params), cause)
		}
	case "wait":
		p.now = p.now.Add(p.span(plain[0]).Std())
	case "show":
		p.show(plain[0])
	default:
		p.t.Fatalf("unknown verb %s", verb)
	}
}

// consent answers a VIP job for the newest attempt of another one.
func (p *play) consent(plain []string) {
	id, subjob := p.jobOf(plain[0])
	to, _ := p.jobOf(plain[1])
	body := &structs.JobConsent{JobID: to, Of: structs.AttemptKey{JobID: id, Subjob: subjob}, Answer: structs.ConsentAnswer(plain[2])}
	if now := p.store.Snapshot().Subjob(id, subjob); now != nil {
		body.Of.Number = now.Attempt
	}
	p.apply(structs.CommandJobConsent, body)
}

// annotate takes +TAG and -TAG behind a job, or the words of a note.
func (p *play) annotate(verb string, plain []string) {
	id, _ := p.jobOf(plain[0])
	body := &structs.JobAnnotate{JobID: id}
	if verb == "note" {
		note := strings.Join(plain[1:], " ")
		body.Note = &note
	} else {
		for _, word := range plain[1:] {
			if tag, ok := strings.CutPrefix(word, "-"); ok {
				body.Remove = append(body.Remove, tag)
			} else {
				body.Add = append(body.Add, strings.TrimPrefix(word, "+"))
			}
		}
	}
	p.apply(structs.CommandJobAnnotate, body)
}

// window makes a window of maintenance, or takes it a step further.
func (p *play) window(plain []string, named map[string]string) {
	if p.store.Snapshot().Cluster() == nil {
		p.apply(structs.CommandClusterInit, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})
	}
	if named["for"] == "" {
		p.apply(structs.CommandMaintenanceStep, &structs.MaintenanceStep{ID: plain[0], Step: structs.MaintenanceStepped(plain[1])})
		return
	}
	window := structs.Maintenance{
		ID: plain[0], Nodes: plain[1:], Pool: named["pool"], All: named["all"] != "", Reason: "new firmware",
		KeepRunning: named["keep"] != "", Start: p.now.Add(p.span(named["in"]).Std()),
	}
	window.End = window.Start.Add(p.span(named["for"]).Std())
	p.apply(structs.CommandMaintenancePut, &structs.MaintenancePut{Maintenance: window})
}

func (p *play) control(verb, which string, named map[string]string) {
	id, index := p.jobOf(which)
	var subjob *int
	if strings.Contains(which, "/") {
		subjob = &index
	}
	if verb == "finish" {
		p.apply(structs.CommandJobFinish, &structs.JobFinish{JobID: id, Subjob: subjob, Reason: "good enough"})
		return
	}
	p.apply(structs.CommandJobControl, &structs.JobControl{
		JobID: id, Subjob: subjob, Paused: verb == "pause",
		Continue: verb == "continue", Busy: p.span(named["busy"]), Idle: p.span(named["idle"]),
	})
}

// obey has ranks answer what they were told.
func (p *play) obey(plain []string, named map[string]string) {
	snapshot := p.store.Snapshot()
	id, subjob := p.jobOf(plain[0])
	number := snapshot.Subjob(id, subjob).Attempt
	for _, rank := range plain[1:] {
		if rank == "failed" {
			continue
		}
		alloc := snapshot.Alloc(structs.AllocID(id, subjob, number, p.number(rank, 0)))
		answer := &structs.ControlAnswer{Seq: uint64(p.number(named["seq"], 0))}
		if named["seq"] == "" {
			answer.Seq = alloc.Control.Seq
		}
		if slices.Contains(plain, "failed") {
			answer.Failed = structs.NewReason("client.control_failed", "cause", "no freezer")
		}
		p.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: alloc.NodeID, Reports: []structs.AllocReport{{
			AllocID: alloc.ID, Attempt: number, Status: structs.AllocRunning, Control: answer,
		}}})
	}
}

func (p *play) node(name string, named map[string]string) {
	node := testNode(0)
	node.ID, node.Name = "node-"+name, name
	node.Devices = node.Devices[:p.number(named["devices"], 0)]
	node.Pool = named["pool"]
	if attribute, value, ok := strings.Cut(named["attr"], "="); ok {
		node.Attributes = map[string]string{attribute: value}
	}
	node.Incarnation = uint64(p.number(named["incarnation"], 1))
	node.Capacity.CPU = float64(p.number(named["cpu"], 4))
	body := &structs.NodeRegister{Node: node}
	for _, item := range strings.Split(named["has"], ",") {
		if parts := strings.Split(item, "/"); len(parts) == 3 {
			attempt := uint64(p.number(parts[1], 1))
			body.Inventory = append(body.Inventory, structs.InventoryItem{
				Attempt: attempt,
				AllocID: structs.AllocID("job-"+parts[0], 0, attempt, p.number(parts[2], 0)),
			})
		}
	}
	p.apply(structs.CommandNodeRegister, body)
}

func (p *play) submit(plain []string, named map[string]string) {
	name := plain[0]
	job := testJob(name, p.number(named["nodes"], 1))
	job.Preemptible = slices.Contains(plain, "yields")
	job.PatientStarts = slices.Contains(plain, "patient")
	job.SavesAtEnds = slices.Contains(plain, "saves")
	if named["warn"] != "" {
		job.LimitWarning = &structs.LimitWarning{Before: p.span(named["warn"]), Signal: "SIGUSR2"}
	}
	if slices.Contains(plain, "strict") {
		job.Fencing = structs.FencingStrict
	}
	if named["min"] != "" || named["grace"] != "" {
		job.Checkpoint = &structs.Checkpoint{MaxResumes: 1, Signal: "SIGUSR1", Grace: p.span(named["grace"])}
	}
	if named["hang"] != "" {
		job.Hang = &structs.Hang{Action: named["hang"], Factor: 10, Least: structs.HangLeastDefault, Most: structs.HangMostDefault}
	}
	if named["hold"] != "" {
		job.Debug = &structs.Debug{Hold: p.span(named["hold"])}
	}
	if named["slow"] != "" {
		job.Checkpoint.Performance = &structs.Performance{Threshold: 0.664, Action: named["slow"], Compare: "gt", Times: 3}
	}
	if named["min"] != "" {
		job.Checkpoint.Elastic = &structs.Elastic{MinNodes: p.number(named["min"], 1), AllowResize: slices.Contains(plain, "resize")}
	}
	for _, machine := range strings.Split(named["vip"], ",") {
		if node, busy, ok := strings.Cut(machine, ":"); ok {
			if job.VIP == nil {
				job.VIP = &structs.VIP{}
			}
			job.VIP.Machines = append(job.VIP.Machines, structs.VIPMachine{Node: node, Busy: busy})
		}
	}
	if named["ask"] != "" {
		job.VIP.Ask, job.KillsLast = &structs.VIPAsk{For: p.span(named["ask"]), Silence: named["silence"], Message: "paper deadline"}, true
	}
	if count := p.number(named["count"], 0); count > 0 {
		job.Batch = &structs.Batch{Count: count, Parallel: p.number(named["parallel"], 0)}
	}
	if restarts := p.number(named["restarts"], 0); restarts > 0 {
		job.Restart = &structs.Restart{MaxRestarts: restarts, Delay: p.span(named["delay"])}
	}
	if named["mode"] != "" {
		job.Distributed.Mode = structs.Mode(named["mode"])
	}
	job.Distributed.MinNodes = p.number(named["range"], 0)
	job.Distributed.ParameterServers = p.number(named["servers"], 0)
	if named["by"] != "" {
		job.User = named["by"]
	}
	if named["id"] != "" {
		job.ID = "job-" + named["id"]
	}
	if named["project"] != "" {
		job.Project = named["project"]
	}
	if named["priority"] != "" {
		job.Priority = structs.Priority(named["priority"])
	}
	if devices := p.number(named["devices"], 0); devices > 0 {
		job.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}}
	}
	job.Resources[0].CPU = float64(p.number(named["cpu"], 1))
	job.Placement.Pool = named["pool"]
	job.TimeLimit, job.IdempotencyKey = p.span(named["limit"]), named["key"]
	for after := range strings.SplitSeq(named["after"], ",") {
		if other, when, ok := strings.Cut(after, ":"); ok {
			job.After = append(job.After, structs.After{Job: other, When: when, ID: "job-" + other})
		}
	}
	if named["begin"] != "" {
		job.BeginAt = p.now.Add(p.span(named["begin"]).Std())
	}
	if named["deadline"] != "" {
		job.DeadlineAt = p.now.Add(p.span(named["deadline"]).Std())
	}
	job.MaxQueueTime = p.span(named["queue"])
	p.apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: job, Numbered: !slices.Contains(plain, "unnumbered")})
}

// bounds sets pools and projects.
func (p *play) bounds(verb string, plain []string, named map[string]string) {
	switch name := plain[len(plain)-1]; {
	case verb == "pool":
		pool := structs.Pool{Name: name}
		if named["nodes"] != "" {
			pool.Nodes = strings.Split(named["nodes"], ",")
		}
		if attribute, value, ok := strings.Cut(named["attr"], "="); ok {
			pool.Constraints = map[string]string{attribute: value}
		}
		p.apply(structs.CommandPoolPut, &structs.PoolPut{Pool: pool})
	case verb == "project":
		project := structs.Project{Name: name}
		if named["urgent"] != "" {
			limit := p.number(named["urgent"], 0)
			project.UrgentLimit = &limit
		}
		if named["kind"] != "" {
			quota := structs.Quota{Kind: named["kind"], Guaranteed: p.number(named["guaranteed"], 0)}
			if named["max"] != "" {
				most := p.number(named["max"], 0)
				quota.Maximum = &most
			}
			project.Quotas = []structs.Quota{quota}
		}
		p.apply(structs.CommandProjectPut, &structs.ProjectPut{Project: project})
	case plain[0] == "pool":
		p.apply(structs.CommandPoolDelete, &structs.PoolDelete{Name: name})
	default:
		p.apply(structs.CommandProjectDelete, &structs.ProjectDelete{Name: name})
	}
}

func (p *play) held(project string) {
	usage := p.store.Snapshot().ProjectUsage(project)
	if usage == nil {
		p.out.WriteString("  = nothing\n")
		return
	}
	fmt.Fprintf(&p.out, "  = holds %v, urgent jobs: %d\n", map[string]int64(usage.QuotaUsage), usage.Urgent)
	for _, ledger := range usage.Ledgers {
		for _, bucket := range ledger.Buckets {
			fmt.Fprintf(&p.out, "  = pool %s, hour %d: devices %v, cores %v\n", ledger.Pool, bucket.Hour,
				time.Duration(bucket.DeviceMs)*time.Millisecond, time.Duration(bucket.MilliCPUMs)*time.Microsecond)
		}
	}
}

func (p *play) plan(which string, nodes []string, named map[string]string) {
	snapshot := p.store.Snapshot()
	id, subjob := p.jobOf(which)
	gang := structs.GangPlan{JobID: id, Subjob: subjob, Attempt: 1, Nominate: named["claim"] != ""}
	for _, victim := range strings.Split(named["kill"], ",") {
		victimID, index := p.jobOf(victim)
		if known := snapshot.Subjob(victimID, index); known != nil {
			gang.Victims = append(gang.Victims, structs.AttemptKey{JobID: victimID, Subjob: index, Number: known.Attempt})
		}
	}
	if known := snapshot.Subjob(id, subjob); known != nil {
		gang.Attempt = known.NextAttempt()
	}
	view, _ := snapshot.Job(id)
	for rank, name := range nodes {
		placement := structs.RankPlacement{NodeID: "node-" + name}
		if node := snapshot.Node(placement.NodeID); node != nil && view.Job != nil {
			usage := snapshot.Usage(node.ID)
			if gang.Nominate || len(gang.Victims) > 0 {
				usage = nil
			}
			placement.Ports, _ = feasible.ChoosePorts(node, usage, view.Job.PortRequests(view.Job.Resources[0], rank), 0)
			placement.Devices, _ = feasible.ChooseDevices(node, usage, view.Job.Resources[0].Devices)
		}
		gang.Placements = append(gang.Placements, placement)
	}
	p.apply(structs.CommandPlan, &structs.Plan{Gangs: []structs.GangPlan{gang}})
}

func (p *play) report(plain []string, named map[string]string) {
	snapshot := p.store.Snapshot()
	id, subjob := p.jobOf(plain[0])
	attempt := uint64(p.number(named["attempt"], int(snapshot.Subjob(id, subjob).Attempt)))
	ranks := plain[1:]
	infra := ranks[len(ranks)-1] == "infra"
	if infra {
		ranks = ranks[:len(ranks)-1]
	}
	status := structs.AllocStatus(ranks[len(ranks)-1])
	var cause *structs.Reason
	if named["cause"] != "" {
		cause = structs.NewReason(named["cause"])
	}
	var started structs.UnixNano
	if status == structs.AllocRunning {
		started = p.now
	}
	for _, rank := range ranks[:len(ranks)-1] {
		allocID := structs.AllocID(id, subjob, attempt, p.number(rank, 0))
		nodeID := "node-" + named["node"]
		if alloc := snapshot.Alloc(allocID); alloc != nil && named["node"] == "" {
			nodeID = alloc.NodeID
		}
		p.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: nodeID, Reports: []structs.AllocReport{{
			AllocID: allocID, Attempt: attempt, Status: status, ExitCode: p.number(named["exit"], 0), Infra: infra, Cause: cause, StartedAt: started,
		}}})
	}
}

// saves registers a checkpoint.
func (p *play) saves(plain []string, named map[string]string) {
	snapshot := p.store.Snapshot()
	id, subjob := p.jobOf(plain[0])
	attempt := uint64(p.number(named["attempt"], int(snapshot.Subjob(id, subjob).Attempt)))
	allocID := structs.AllocID(id, subjob, attempt, p.number(plain[1], 0))
	alloc := snapshot.Alloc(allocID)
	nodeID := alloc.NodeID
	if named["node"] != "" {
		nodeID = "node-" + named["node"]
	}
	seq := uint64(p.number(named["seq"], int(alloc.NoteSeq)+1))
	p.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: nodeID, Notes: []structs.AllocNote{{
		AllocID: allocID, Attempt: attempt,
		Seq: seq, Checkpoint: &structs.SavedCheckpoint{Path: plain[2], Step: int64(p.number(named["step"], 0)), SavedAt: structs.UnixNano(seq)},
	}}})
}

// watched is what a node says of a rank that it watches.
func (p *play) watched(verb string, plain []string, named map[string]string) {
	snapshot := p.store.Snapshot()
	id, subjob := p.jobOf(plain[0])
	attempt := uint64(p.number(named["attempt"], int(snapshot.Subjob(id, subjob).Attempt)))
	alloc := snapshot.Alloc(structs.AllocID(id, subjob, attempt, p.number(plain[1], 0)))
	note := structs.AllocNote{AllocID: alloc.ID, Attempt: attempt, Seq: alloc.NoteSeq + 1}
	switch verb {
	case "sees":
		note.Told = &structs.Told{Event: structs.EventEnvironment, Params: map[string]string{"seen": "much"}, Seen: named}
	case "paces":
		note.Progress = &structs.Progress{
			Silent: slices.Contains(plain, "silent"), Mute: slices.Contains(plain, "mute"), Over: slices.Contains(plain, "over"),
			For: p.span(named["for"]), Limit: p.span(named["limit"]), Step: int64(p.number(named["step"], 0)),
			Measured: slices.Contains(plain, "idle") || slices.Contains(plain, "busy"), Idle: slices.Contains(plain, "idle"),
		}
		if named["cards"] != "" {
			note.Progress.Cards = strings.Split(named["cards"], ",")
		}
	case "rests":
		note.Idle = &structs.IdleNote{}
		if plain[2] == "ahead" {
			note.Idle.Since = p.now.Add(time.Hour)
		} else if span := p.span(plain[2]); span != 0 {
			note.Idle.Since = p.now - structs.UnixNano(span)
		}
	case "slow":
		note.Slow = &structs.Slowness{Value: 0.75, Threshold: 0.664, Times: 3}
	case "letgo":
		note.Hold = &structs.HoldNote{Over: plain[2] == "hold"}
	case "evicted":
		note.Evicted = structs.NewReason("device.fault", "device", plain[2], "code", "xid-79")
	}
	p.apply(structs.CommandAllocReports, &structs.AllocReports{NodeID: alloc.NodeID, Notes: []structs.AllocNote{note}})
}

// apply runs a command and writes down what it brought about.
func (p *play) apply(kind structs.CommandKind, body any) {
	p.index++
	p.now = p.now.Add(1e9)
	result := p.store.Apply(p.index, encode(kind, p.now, body))
	switch {
	case result.Err != nil:
		fmt.Fprintf(&p.out, "  ! %s\n", messages.Text(messages.English, result.Err.ID, result.Err.Params))
	case result.Plan != nil && len(result.Plan.Refused) > 0:
		for i, reason := range result.Plan.Refused {
			fmt.Fprintf(&p.out, "  ! gang %d: %s\n", i, reason.ID)
		}
	case len(result.Refused) > 0:
		fmt.Fprintf(&p.out, "  ! %d reports refused\n", len(result.Refused))
	}
	events, index, err := p.store.Snapshot().EventsAfter(structs.CursorAfter(p.told))
	if err != nil {
		p.t.Fatal(err)
	}
	p.told = index
	for _, event := range events {
		fmt.Fprintf(&p.out, "  %s\n", messages.Text(messages.English, event.ID, event.Params))
	}
}

func (p *play) show(name string) {
	snapshot := p.store.Snapshot()
	view, ok := snapshot.Job("job-" + name)
	if !ok {
		p.out.WriteString("  = gone\n")
		return
	}
	fmt.Fprintf(&p.out, "  = %s exit=%d\n", view.Status.State, view.Status.ExitCode)
	for subjob := range snapshot.Subjobs(view.Job.ID) {
		fmt.Fprintf(&p.out, "  = subjob %d: %s attempt=%d restarts=%d losses=%d", subjob.Index, subjob.State, subjob.Attempt, subjob.Restarts, subjob.InfraLosses)
		if subjob.StopIntended != "" {
			fmt.Fprintf(&p.out, " to=%s", subjob.StopIntended)
		}
		if subjob.NotBefore != 0 {
			fmt.Fprintf(&p.out, " delay=%s", subjob.NotBefore.Sub(p.now))
		}
		if subjob.Held() {
			fmt.Fprintf(&p.out, " %q", messages.Text(messages.English, subjob.Wait.ID, subjob.Wait.Params))
		}
		if subjob.Reason != nil {
			fmt.Fprintf(&p.out, " because %q", messages.Text(messages.English, subjob.Reason.ID, subjob.Reason.Params))
		}
		if control := subjob.Control; control != nil {
			p.out.WriteString(controlText(control))
		}
		if nomination := subjob.Nomination; nomination != nil {
			fmt.Fprintf(&p.out, " nominated for %d nodes, victims: %d", len(nomination.Gang.Placements), len(nomination.Victims))
		}
		for _, c := range subjob.Consents {
			fmt.Fprintf(&p.out, " asked %s %q", c.Of.JobID, c.Answer)
		}
		if saved := subjob.Newest(); saved != nil {
			fmt.Fprintf(&p.out, " newest of %d checkpoints: %s step=%d attempt=%d", len(subjob.Checkpoints), saved.Path, saved.Step, saved.Attempt)
		}
		p.out.WriteString("\n")
	}
	for alloc := range snapshot.AllocsOfJob(view.Job.ID) {
		fmt.Fprintf(&p.out, "  = %s on %s: %s, wants %s", alloc.Name, alloc.NodeName, alloc.Status, alloc.Desired)
		if alloc.Stop != nil {
			fmt.Fprintf(&p.out, " with %s within %s", alloc.Stop.Signal, alloc.Stop.Grace)
		}
		if alloc.Warning != nil {
			fmt.Fprintf(&p.out, ", warned by %s", alloc.Warning.Signal)
		}
		if alloc.IdleSince != 0 {
			fmt.Fprintf(&p.out, ", idle for %s", p.now.Sub(alloc.IdleSince))
		}
		if alloc.Resume != nil {
			fmt.Fprintf(&p.out, ", from %s", alloc.Resume.Path)
		}
		if alloc.Released {
			p.out.WriteString(", released")
		}
		if alloc.Control != nil {
			p.out.WriteString("," + controlText(alloc.Control))
			if alloc.Obeyed == alloc.Control.Seq {
				p.out.WriteString(" and does so")
			}
		}
		if alloc.Quarantined {
			p.out.WriteString(", in quarantine")
		}
		if h := alloc.Hold; h != nil {
			fmt.Fprintf(&p.out, ", held for %s over=%v freed=%v devices=%d", h.For, h.Over, h.Freed, len(alloc.Devices))
		}
		p.out.WriteString("\n")
	}
}

func controlText(c *structs.Control) string {
	text := " is to run"
	if c.Paused {
		text = " is to stand still"
	}
	if c.Throttled() {
		text += fmt.Sprintf(" %s of %s", c.Busy, c.Busy+c.Idle)
	}
	return text
}
