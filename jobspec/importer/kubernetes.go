package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"nomadlike/nomadlike/structs"
)

// kubeKinds are the kinds that become a job, with what reads them.
var kubeKinds = map[string]func(k *kube, spec *object){
	"PyTorchJob": readPyTorchJob, "TFJob": readTFJob, "MPIJob": readMPIJob, "Job": readKubeJob,
}

func isKubernetes(name string, src *source) bool {
	if path.Ext(name) != ".yaml" && path.Ext(name) != ".yml" && path.Ext(name) != "" && path.Ext(name) != ".json" {
		return false
	}
	version, sort := false, false
	for _, line := range src.lines {
		version = version || strings.HasPrefix(line, "apiVersion:")
		sort = sort || strings.HasPrefix(line, "kind:")
	}
	return version && sort
}

// kube is a manifest of Kubernetes, as it is read.
type kube struct {
	*draft
	nodes  int
	memory int64
	from   origin
}

// readKubernetes reads the one document of a manifest that is a job, and names the
// others.
func readKubernetes(d *draft) {
	all, ok := d.documents()
	if !ok {
		return
	}
	var chosen *yaml.Node
	for _, node := range all {
		o := d.object(node, "")
		sort, from, _ := o.text("kind")
		switch {
		case kubeKinds[sort] == nil:
			if from.line == 0 {
				from = origin{line: max(node.Line, 1)}
			}
			d.say(lost, from, "import.kube.document", "kind", sort)
		case chosen != nil:
			d.refuse(from.line, "import.kube.several", "line", max(chosen.Line, 1))
			return
		default:
			chosen = node
		}
	}
	if chosen == nil {
		d.refuse(1, "import.kube.none")
		return
	}
	top := d.object(chosen, "")
	k := &kube{draft: d}
	sort, from, _ := top.text("kind")
	_, _, _ = top.text("apiVersion")
	k.from = from
	k.metadata(top.inner("metadata"))
	spec := top.inner("spec")
	kubeKinds[sort](k, spec)
	spec.rest()
	top.says(needless, "import.kube.status", "status")
	top.rest()
	if k.nodes > 1 {
		k.say(check, origin{}, "import.kube.gang")
	}
	if len(d.problems) == 0 && !d.job.inner("task", "").has("command") {
		d.refuse(from.line, "import.kube.no_command")
	}
}

func (k *kube) metadata(o *object) {
	if name, from, ok := o.text("name"); ok && k.opts.Name == "" {
		k.name(name, from)
	}
	if name, from, ok := o.text("generateName"); ok && k.opts.Name == "" && !o.used["name"] {
		k.name(strings.TrimSuffix(name, "-"), from)
	}
	if space, from, ok := o.text("namespace"); ok {
		k.project(space, from)
	}
	labels := o.inner("labels")
	if queue, from, ok := labels.text("kueue.x-k8s.io/queue-name"); ok {
		k.pool(queue, from)
	}
	labels.says(needless, "import.kube.labels", labels.keys...)
	o.says(needless, "import.kube.labels", "annotations", "creationTimestamp", "uid", "resourceVersion", "generation", "managedFields")
	o.rest()
}

func (k *kube) pool(text string, from origin) {
	pool := nameOf(text)
	if k.job.inner("placement", "").has("pool") {
		k.say(lost, from, "import.kube.pool_twice")
		return
	}
	k.job.inner("placement", "").set("pool", literal(pool), from)
	k.say(check, from, "import.pool", "name", pool)
}

// policy reads the run policy of a training's manifest.
func (k *kube) policy(spec *object) {
	policy := spec.inner("runPolicy")
	k.limits(policy)
	policy.rest()
}

// limits reads what a job or its runPolicy says of time and restarts.
func (k *kube) limits(o *object) {
	if seconds, from, ok := o.whole("activeDeadlineSeconds"); ok && seconds > 0 {
		k.job.set("time_limit", span(time.Duration(seconds)*time.Second), from)
	}
	if times, from, ok := o.whole("backoffLimit"); ok && times > 0 {
		k.restarts(times, from)
	}
	if text, from, ok := o.text("suspend"); ok {
		if text == "true" {
			k.say(lost, from, "import.slurm.hold")
		} else {
			k.say(needless, from, "import.slurm.needless")
		}
	}
	o.says(needless, "import.kube.ttl", "ttlSecondsAfterFinished", "cleanPodPolicy")
	scheduling := o.inner("schedulingPolicy")
	if queue, from, ok := scheduling.text("queue"); ok {
		k.pool(queue, from)
	}
	scheduling.says(needless, "import.slurm.gang", "minAvailable", "minResources", "scheduleTimeoutSeconds")
	scheduling.says(lost, "import.slurm.priority", "priorityClass")
	scheduling.rest()
}

