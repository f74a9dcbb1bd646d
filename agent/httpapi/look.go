package httpapi

import (
	"context"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// Bounds of a look for the data of a job before it is admitted.
const (
	lookPatience = 3 * time.Second
	lookNodesMax = 512 // asked in all
	lookAtOnce   = 32
	lookNamesMax = 5 // named to people
)

// lookForData asks nodes that might run a job whether their storages have its data.
// One that has it, or cannot tell, is enough to let the job in: it may change until
// the start. What every one of them lacks is returned, with the nodes that said so.
// The outputs in which something lies are those that the first node knows of.
func (h *submissionHandlers) lookForData(ctx context.Context, job *structs.Job, user string) (missing []structs.DataLack, names []string, kept []structs.DataKept) {
	if len(job.Algorithms)+len(job.Datasets)+len(job.Models)+len(job.Volumes) == 0 && job.Output == "" {
		return nil, nil, nil
	}
	var nodes []*structs.Node
	for node := range h.store.Snapshot().Nodes() {
		if node.Status != structs.NodeReady || node.RPCAddr == "" || feasible.NodeProblem(job, node) != nil || job.NamesData() && feasible.AgentProblem(job, node) != nil {
			continue
		}
		if len(nodes) == lookNodesMax {
			return nil, nil, nil // another may have it
		}
		nodes = append(nodes, node)
	}
	if len(nodes) == 0 {
		return nil, nil, nil // the scheduler tells it
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	wanted := dataOnly(job, user)
	first := h.askForData(ctx, nodes[0], wanted) // mostly it has all
	lacks := first.Lacks
	if len(lacks) == 0 {
		return nil, nil, first.Kept
	}
	var others struct {
		sync.WaitGroup
		sync.Mutex
		have map[string]bool
	}
	others.have = make(map[string]bool)
	room := make(chan struct{}, lookAtOnce)
	for _, node := range nodes[1:] {
		room <- struct{}{}
		others.Go(func() {
			defer func() { <-room }()
			own := h.askForData(ctx, node, wanted).Lacks
			others.Lock()
			defer others.Unlock()
			for _, lack := range lacks {
				if !lacksToo(own, lack) {
					others.have[lack.Kind+"/"+lack.Name] = true
				}
			}
		})
	}
	others.Wait()
	for _, lack := range lacks {
		if !others.have[lack.Kind+"/"+lack.Name] {
			missing = append(missing, lack)
		}
	}
	for i, node := range nodes {
		if i == lookNamesMax {
			names = append(names, "…")
			break
		}
		names = append(names, node.Name)
	}
	return missing, names, first.Kept
}

// dataOnly is as much of a job as tells where its data lies. Nodes are asked that
// may never run the job, so they hear of nothing else: its environment least of all.
func dataOnly(job *structs.Job, user string) *structs.Job {
	return &structs.Job{
		Name: job.Name, Project: job.Project, User: user,
		Algorithms: job.Algorithms, Datasets: job.Datasets, Models: job.Models, Volumes: job.Volumes,
		Output: job.Output, OutputStorage: job.OutputStorage,
	}
}

func lacksToo(lacks []structs.DataLack, one structs.DataLack) bool {
	for _, lack := range lacks {
		if lack.Kind == one.Kind && lack.Name == one.Name {
			return true
		}
	}
	return false
}

// askForData asks one node; nothing is lacking when it has all of it, or cannot tell.
func (h *submissionHandlers) askForData(ctx context.Context, node *structs.Node, job *structs.Job) structs.DataSeen {
	conn, err := h.calls.of(node)
	if err != nil {
		return structs.DataSeen{}
	}
	seen, err := rpc.Call[structs.DataLook, structs.DataSeen](ctx, conn, structs.MethodNodeLook, &structs.DataLook{Job: job})
	switch {
	case err != nil:
		return structs.DataSeen{}
	case seen.Unknown:
		return structs.DataSeen{Kept: seen.Kept}
	}
	return *seen
}

// dataProblems is what is missing as problems of the job file, with the name in the
// catalogue that was probably meant.
func (h *submissionHandlers) dataProblems(job *structs.Job, user string, missing []structs.DataLack, nodes []string) []structs.Problem {
	var problems []structs.Problem
	for _, lack := range missing {
		path := dataPath(job, lack.Kind, lack.Name)
		problem := structs.Problem{Path: path, ID: "agent.data_missing", HintID: "agent.data_missing.hint", Params: map[string]string{
			"path": path, "kind": lack.Kind, "name": lack.Name, "storage": lack.Storage, "place": lack.Path,
			"cause": lack.Cause.Params["cause"], "nodes": strings.Join(nodes, ", "),
		}}
		if near := server.NearestData(h.store.Snapshot(), job.Project, user, job.Project, lack.Kind, lack.Name); near != "" {
			problem.HintID, problem.Params["near"] = "agent.data_missing_near.hint", near
		}
		problems = append(problems, problem)
	}
	return problems
}

// dataPath is where the job file names some data.
func dataPath(job *structs.Job, kind, name string) string {
	for kept, refs := range map[string][]structs.DataRef{
		structs.StorageAlgorithm: job.Algorithms, structs.StorageDataset: job.Datasets, structs.StorageModel: job.Models, structs.StorageVolume: job.Volumes,
	} {
		for i := range refs {
			if kept == kind && refs[i].Name == name {
				return structs.IndexedPath(kind, i)
			}
		}
	}
	return kind
}

// outputProblems is which outputs of a job are not empty, as doubts about the job file.
func outputProblems(kept []structs.DataKept) []structs.Problem {
	var problems []structs.Problem
	for _, one := range kept {
		problems = append(problems, structs.Problem{
			Path: "output", ID: "agent.output_kept", HintID: "agent.output_kept.hint",
			Params: map[string]string{"name": one.Name, "path": "output", "storage": one.Storage, "place": one.Path, "own": structs.LaterShortID},
		})
	}
	return problems
}
