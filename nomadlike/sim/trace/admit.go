package trace

import (
	"fmt"
	"time"

	"nomadlike/nomadlike/structs"
)

// deviceKind is what the devices of replayed nodes are called.
const deviceKind = "sim/gpu"

// bagDevicesMax is up to how many devices a bag counts them one by one; a
// larger bag counts cores instead, because no real node has so many.
const bagDevicesMax = 1024

// nodeMemory is more than any replayed job asks for.
const nodeMemory = 1 << 40

// admit makes a task of each job that can run at all and counts the others.
func (r *replay) admit(jobs []Job) {
	r.tasks = make([]*task, 0, len(jobs))
	byName, shapes := r.poolsByName(), make(map[[2]int]*structs.Job)
	for i := range jobs {
		job := &jobs[i]
		pool, ok := byName[job.Group]
		if !ok {
			pool, ok = byName[""]
		}
		if !ok {
			r.homeless++
			continue
		}
		size := r.sizeOf(job)
		if size < 1 || size > r.pools[pool].Nodes*r.pools[pool].GPUs || job.Duration < 0 {
			r.dropped[pool]++
			continue
		}
		shape, ok := shapes[[2]int{pool, size}]
		if !ok {
			shape = r.shape(pool, size)
			shapes[[2]int{pool, size}] = shape
		}
		t := &task{trace: job, job: r.named(shape, job, len(r.tasks)), pool: pool, size: size, remain: job.Duration, first: -1, end: -1}
		r.tasks = append(r.tasks, t)
		r.byID[t.job.ID] = t
	}
}

func (r *replay) poolsByName() map[string]int {
	byName := make(map[string]int, len(r.pools))
	for i, pool := range r.pools {
		byName[pool.Name] = i
	}
	return byName
}

// sizeOf is how many devices a job holds. A trace in which nobody asks for
// devices is one of processors.
func (r *replay) sizeOf(job *Job) int {
	if r.processors {
		return job.CPUs
	}
	return job.GPUs
}

// shape is all of a job that placement reads: jobs of one pool and size share it.
func (r *replay) shape(pool, size int) *structs.Job {
	spec := structs.Resources{Devices: []structs.DeviceRequest{{Kind: deviceKind, Count: size}}}
	nodes, each := 1, r.pools[pool].GPUs
	switch {
	case r.options.Place == PlaceFungible && bagOfCores(r.pools[pool]):
		spec = structs.Resources{CPU: float64(size)}
	case r.options.Place != PlaceFungible && size > each:
		nodes = (size + each - 1) / each
		spec.Devices[0].Count, spec.LastDevices = each, size%each
	}
	return &structs.Job{
		Project: "trace", Type: structs.JobTypeTraining, Priority: structs.PriorityNormal, Nodes: nodes,
		Distributed: structs.Distributed{Mode: structs.ModeNone}, Resources: []structs.Resources{spec},
		Placement: structs.Placement{Pool: poolName(pool)}, Task: structs.Task{Driver: "exec"},
	}
}

func bagOfCores(pool Pool) bool { return pool.Nodes*pool.GPUs > bagDevicesMax }

// named returns a shape with the identity of one job. Ids rise with submission. A limit
// bounds every estimate, so that a true one makes the estimate exact; nobody
// enforces limits here, which some runs of real traces pass.
func (r *replay) named(shape *structs.Job, traced *Job, number int) *structs.Job {
	job := *shape
	job.ID = fmt.Sprintf("job-%07d", number)
	job.Name, job.User = job.ID, traced.User
	if traced.Name != "" {
		job.Name = fmt.Sprintf("%s-%d", traced.Name, number)
	}
	job.TimeLimit = structs.Duration(traced.Limit)
	if r.options.Estimate == EstimateTrue {
		job.TimeLimit = structs.Duration(max(traced.Duration, time.Second))
	}
	job.SubmittedAt = origin.Add(traced.Submit)
	return &job
}

// poolName names a pool inside the cluster, where names have rules that the
// groups of traces do not keep.
func poolName(pool int) string { return fmt.Sprintf("pool-%04d", pool) }

// nodes makes the machines of all pools. Their names count up, so that the
// order of nodes is that of the pools file.
func (r *replay) nodes() []*structs.Node {
	var all []*structs.Node
	for i, pool := range r.pools {
		count, gpus, cores := pool.Nodes, pool.GPUs, 1
		if r.options.Place == PlaceFungible {
			count, gpus = 1, pool.Nodes*pool.GPUs
			if bagOfCores(pool) {
				gpus, cores = 0, gpus
			}
		}
		for k := range count {
			all = append(all, machine(i, k, gpus, cores))
		}
	}
	return all
}

// machine is one node with so many devices.
func machine(pool, number, gpus, cores int) *structs.Node {
	name := fmt.Sprintf("pool-%04d-n%06d", pool, number)
	node := &structs.Node{
		ID: name, Name: name, Addr: "10.0.0.1", RPCAddr: "10.0.0.1:4646", Version: "sim", Incarnation: 1,
		Pool: poolName(pool), OwnPool: poolName(pool), Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: float64(cores), Memory: nodeMemory, PortMin: 20000, PortMax: 29999},
		Status:   structs.NodeReady, Eligibility: structs.NodeEligible,
	}
	for i := range gpus {
		node.Devices = append(node.Devices, structs.Device{ID: fmt.Sprintf("%s-g%04d", name, i), Index: i, Kind: deviceKind, Healthy: true})
	}
	return node
}
