package launch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func job(mode structs.Mode, nodes int, command string) *structs.Job {
	return &structs.Job{
		ID: "0123456789abcdef", Name: "digits", Project: "vision", Nodes: nodes,
		Distributed: structs.Distributed{Mode: mode},
		Resources:   []structs.Resources{{CPU: 2, Memory: structs.GiB}},
		Task:        structs.Task{Driver: "exec", Command: command},
	}
}

// input places job as attempt 2, with the rendezvous port 20017 on rank 0.
func input(j *structs.Job, rank int) Input {
	var members []structs.Member
	for r := range j.RanksOf(j.Nodes) {
		m := structs.Member{
			Rank: r, Name: structs.RankName(j, 0, 2, r), AllocID: fmt.Sprintf("alloc-%d", r),
			NodeID: fmt.Sprintf("node-%d", r), NodeName: fmt.Sprintf("n%d", r+1), Addr: fmt.Sprintf("10.77.0.%d", r+1),
		}
		if j.IsServer(r) { // beside a worker
			m.NodeID, m.NodeName = fmt.Sprintf("node-%d", r%j.Nodes), fmt.Sprintf("n%d", r%j.Nodes+1)
			m.Addr, m.Ports = fmt.Sprintf("10.77.0.%d", r%j.Nodes+1), map[string]int{structs.MasterPortName: 20040 + r}
		} else if len(j.PortRequests(j.SpecAt(0), r)) > 0 {
			m.Ports = map[string]int{structs.MasterPortName: 20017}
		}
		members = append(members, m)
	}
	return Input{
		Job: j,
		Alloc: &structs.Allocation{
			ID: members[rank].AllocID, JobID: j.ID, JobName: j.Name, Attempt: 2, Rank: rank,
			Name: members[rank].Name, Spec: j.SpecOf(0, rank, j.RanksOf(j.Nodes)), Ports: members[rank].Ports,
		},
		Members: members,
		Node: NodeFacts{
			TaskDir: "/var/lib/nomadlike/alloc/a/task", SecretsDir: "/var/lib/nomadlike/alloc/a/secrets",
			AgentPath: "/usr/bin/nomadlike", Interface: "eth0", Network: "10.77.0.0/24", PrivateHosts: true,
			Env:      map[string]string{"NOMADLIKE_RSH_SOCKET": "/run/x.sock"},
			Defaults: map[string]string{"PATH": "/usr/bin:/bin"},
		},
	}
}

// dlws is a job of somebody who comes from DLWS.
func dlws(command string) *structs.Job {
	j := job(structs.ModeHorovod, 2, command)
	j.User, j.Distributed.Emulate = "li", structs.EmulateDLWS
	return j
}

// spread is a job of two nodes with two cards each: n processes of each, or, for 0,
// one for each card by the word for any command.
func spread(mode structs.Mode, command string, n int) *structs.Job {
	j := job(mode, 2, command)
	j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "huawei/npu", Count: 2}}
	if j.Distributed.ProcsPerNode = n; n == 0 {
		j.Distributed.Rewrite = structs.RewriteProcs
	}
	return j
}

// told writes a Launch for people; without common, what every mode sets alike
// is left out.
func told(t *testing.T, out Launch, common bool) string {
	t.Helper()
	var b strings.Builder
	if out.Hold {
		b.WriteString("hold\n")
	} else {
		fmt.Fprintf(&b, "command %s\n", structs.JoinCommand(out.Command))
	}
	for _, dir := range out.PathFirst {
		fmt.Fprintf(&b, "before PATH %s\n", dir)
	}
	fmt.Fprintf(&b, "host name %s\ndirectory %s\n", out.Hostname, out.Dir)
	for _, line := range out.Hosts {
		fmt.Fprintf(&b, "hosts %s\n", line)
	}
	for _, line := range out.Environ() {
		if common || !strings.HasPrefix(line, "NOMADLIKE_") {
			fmt.Fprintf(&b, "env %s\n", line)
		}
	}
	for _, view := range out.Views {
		fmt.Fprintf(&b, "view %s -> %s\n", view.Path, view.File)
	}
	for _, link := range out.Links {
		fmt.Fprintf(&b, "link %s -> %s\n", link.Path, link.Target)
	}
	for _, file := range out.Files {
		fmt.Fprintf(&b, "file %s %04o\n", file.Path, file.Mode)
		for line := range strings.Lines(file.Content) {
			b.WriteString("  | " + line)
		}
	}
	for _, note := range out.Notes {
		fmt.Fprintf(&b, "note %s\n", messages.Text(messages.English, note.ID, note.Params))
		if !messages.Has(messages.Chinese, note.ID) {
			t.Errorf("no Chinese text for %s", note.ID)
		}
	}
	return b.String()
}