func (k *kube) restarts(times int, from origin) {
	k.job.inner("restart", "").set("max_restarts", number(min(times, structs.RestartsMax)), from)
}

// setNodes sets how many nodes there are.
func (k *kube) setNodes(n int, from origin) {
	k.nodes = min(max(n, 1), structs.NodesMax)
	if k.nodes > 1 {
		k.job.set("nodes", number(k.nodes), from)
	}
}

// replica is one kind of ranks.
type replica struct {
	name  string
	count int
	from  origin
	spec  *object
}

func (k *kube) replicas(specs *object) []replica {
	var all []replica
	for _, name := range specs.keys {
		spec := specs.inner(name)
		r := replica{name, 1, specs.origin(name), spec}
		if n, from, ok := spec.whole("replicas"); ok {
			r.count, r.from = n, from
		}
		spec.says(needless, "import.kube.restart", "restartPolicy")
		all = append(all, r)
	}
	return all
}

// templates takes the pod of the first kind of ranks for all of them, and says where
// the others differ.
func (k *kube) templates(all []replica) {
	for i, r := range all {
		if i == 0 {
			k.pod(r.spec.inner("template"))
		} else if template, ok := r.spec.at["template"]; ok {
			r.spec.used["template"] = true
			if !alike(all[0].spec.at["template"], template, new(int)) {
				k.say(lost, r.spec.origin("template"), "import.kube.differs", "name", r.name, "first", all[0].name)
			}
		}
		r.spec.rest()
	}
}

// alike reports whether two nodes say the same.
func alike(a, b *yaml.Node, steps *int) bool {
	a, b = resolved(a), resolved(b)
	if *steps++; *steps > yamlNodesMax || a == nil || b == nil {
		return false
	}
	return a.Kind == b.Kind && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, func(x, y *yaml.Node) bool { return alike(x, y, steps) })
}

func sum(all []replica) (n int, from origin) {
	for _, r := range all {
		n, from = n+r.count, r.from
	}
	return n, from
}

// first puts the kinds of ranks of that name in front.
func first(all []replica, name string) []replica {
	slices.SortStableFunc(all, func(a, b replica) int {
		switch {
		case a.name == b.name:
			return 0
		case a.name == name:
			return -1
		case b.name == name:
			return 1
		}
		return 0
	})
	return all
}

func readPyTorchJob(k *kube, spec *object) {
	k.policy(spec)
	all := first(k.replicas(spec.inner("pytorchReplicaSpecs")), "Worker")
	mode := k.job.inner("distributed", string(structs.ModePyTorch))
	mode.from = k.from
	mode.set("rewrite", literal(structs.RewriteNone))
	k.setNodes(sum(all))
	if text, from, ok := spec.text("nprocPerNode"); ok {
		if n, ok := slurmCount(text); ok {
			mode.set("procs_per_node", number(n), from)
		} else {
			k.say(changed, from, "import.kube.procs")
		}
	}
	elastic := spec.inner("elasticPolicy")
	if least, from, ok := elastic.whole("minReplicas"); ok && least > 0 && least < k.nodes {
		block := k.job.inner("elastic", "")
		block.set("min_nodes", number(least), from)
		block.set("by", literal(string(structs.ElasticByTorchrun)))
	}
	elastic.says(needless, "import.kube.elastic", elastic.keys...)
	k.templates(all)
}

func readTFJob(k *kube, spec *object) {
	k.policy(spec)
	k.job.inner("distributed", string(structs.ModeTensorFlow)).from = k.from
	mode := k.job.inner("distributed", string(structs.ModeTensorFlow))
	var workers []replica
	for _, r := range first(k.replicas(spec.inner("tfReplicaSpecs")), "Worker") {
		switch r.name {
		case "PS":
			if r.count > 0 {
				mode.set("parameter_servers", number(r.count), r.from)
			}
			r.spec.says(changed, "import.kube.servers", "template")
			r.spec.rest()
		case "Chief", "Master":
			mode.set("chief", "true", r.from)
			workers = append(workers, r)
		case "Evaluator":
			k.say(lost, r.from, "import.kube.evaluator")
			r.spec.used["template"] = true
		default:
			workers = append(workers, r)
		}
	}
	k.setNodes(sum(workers))
	k.templates(workers)
	spec.says(lost, "import.params.success", "successPolicy")
}

