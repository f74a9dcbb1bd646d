package client

import (
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// network makes two network namespaces that see each other and nothing else,
// and returns their names and addresses.
func network(t *testing.T) (names, addrs []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	ip := func(args ...string) {
		t.Helper()
		if text, err := osexec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
	for i := range 2 {
		name := fmt.Sprintf("nlclient%d-%d", os.Getpid(), i)
		ip("netns", "add", name)
		t.Cleanup(func() { ip("netns", "del", name) })
		names = append(names, name)
		addrs = append(addrs, fmt.Sprintf("10.213.77.%d", i+1))
	}
	ip("-n", names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1])
	for i, name := range names {
		ip("-n", name, "addr", "add", addrs[i]+"/24", "dev", "eth0")
		ip("-n", name, "link", "set", "eth0", "up")
		ip("-n", name, "link", "set", "lo", "up")
	}
	return names, addrs
}

// TestRealMPI runs real launchers over the remote shell: two agents in two
// networks, and no sshd anywhere.
func TestRealMPI(t *testing.T) {
	for _, one := range []struct{ launcher, command string }{
		{"mpirun.openmpi", "mpirun.openmpi -np 2 --bind-to none sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)'"},
		{"mpiexec.hydra", "mpiexec.hydra -n 2 sh -c 'echo rank $PMI_RANK of $PMI_SIZE on $(hostname)'"},
	} {
		t.Run(one.launcher, func(t *testing.T) {
			if _, err := osexec.LookPath(one.launcher); err != nil {
				t.Skipf("%s is not installed here", one.launcher)
			}
			names, addrs := network(t)
			c := newControl()
			server := c.listen(t)
			ranks := gang("pi", 1, one.command, "n1", "n2")
			ranks[0].Job.Distributed.Mode = structs.ModeMPI
			var dirs []string
			for i, name := range names {
				dir := tempDir(t)
				dirs = append(dirs, dir)
				cleanUp(t, dir)
				startAgent(t, osexec.Command("ip", "netns", "exec", name, os.Args[0]),
					childEnv+"="+dir, childServerEnv+"="+server, fmt.Sprintf("%s=n%d", childNodeEnv, i+1))
				ranks[0].Members[i].Addr, ranks[0].Members[i].RPCAddr = addrs[i], childExec(dir)
			}
			c.assign(ranks...)
			for _, a := range ranks {
				wantStatus(t, c, a.Alloc.ID, structs.AllocPrepared)
			}
			for _, a := range ranks {
				c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Released = true })
			}
			r := wantEnd(t, c, ranks[0].Alloc.ID)
			lines := strings.Split(strings.TrimSpace(logText(t, dirs[0], ranks[0].Alloc.ID, "stdout")), "\n")
			slices.Sort(lines)
			if want := []string{"rank 0 of 2 on pi-1-0", "rank 1 of 2 on pi-1-1"}; !slices.Equal(lines, want) || r.Status != structs.AllocComplete {
				t.Fatalf("stdout %q, stderr %q, report %+v, because of %+v", lines, logText(t, dirs[0], ranks[0].Alloc.ID, "stderr"), r, r.Cause)
			}
			c.change(ranks[1].Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
			wantStatus(t, c, ranks[1].Alloc.ID, structs.AllocKilled)
		})
	}
}