// TestGoldens shows what runs on each kind of rank in each mode.
func TestGoldens(t *testing.T) {
	devices := func(j *structs.Job) *structs.Job {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 4}}
		return j
	}
	with := func(j *structs.Job, change func(*structs.Job)) *structs.Job {
		change(j)
		return j
	}
	rankTable := func(form string, nodes int) *structs.Job {
		j := job(structs.ModeMindSpore, nodes, "msrun --worker_num=$MS_WORKER_NUM --local_worker_num=$MS_LOCAL_WORKER --master_addr=$MS_SCHED_HOST --master_port=$MS_SCHED_PORT --node_rank=$MS_NODE_RANK train.py")
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "huawei/npu", Count: 2}}
		j.Distributed.RankTable = form
		return j
	}
	cases := []struct {
		name   string
		job    *structs.Job
		ranks  []int
		cards  bool
		common bool
		node   func(*NodeFacts)
		ports  map[string]int
	}{
		{name: "single", common: true, job: job(structs.ModeSingle, 1, `echo "hello $NOMADLIKE_JOB_NAME" '$HOME' "$HOME"`), ranks: []int{0}},
		{name: "none-three-nodes", common: true, job: job(structs.ModeNone, 3, "hostname"), ranks: []int{0, 2}},
		{name: "batch", common: true, job: with(job(structs.ModeSingle, 1, "true"), func(j *structs.Job) {
			j.Batch = &structs.Batch{Count: 3}
			j.Resources[0].Ports = []structs.PortRequest{{Name: "http-api"}}
		}), ranks: []int{0}, ports: map[string]int{"http-api": 20001}},
		{name: "pytorch-cpu", job: job(structs.ModePyTorch, 3, "python3 train.py --epochs 5"), ranks: []int{0, 2}},
		{name: "pytorch-devices", job: devices(job(structs.ModePyTorch, 2, "python -u train.py")), ranks: []int{0, 1}},
		{name: "pytorch-devices-procs", job: with(devices(job(structs.ModePyTorch, 2, "python -u train.py")), func(j *structs.Job) {
			j.Distributed.WorldSize = structs.WorldSizeProcs
		}), ranks: []int{1}},
		{name: "pytorch-one-node", job: devices(job(structs.ModePyTorch, 1, "python train.py")), ranks: []int{0}},
		{name: "pytorch-torchrun", job: with(job(structs.ModePyTorch, 2, "python -m pkg.train --lr 1"), func(j *structs.Job) {
			j.Distributed.Rewrite = structs.RewriteTorchrun
			j.Distributed.ProcsPerNode = 2
		}), ranks: []int{1}},
		{name: "pytorch-as-typed", job: with(job(structs.ModePyTorch, 2,
			"torchrun --nnodes $PET_NNODES --node_rank ${RANK} --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train.py"), func(j *structs.Job) {
			j.Task.Env = map[string]string{"MASTER_PORT": "1", "LR": "0.1", "NCCL_SOCKET_IFNAME": "ib0"}
		}), ranks: []int{1}},
		{name: "pytorch-addresses", job: job(structs.ModePyTorch, 2, "python train.py"), ranks: []int{1}, node: func(n *NodeFacts) {
			n.PrivateHosts, n.Interface, n.Network = false, "", ""
		}},
		{name: "mpi", common: true, job: job(structs.ModeMPI, 3, "mpirun -n 3 ./pi"), ranks: []int{0, 1}},
		{name: "mpi-prefix-devices", common: true, job: devices(job(structs.ModeMPI, 2, "python3 train.py")), ranks: []int{0}},
		{
			name: "mpi-shared-dir", common: true, job: with(job(structs.ModeMPI, 2, "mpiexec.hydra -n 2 ./pi"), func(j *structs.Job) { j.Task.Dir = "code" }),
			ranks: []int{0, 1}, node: func(n *NodeFacts) { n.SharedDir = "/run/nomadlike" },
		},
		{name: "code", common: true, job: job(structs.ModePyTorch, 1, "python train.py"), ranks: []int{0}, node: func(n *NodeFacts) { n.CodeDir = "/workspace/code" }},
		{name: "code-dir", job: with(job(structs.ModeNone, 1, "python train.py"), func(j *structs.Job) { j.Task.Dir = "src/nets" }), ranks: []int{0}, node: func(n *NodeFacts) {
			n.CodeDir = "/workspace/code"
		}},
		{name: "mpi-code-shared-dir", common: true, job: with(job(structs.ModeMPI, 2, "mpirun -n 2 ./pi"), func(j *structs.Job) { j.Task.Dir = "src" }), ranks: []int{1}, node: func(n *NodeFacts) {
			n.SharedDir, n.CodeDir = "/run/nomadlike", n.TaskDir+"/code"
		}},
		{name: "mpi-code-view", job: job(structs.ModeMPI, 2, "mpirun -n 2 ./pi"), ranks: []int{1}, node: func(n *NodeFacts) {
			n.SharedDir, n.CodeDir = "/run/nomadlike", "/workspace/code"
		}},
		{name: "horovod", job: devices(job(structs.ModeHorovod, 4, "python /workspace/algorithm/train.py")), ranks: []int{0, 3}},
		{name: "horovod-as-typed", job: job(structs.ModeHorovod, 2, "mpirun -np 2 python train.py"), ranks: []int{0}},
		{name: "horovod-own-log", job: with(job(structs.ModeHorovod, 2, "python train.py"), func(j *structs.Job) {
			j.Task.Env = map[string]string{"NCCL_DEBUG": "WARN"}
		}), ranks: []int{0}},
		{name: "horovod-one-node", job: devices(job(structs.ModeHorovod, 1, "python train.py")), ranks: []int{0}},
		{name: "deepspeed", job: devices(job(structs.ModeDeepSpeed, 2, "deepspeed train.py --deepspeed --deepspeed_config ds_config.json")), ranks: []int{0, 1}},
		{name: "deepspeed-one-node", job: devices(job(structs.ModeDeepSpeed, 1, "deepspeed train.py")), ranks: []int{0}},
		{name: "deepspeed-pdsh", job: with(job(structs.ModeDeepSpeed, 2, "deepspeed train.py"), func(j *structs.Job) {
			j.Distributed.Launcher = structs.LauncherPDSH
			j.Task.Env = map[string]string{"NCCL_IB_TIMEOUT": "22"}
		}), ranks: []int{0, 1}},
		{name: "tensorflow", job: job(structs.ModeTensorFlow, 3, "python train.py"), ranks: []int{0, 2}},
		{name: "tensorflow-chief", job: with(job(structs.ModeTensorFlow, 3, "python train.py"), func(j *structs.Job) { j.Distributed.Chief = true }), ranks: []int{0, 2}},
		{name: "pytorch-range", job: with(job(structs.ModePyTorch, 3, "python train.py"), func(j *structs.Job) { j.Elastic = &structs.Elastic{MinNodes: 2, By: structs.ElasticByTorchrun} }), ranks: []int{0, 2}},
		{name: "pytorch-range-torchrun", job: with(job(structs.ModePyTorch, 3, "torchrun train.py"), func(j *structs.Job) {
			j.Distributed.MinNodes, j.Distributed.ProcsPerNode = 2, 4
			j.Task.Env = map[string]string{"PET_MAX_RESTARTS": "10", "PET_NNODES": "3"}
		}), ranks: []int{1}},
		{name: "tensorflow-ps", job: with(job(structs.ModeTensorFlow, 2, "python train.py"), func(j *structs.Job) { j.Distributed.ParameterServers = 3 }), ranks: []int{0, 1, 2, 4}},
		{name: "tensorflow-ps-chief", job: with(job(structs.ModeTensorFlow, 2, "python train.py"), func(j *structs.Job) {
			j.Distributed.ParameterServers, j.Distributed.Chief = 1, true
			j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 2}}
		}), ranks: []int{0, 1, 2}},
		{name: "tensorflow-ps-one-node", job: with(job(structs.ModeTensorFlow, 1, "python train.py"), func(j *structs.Job) { j.Distributed.ParameterServers = 1 }), ranks: []int{0, 1}},
		{name: "jax", job: devices(job(structs.ModeJAX, 2, "python train.py")), ranks: []int{0, 1}},
		{name: "mindspore-cpu", job: job(structs.ModeMindSpore, 2, "python train.py"), ranks: []int{1}},
		{name: "mindspore-v1.0", job: rankTable("v1.0", 2), ranks: []int{0, 1}, cards: true},
		{name: "mindspore-v1.2", job: rankTable("v1.2", 2), ranks: []int{1}, cards: true},
		{name: "mindspore-group-list", job: rankTable("group_list", 2), ranks: []int{0}, cards: true},
		{name: "mindspore-group-list-short", job: rankTable("group_list_short", 2), ranks: []int{0}, cards: true},
		{name: "dlws", job: dlws("horovodrun -np 4 -hostfile /home/$DLWS_USER_NAME/ib_config -p $DLWS_SD_worker0_SSH_PORT python train.py --logs ~/tensorboard/$DLWS_JOB_ID/logs"), ranks: []int{0, 1}},
		{name: "mindspore-procs", job: spread(structs.ModeMindSpore, "python train.py", 0), ranks: []int{0, 1}, cards: true},
		{
			name: "jax-procs", job: spread(structs.ModeJAX, "python train.py", 0), ranks: []int{1},
			node: func(n *NodeFacts) { n.Env["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b" },
		},
		{name: "procs-as-typed", job: spread(structs.ModeMindSpore, "bash run_2p.sh", 2), ranks: []int{0}},
		{name: "procs-python", job: spread(structs.ModeJAX, "python3 train.py", 3), ranks: []int{1}},
		{name: "mindspore-one-node", job: rankTable("v1.0", 1), ranks: []int{0}, cards: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, rank := range c.ranks {
				in := input(c.job, rank)
				for i := range in.Members {
					for k := range 2 {
						if c.cards {
							in.Members[i].Cards = append(in.Members[i].Cards, structs.Card{
								ID: fmt.Sprintf("npu-%d-%d", i, k), Index: k,
								IP: fmt.Sprintf("192.168.%d.%d", 10+10*k, i+1), SuperID: fmt.Sprint(4*i + k), SuperPod: "0",
							})
						}
					}
				}
				if c.node != nil {
					c.node(&in.Node)
				}
				if c.ports != nil {
					in.Alloc.Ports = c.ports
				}
				out, err := Build(in)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "# rank %d of %s: %s\n%s\n", rank, c.name, c.job.Task.Command, told(t, out, c.common))
			}
			golden.Assert(t, "testdata/"+c.name+".txt", b.String())
		})
	}
}