func readMPIJob(k *kube, spec *object) {
	k.policy(spec)
	all := first(k.replicas(spec.inner("mpiReplicaSpecs")), "Worker")
	mode := k.job.inner("distributed", string(structs.ModeMPI))
	mode.from = k.from
	if n, from, ok := spec.whole("slotsPerWorker"); ok && n > 0 {
		mode.set("procs_per_node", number(n), from)
	}
	for i, r := range all {
		k.pod(r.spec.inner("template")) // the launcher's command is that of rank 0
		r.spec.rest()
		if i == 0 {
			k.setNodes(r.count, r.from)
		}
	}
	k.say(changed, origin{}, "import.kube.launcher")
	spec.says(needless, "import.kube.launcher_detail", "mpiImplementation", "sshAuthMountPath", "launcherCreationPolicy", "runLauncherAsWorker", "cleanPodPolicy")
}

// readKubeJob reads a Job of batch/v1, or one of Volcano.
func readKubeJob(k *kube, spec *object) {
	if _, volcano := spec.at["tasks"]; volcano {
		readVolcanoJob(k, spec)
		return
	}
	k.limits(spec)
	if times, from, ok := spec.whole("completions"); ok && times > 1 {
		k.job.set("type", literal(string(structs.JobTypeBatch)), from)
		k.job.inner("batch", "").set("count", number(times), from)
		k.say(changed, from, "import.kube.completions")
	}
	spec.says(lost, "import.kube.parallelism", "parallelism")
	spec.says(needless, "import.kube.labels", "completionMode", "selector", "manualSelector")
	k.pod(spec.inner("template"))
}

func readVolcanoJob(k *kube, spec *object) {
	if queue, from, ok := spec.text("queue"); ok {
		k.pool(queue, from)
	}
	if times, from, ok := spec.whole("maxRetry"); ok && times > 0 {
		k.restarts(times, from)
	}
	var all []replica
	for _, task := range spec.list("tasks") {
		name, from, _ := task.text("name")
		r := replica{name, 1, from, task}
		if n, at, ok := task.whole("replicas"); ok {
			r.count, r.from = n, at
		}
		task.says(needless, "import.slurm.gang", "minAvailable")
		task.says(lost, "import.kube.policies", "policies", "dependsOn", "maxRetry")
		all = append(all, r)
	}
	plugins := spec.inner("plugins")
	mode := structs.ModeNone
	for plugin, of := range map[string]structs.Mode{"pytorch": structs.ModePyTorch, "tensorflow": structs.ModeTensorFlow, "mpi": structs.ModeMPI} {
		if _, ok := plugins.at[plugin]; ok {
			mode = of
		}
	}
	plugins.says(changed, "import.kube.plugins", plugins.keys...)
	if mode == structs.ModeMPI && len(all) > 1 { // the master's command is that of rank 0
		slices.SortStableFunc(all, func(a, b replica) int { return a.count - b.count })
		k.setNodes(all[len(all)-1].count, all[len(all)-1].from)
		for i := range all {
			r := all[len(all)-1-i]
			k.pod(r.spec.inner("template"))
			r.spec.rest()
		}
	} else {
		slices.SortStableFunc(all, func(a, b replica) int { return b.count - a.count })
		k.setNodes(sum(all))
		k.templates(all)
	}
	if k.nodes > 1 {
		k.job.inner("distributed", string(mode))
		if mode == structs.ModePyTorch {
			k.job.inner("distributed", string(mode)).set("rewrite", literal(structs.RewriteNone))
		}
	}
	spec.says(needless, "import.slurm.gang", "minAvailable", "minSuccess", "schedulerName")
	spec.says(needless, "import.kube.ttl", "ttlSecondsAfterFinished")
	spec.says(lost, "import.slurm.priority", "priorityClassName")
	spec.says(lost, "import.kube.policies", "policies")
}

// quantities are the ends of amounts in Kubernetes.
var quantities = []struct {
	end    string
	factor float64
}{
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"m", 1e-3},
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
	{"P", 1e15},
	{"", 1},
}

// quantity reads an amount: 500m, 64, 256Gi, 1G.
func quantity(text string) (float64, bool) {
	for _, unit := range quantities {
		if digits, found := strings.CutSuffix(text, unit.end); found {
			n, err := strconv.ParseFloat(digits, 64)
			return n * unit.factor, err == nil && n >= 0 && n < 1e18
		}
	}
	return 0, false
}
