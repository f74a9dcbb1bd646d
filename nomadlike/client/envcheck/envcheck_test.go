package envcheck

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func ids(found []Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, f.ID)
	}
	return strings.Join(all, " ")
}

func TestJudge(t *testing.T) {
	table, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, output, want string }{
		{"nothing is known", "hello\n@@\n@@x\n", ""},
		{"well", "@@shm.mib=65536\n@@memlock.kib=unlimited\n@@rdma.nodes=uverbs0,\n@@rdma.devices=mlx5_0,mlx5_1,\n@@env.NCCL_IB_HCA=mlx5_0:1,mlx5_1:1\n@@net.interfaces=eth0,lo,\n@@env.NCCL_SOCKET_IFNAME=eth\n@@names.unresolved=\n", ""},
		{"rules of the guide", "@@env.NCCL_DEBUG=info\n@@env.NCCL_P2P_DISABLE=1\n@@env.CUDA_LAUNCH_BLOCKING=1\n@@env.PYTORCH_NO_CUDA_MEMORY_CACHING=1\n",
			"nccl-debug nccl-p2p-disable cuda-launch-blocking no-cuda-memory-caching"},
		{"cards that are not there", "@@net.interfaces=eth0,lo,\n@@env.NCCL_SOCKET_IFNAME==eth\n@@env.GLOO_SOCKET_IFNAME=bond0\n@@env.HCCL_SOCKET_IFNAME=^eth\n", "nccl-socket-ifname gloo-socket-ifname"},
		{"RDMA is on and its variables missing", "@@rdma.nodes=uverbs0,\n@@memlock.kib=64\n", "ib-without-variables memlock"},
		{"RDMA is off", "@@rdma.nodes=uverbs0,\n@@env.NCCL_IB_DISABLE=1\n", "nccl-ib-disable"},
		{"little of everything", "@@shm.mib=63\n@@disk.mib=3\n@@files.open=1024\n@@names.unresolved=a-1-1,\n@@clock.skew=-9\n", "shared-memory open-files disk names clock-behind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ids(table.Judge(Parse(test.output))); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
	found := table.Judge(Facts{"shm.mib": "63"})
	if !strings.Contains(found[0].Text, "only 63 MiB") || !strings.Contains(found[0].TextZh, "63 MiB") {
		t.Errorf("text %+v", found)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"rules":[{"id":"a"}]}`, `{"rules":[{"id":"a","text":"t","when":[{"fact":"f","op":"like"}]}]}`,
		`{"rules":[{"id":"a","text":"t","when":[{"fact":"f","op":"below","values":["x"]}]}]}`} {
		if _, err := Load([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestScript runs the script in a shell and finds what the shell sees.
func TestScript(t *testing.T) {
	cmd := exec.Command("sh", "-c", Script)
	cmd.Env = append(os.Environ(), "NCCL_DEBUG=INFO", "NOMADLIKE_CHECK_NAMES=localhost no-such-rank.invalid")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	facts := Parse(string(out))
	if facts["env.NCCL_DEBUG"] != "INFO" || facts["disk.mib"] == "" || facts["clock"] == "" || !strings.Contains(facts["net.interfaces"], "lo") {
		t.Errorf("facts %v", facts)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("@@a=b\n")
	table, err := Load(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if facts := Parse(text); len(facts) > factsMax {
			t.Errorf("%d facts", len(facts))
		} else {
			table.Judge(facts)
		}
	})
}