// TestPyTorchCommands holds the rules of what is rewritten and what stays as
// typed. OPTIONS stands for the five options of the launcher.
func TestPyTorchCommands(t *testing.T) {
	const launch, run = "torch.distributed.launch OPTIONS", "torch.distributed.run OPTIONS"
	cases := []struct {
		command, rewrite, want, note string
	}{
		{command: "python train.py", want: "python -m " + launch + " train.py"},
		{command: "python3 train.py --lr 0.1", want: "python3 -m " + launch + " train.py --lr 0.1"},
		{command: "python3.11 train.py", want: "python3.11 -m " + launch + " train.py"},
		{command: "python -u train.py", want: "python -u -m " + launch + " train.py"},
		{command: "python -u -W ignore -X dev train.py", want: "python -u -W ignore -X dev -m " + launch + " train.py"},
		{command: "python -Wignore -uB train.py -c 3", want: "python -Wignore -uB -m " + launch + " train.py -c 3"},
		{command: "python -BW ignore train.py", want: "python -BW ignore -m " + launch + " train.py"},
		{command: "python --check-hash-based-pycs never train.py", want: "python --check-hash-based-pycs never -m " + launch + " train.py"},
		{command: "python -m pkg.mod --a b", want: "python -m " + launch + " -m pkg.mod --a b"},
		{command: "python -um pkg.mod", want: "python -u -m " + launch + " -m pkg.mod"},
		{command: "python -mpkg.mod x", want: "python -m " + launch + " -m pkg.mod x"},
		{command: "python train.py", rewrite: "torchrun", want: "python -m " + run + " train.py"},
		{command: "python train.py", rewrite: "none", want: "python train.py"},
		{command: "python -c 'print(1)'", rewrite: "none", want: "python -c 'print(1)'"},
		{command: `python "my train.py" 'a b'`, want: "python -m " + launch + " 'my train.py' 'a b'"},

		{command: "python -m torch.distributed.launch --nproc_per_node 2 t.py", want: "python -m torch.distributed.launch --nproc_per_node 2 t.py", note: "launch.launcher_found"},
		{command: "python -mtorch.distributed.run t.py", want: "python -mtorch.distributed.run t.py", note: "launch.launcher_found"},
		{command: "python -m torch.distributed.run t.py", want: "python -m torch.distributed.run t.py", note: "launch.launcher_found"},
		{command: "python -m accelerate launch t.py", want: "python -m accelerate launch t.py", note: "launch.launcher_found"},
		{command: "python -m accelerate.commands.launch t.py", want: "python -m accelerate.commands.launch t.py", note: "launch.launcher_found"},
		{command: "python -um deepspeed.launcher.runner t.py", want: "python -um deepspeed.launcher.runner t.py", note: "launch.launcher_found"},
		{command: "python -m accelerated.loop t.py", want: "python -m " + launch + " -m accelerated.loop t.py", note: "launch.launcher_substring"},
		{command: "python -m deepspeed t.py", want: "python -m deepspeed t.py", note: "launch.launcher_found"},
		{command: "python /usr/bin/torchrun t.py", want: "python /usr/bin/torchrun t.py", note: "launch.launcher_found"},
		{command: "python run.py mpiexec.hydra", want: "python run.py mpiexec.hydra", note: "launch.launcher_found"},
		{command: "python -m horovodrun", want: "python -m horovodrun", note: "launch.launcher_found"},
		{command: "python x.py mpirun", want: "python x.py mpirun", note: "launch.launcher_found"},
		{command: "python x.py msrun", want: "python x.py msrun", note: "launch.launcher_found"},
		{command: "python /data/mpirun_logs/train.py", want: "python -m " + launch + " /data/mpirun_logs/train.py", note: "launch.launcher_substring"},
		{command: "python deepspeed.py", want: "python -m " + launch + " deepspeed.py", note: "launch.launcher_substring"},
		{command: "python train.py --deepspeed ds.json", want: "python -m " + launch + " train.py --deepspeed ds.json", note: "launch.launcher_substring"},

		{command: "torchrun t.py", want: "torchrun t.py"},
		{command: "bash -c 'python t.py'", want: "bash -c 'python t.py'"},
		{command: "/usr/bin/python3 t.py", want: "/usr/bin/python3 t.py", note: "launch.python_path"},
		{command: "./python t.py", want: "./python t.py", note: "launch.python_path"},
		{command: "pythonista t.py", want: "pythonista t.py"},
		{command: "python", want: "python", note: "launch.python_no_script"},
		{command: "python --version", want: "python --version", note: "launch.python_no_script"},
		{command: "python -", want: "python -", note: "launch.python_no_script"},
	}
	options := "--nproc_per_node=1 --nnodes=2 --node_rank=1 --master_addr=digits-2-0 --master_port=20017"
	for _, c := range cases {
		t.Run(c.command+" "+c.rewrite, func(t *testing.T) {
			j := job(structs.ModePyTorch, 2, c.command)
			j.Distributed.Rewrite = c.rewrite
			out, err := Build(input(j, 1))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := structs.JoinCommand(out.Command), strings.ReplaceAll(c.want, "OPTIONS", options); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			note := ""
			if len(out.Notes) > 0 {
				note = out.Notes[0].ID
			}
			if note != c.note || len(out.Notes) > 1 {
				t.Errorf("notes %v, want %q", out.Notes, c.note)
			}
		})
	}
}

