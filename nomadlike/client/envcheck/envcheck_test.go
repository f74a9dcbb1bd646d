package envcheck

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
		{
			"rules of the guide", "@@env.NCCL_DEBUG=info\n@@env.NCCL_P2P_DISABLE=1\n@@env.CUDA_LAUNCH_BLOCKING=1\n@@env.PYTORCH_NO_CUDA_MEMORY_CACHING=1\n",
			"nccl-debug nccl-p2p-disable cuda-launch-blocking no-cuda-memory-caching",
		},
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
	for _, bad := range []string{
		"", "[]", `{"rules":[{"id":"a"}]}`, `{"rules":[{"id":"a","text":"t","when":[{"fact":"f","op":"like"}]}]}`,
		`{"rules":[{"id":"a","text":"t","when":[{"fact":"f","op":"below","values":["x"]}]}]}`,
	} {
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

// TestScriptAsksNoNameServer: names of ranks stand in /etc/hosts or nowhere, and
// a name server that never answers costs the line of a foreign MASTER_ADDR, no more.
func TestScriptAsksNoNameServer(t *testing.T) {
	for _, c := range []struct{ name, master, want string }{
		{"a rank", "no-such-rank", "no-such-rank"},
		{"an address", "10.1.2.3", ""},
		{"an address of IPv6", "fd00::1", ""},
		{"in the file", "localhost", ""},
		{"somebody else", "head.example", "head.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			programs := t.TempDir()
			asked := filepath.Join(programs, "asked")
			silent := "#!/bin/sh\necho \"$*\" >>" + asked + "\nexec sleep 1000\n"
			if err := os.WriteFile(filepath.Join(programs, "getent"), []byte(silent), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", Script)
			cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "MASTER_ADDR="+c.master,
				"NOMADLIKE_CHECK_NAMES=localhost no-such-rank")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			facts := Parse(string(out))
			if facts["names.unresolved"] != "no-such-rank" || facts["master.unresolved"] != c.want || facts["clock"] == "" {
				t.Errorf("facts %v", facts)
			}
			who, _ := os.ReadFile(asked)
			if got, want := strings.TrimSpace(string(who)), map[bool]string{true: "hosts head.example"}[c.name == "somebody else"]; got != want {
				t.Errorf("the name server was asked %q, want %q", got, want)
			}
		})
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

// TestCompare holds what a task was given against what its processes have.
func TestCompare(t *testing.T) {
	given := func() Facts {
		return Facts{"env.MASTER_ADDR": "a-1-0", "env.MASTER_PORT": "2222", "shm.mib": "1"}
	}
	same := map[string]string{"MASTER_ADDR": "a-1-0", "MASTER_PORT": "2222", "HOME": "/"}
	for _, test := range []struct {
		name      string
		processes []Process
		want      Facts // besides what was given
	}{
		{"nothing can be seen", []Process{{PID: 7, Name: "x"}}, nil},
		{"all is well", []Process{{Env: same}, {Env: same}}, nil},
		{
			"changed",
			[]Process{{Env: map[string]string{"MASTER_ADDR": "b", "MASTER_PORT": "2222"}}},
			Facts{"env.MASTER_ADDR": "b", "env.changed": "MASTER_ADDR=b (a-1-0)"},
		},
		{"unset", []Process{{Env: map[string]string{"MASTER_ADDR": "a-1-0"}}}, Facts{"env.unset": "MASTER_PORT"}},
		{"dropped", []Process{{Env: same}, {Name: "python3", Env: map[string]string{}}}, Facts{"env.dropped": "python3"}},
		{"added", []Process{{Env: map[string]string{"MASTER_ADDR": "a-1-0", "MASTER_PORT": "2222", "NCCL_DEBUG": "INFO", "HOME": "/"}}}, Facts{"env.NCCL_DEBUG": "INFO"}},
		{"by a launcher", []Process{{Env: map[string]string{"MASTER_ADDR": "other", "LOCAL_RANK": "1"}}}, nil},
		{"the check itself", []Process{{Env: map[string]string{"PROBE": ""}}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := given()
			maps.Copy(want, test.want)
			got := given()
			if got.Compare(test.processes, "PROBE", nil); !maps.Equal(got, want) {
				t.Errorf("facts %v, want %v", got, want)
			}
		})
	}
}

// A variable that is a secret is there, and its value in no fact: neither as it was given
// nor as a process has it, the same or changed.
func TestCompareReadsNoSecrets(t *testing.T) {
	for _, has := range []string{"canary", "canary-changed"} {
		facts := Facts{"env.NCCL_TOKEN": "canary", "env.NCCL_DEBUG": "WARN"}
		facts.Compare([]Process{{Env: map[string]string{"NCCL_TOKEN": has, "NCCL_OTHER": has, "NCCL_DEBUG": "INFO"}}}, "PROBE", map[string]bool{"NCCL_TOKEN": true, "NCCL_OTHER": true})
		if want := (Facts{"env.NCCL_TOKEN": "***", "env.NCCL_DEBUG": "INFO", "env.changed": "NCCL_DEBUG=INFO (WARN)"}); !maps.Equal(facts, want) {
			t.Errorf("facts %v, want %v", facts, want)
		}
	}
}

// TestProcesses finds processes by what their first one was given, and their
// sockets.
func TestProcesses(t *testing.T) {
	cmd := exec.Command("sh", "-c", "env -i sh -c 'echo; read x'; true")
	marker := "NOMADLIKE_TEST_MARKER=" + strconv.Itoa(os.Getpid())
	cmd.Env = append(os.Environ(), marker)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	found := Processes("/proc", marker)
	if len(found) != 2 || found[0].PID != cmd.Process.Pid || found[0].Name != "sh" || found[1].Env["PATH"] != "" || found[1].Env == nil {
		t.Errorf("found %d processes: %+v", len(found), found)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if who, own := Listener("/proc", port, found); own || !strings.HasSuffix(who, fmt.Sprintf("(%d)", os.Getpid())) {
		t.Errorf("a stranger's port: %q, own %v", who, own)
	}
	if who, own := Listener("/proc", port, []Process{{PID: os.Getpid(), Name: "test"}}); !own || who != fmt.Sprintf("test (%d)", os.Getpid()) {
		t.Errorf("an own port: %q, own %v", who, own)
	}
	l.Close()
	if who, _ := Listener("/proc", port, found); who != "" {
		t.Errorf("a port of nobody: %q", who)
	}
}

func TestCommon(t *testing.T) {
	table := &Table{Same: []string{"cuda.version", "env.MS_*"}}
	facts := Facts{"cuda.version": "12", "env.MS_A": "1", "env.MS_B": "", "env.X": "2"}
	if got := table.Common(facts, 9); !maps.Equal(got, map[string]string{"cuda.version": "12", "env.MS_A": "1"}) {
		t.Errorf("common %v", got)
	}
	if got := table.Common(facts, 1); len(got) != 1 {
		t.Errorf("common %v", got)
	}
}