// TestMPICommands: a command with a launcher stays exactly as typed; others
// get one in front.
func TestMPICommands(t *testing.T) {
	const prefix = "mpirun -np 4 --bind-to none "
	cases := []struct{ command, rewrite, want, note string }{
		{command: "./pi", want: prefix + "./pi"},
		{command: "python3 t.py a", want: prefix + "python3 t.py a"},
		{command: "mpirun -np 2 ./pi", want: "mpirun -np 2 ./pi"},
		{command: "/opt/mpi/bin/mpiexec -n 2 ./pi", want: "/opt/mpi/bin/mpiexec -n 2 ./pi"},
		{command: "mpirun.openmpi -n 3 ./pi", want: "mpirun.openmpi -n 3 ./pi"},
		{command: "mpiexec.hydra -n 3 ./pi", want: "mpiexec.hydra -n 3 ./pi"},
		{command: "orterun ./pi", want: "orterun ./pi"},
		{command: "prterun ./pi", want: "prterun ./pi"},
		{command: "env A=1 mpirun ./pi", want: "env A=1 mpirun ./pi"},
		{command: "bash -c 'cd /x && mpirun ./pi'", want: "bash -c 'cd /x && mpirun ./pi'"},
		{command: "sh -c '(mpiexec ./pi)'", want: "sh -c '(mpiexec ./pi)'"},
		{command: "bash -c './pi > /mpirun.log'", want: prefix + "bash -c './pi > /mpirun.log'", note: "launch.launcher_substring"},
		{command: "/data/mpirun_logs/train", want: prefix + "/data/mpirun_logs/train", note: "launch.launcher_substring"},
		{
			command: "deepspeed --hostfile $OMPI_MCA_orte_default_hostfile train.py",
			want:    "deepspeed --hostfile /var/lib/nomadlike/alloc/a/task/.nomadlike/hostfile train.py",
		},
		{command: "mpirun -np $NOMADLIKE_PROCS ./pi", want: "mpirun -np 4 ./pi"},
		{command: "./run.sh", rewrite: "none", want: "./run.sh"},
	}
	for _, c := range cases {
		t.Run(c.command, func(t *testing.T) {
			j := job(structs.ModeMPI, 2, c.command)
			j.Distributed.ProcsPerNode = 2
			j.Distributed.Rewrite = c.rewrite
			out, err := Build(input(j, 0))
			if err != nil {
				t.Fatal(err)
			}
			if got := structs.JoinCommand(out.Command); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			note := ""
			if len(out.Notes) > 0 {
				note = out.Notes[0].ID
			}
			if note != c.note {
				t.Errorf("notes %v, want %q", out.Notes, c.note)
			}
		})
	}
}

// TestRefusals names the message of each thing that cannot be launched.
func TestRefusals(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Input)
		want   string
	}{
		{"python -c on two nodes", func(in *Input) { in.Job.Task.Command = "python -u -c 'import torch'" }, "launch.python_code"},
		{"joined -c", func(in *Input) { in.Job.Task.Command = "python -uc 'import torch'" }, "launch.python_code"},
		{"open quote", func(in *Input) { in.Job.Task.Command = "python 'x" }, "launch.command_unreadable"},
		{"expansion that is no name", func(in *Input) { in.Job.Task.Command = "python ${X:-y}" }, "launch.command_unreadable"},
		{"no command", func(in *Input) { in.Job.Task.Command = "  " }, "launch.command_empty"},
		{"mode of a later time", func(in *Input) { in.Job.Distributed.Mode = "ray" }, "launch.mode_not_available"},
		{"card without an address", func(in *Input) {
			in.Job.Distributed.Mode = structs.ModeMindSpore
			in.Members[0].Cards, in.Members[1].Cards = []structs.Card{{ID: "a"}}, []structs.Card{{ID: "b"}}
		}, "launch.card_address"},
		{"variable with =", func(in *Input) { in.Job.Task.Env = map[string]string{"A=B": "c"} }, "launch.env_name"},
		{"value with NUL", func(in *Input) { in.Job.Task.Env = map[string]string{"A": "c\x00"} }, "launch.env_name"},
		{"rank without a member", func(in *Input) { in.Alloc.Rank = 2 }, "launch.input"},
		{"members out of order", func(in *Input) { in.Members[0], in.Members[1] = in.Members[1], in.Members[0] }, "launch.input"},
		{"no job", func(in *Input) { in.Job = nil }, "launch.input"},
		{"mpi in a directory with a blank", func(in *Input) {
			in.Job.Distributed.Mode, in.Node.TaskDir = structs.ModeMPI, "/var/lib/my data"
		}, "launch.path_unfit"},
		{"mpi without an agent", func(in *Input) { in.Job.Distributed.Mode, in.Node.AgentPath = structs.ModeMPI, "" }, "launch.path_unfit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := input(job(structs.ModePyTorch, 2, "python t.py"), 0)
			c.change(&in)
			_, err := Build(in)
			var e *structs.Error
			if !errors.As(err, &e) || e.ID != c.want {
				t.Fatalf("Build: %v, want %s", err, c.want)
			}
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if !messages.Has(language, e.ID) {
					t.Errorf("no %s text for %s", language, e.ID)
				}
			}
		})
	}
}

// TestCheck finds before placement what Build would find after it.
func TestCheck(t *testing.T) {
	if notes, err := Check(job(structs.ModePyTorch, 2, "python -c 1")); err == nil {
		t.Errorf("python -c on two nodes passes: %v", notes)
	}
	notes, err := Check(job(structs.ModePyTorch, 2, "/usr/bin/python3 t.py"))
	if err != nil || len(notes) != 1 || notes[0].ID != "launch.python_path" {
		t.Errorf("path of python: %v, %v", notes, err)
	}
	batch := job(structs.ModeSingle, 1, "true")
	batch.Batch = &structs.Batch{Subtasks: []structs.BatchSubtask{{Name: "a"}, {Name: "b", Command: "echo 'x"}}}
	if _, err := Check(batch); err == nil {
		t.Error("a subtask's unreadable command passes")
	}
	batch.Batch = &structs.Batch{Count: 1000}
	if notes, err := Check(batch); err != nil || len(notes) != 0 {
		t.Errorf("plain batch: %v, %v", notes, err)
	}
}

// TestSubtask: a subtask's command and environment stand over the task's, and the
// task's arguments stand behind both commands.
func TestSubtask(t *testing.T) {
	j := job(structs.ModeSingle, 1, "echo task")
	j.Task.Env = map[string]string{"A": "task", "B": "task"}
	j.Batch = &structs.Batch{Subtasks: []structs.BatchSubtask{{Name: "a"}, {Name: "b", Command: "echo $A $B", Env: map[string]string{"B": "sub"}}}}
	j.Task.Arguments = "--of $B"
	in := input(j, 0)
	in.Alloc.Subjob = 1
	out, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.Command, " "); got != "echo task sub --of sub" {
		t.Errorf("command %q", got)
	}
	for name, want := range map[string]string{"NOMADLIKE_SUBJOB_NAME": "b", "NOMADLIKE_SUBJOB_INDEX": "1", "NOMADLIKE_SUBJOB_COUNT": "2"} {
		if out.Env[name] != want {
			t.Errorf("%s=%s, want %s", name, out.Env[name], want)
		}
	}
}

// TestHugeGang: what grows with the gang stays within what the kernel starts.
func TestHugeGang(t *testing.T) {
	out, err := Build(input(job(structs.ModePyTorch, 16000, "python t.py"), 3))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range out.Env {
		if len(name)+len(value) > 100<<10 {
			t.Errorf("%s has %d bytes", name, len(value))
		}
	}
	if len(out.Hosts) != 16000 || !slices.ContainsFunc(out.Notes, func(r structs.Reason) bool { return r.ID == "launch.rank_names_too_long" }) {
		t.Errorf("%d hosts, notes %v", len(out.Hosts), out.Notes)
	}
}

// TestBuildProperties draws jobs and asserts what must hold for all: the same
// answer twice, nothing of the input changed, environment names unique and
// sorted, one host per line in the host files, rank 0 alone with a command
// under mpi, and agreement of the ranks on where rank 0 is.
func TestBuildProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]structs.Mode{structs.ModeNone, structs.ModeSingle, structs.ModePyTorch, structs.ModeMPI}).Draw(t, "mode")
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"python", "python3", "-u", "-m", "-c", "-", "--", "-W", "t.py", "mpirun", "a b", "$RANK", "-um", ""}), 1, 6).Draw(t, "words")
		j := job(mode, rapid.IntRange(1, 5).Draw(t, "nodes"), structs.JoinCommand(words))
		j.Distributed.Rewrite = rapid.SampledFrom([]string{"", "launch", "torchrun", "none"}).Draw(t, "rewrite")
		j.Distributed.ProcsPerNode = rapid.IntRange(0, 3).Draw(t, "procs")
		j.Task.Env = rapid.MapOf(rapid.SampledFrom([]string{"A", "RANK", "PATH", "HYDRA_IFACE", "MASTER_ADDR"}), rapid.String().Filter(
			func(s string) bool { return !strings.ContainsRune(s, 0) })).Draw(t, "env")
		users := maps.Clone(j.Task.Env)
		masters := map[string]bool{}
		for rank := range j.Nodes {
			in := input(j, rank)
			out, err := Build(in)
			again, err2 := Build(in)
			if fmt.Sprint(out, err) != fmt.Sprint(again, err2) {
				t.Fatal("two answers to one question")
			}
			if err != nil {
				var e *structs.Error
				if !errors.As(err, &e) || !messages.Has(messages.English, e.ID) {
					t.Fatalf("rank %d: error without a text: %v", rank, err)
				}
				continue
			}
			if (len(out.Command) == 0) != out.Hold || out.Hold != (mode == structs.ModeMPI && rank > 0) {
				t.Fatalf("rank %d: hold %v with command %q", rank, out.Hold, out.Command)
			}
			environ := out.Environ()
			if !slices.IsSorted(environ) || len(environ) != len(out.Env) {
				t.Fatalf("environment is not sorted: %q", environ)
			}
			for name, value := range users {
				if _, ok := out.Env[name]; !ok {
					t.Fatalf("the user's %s=%s vanished", name, value)
				}
			}
			masters[out.Env["MASTER_ADDR"]] = mode == structs.ModePyTorch
			for _, file := range out.Files {
				if !strings.HasSuffix(file.Path, "hostfile") {
					continue
				}
				lines := strings.Split(strings.TrimSuffix(file.Content, "\n"), "\n")
				if len(lines) != j.Nodes {
					t.Fatalf("%s has %d lines for %d nodes", file.Path, len(lines), j.Nodes)
				}
				for i, line := range lines {
					name := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ':' })[0]
					if name != in.Members[i].Name {
						t.Fatalf("%s line %d is %q, want host %s", file.Path, i, line, in.Members[i].Name)
					}
				}
			}
		}
		if masters[""] || len(masters) > 1 && mode == structs.ModePyTorch {
			t.Fatalf("ranks disagree about the master: %v", masters)
		}
		if !maps.Equal(users, j.Task.Env) {
			t.Fatal("Build changed the job")
		}
	})
}

// FuzzBuild feeds commands to the modes that read them.
func FuzzBuild(f *testing.F) {
	for _, command := range []string{"python t.py", "python -um pkg -x", "bash -c 'mpirun ./a'", "a\\", "'", "${", "$RANK$", "python -"} {
		f.Add(command, 2)
	}
	f.Fuzz(func(t *testing.T, command string, nodes int) {
		nodes = 1 + (nodes&0xff)%4
		for _, mode := range []structs.Mode{structs.ModeSingle, structs.ModePyTorch, structs.ModeMPI} {
			j := job(mode, nodes, command)
			out, err := Build(input(j, 0))
			if err != nil {
				if structs.CodeOf(err) != structs.CodeInvalid {
					t.Fatalf("%q: %v", command, err)
				}
				continue
			}
			if len(out.Command) == 0 {
				t.Fatalf("%q: nothing to run", command)
			}
		}
	})
}
