package agent

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/diskquota"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/host"
)

// ErrStorage is the cause of Run's error when the disk of the node's local
// store cannot be trusted any more.
var ErrStorage = client.ErrStorage

// refuseWithoutToken is the answer to an agent that has no identity and no
// way to get one.
func refuseWithoutToken() error {
	return structs.NewError(structs.CodeInvalid, "agent.refuse.no_token")
}

// openClient opens the node.
func (a *Agent) openClient(context.Context) error {
	if !a.config.Client.Enabled {
		return nil
	}
	pool, err := a.clientPool()
	if err != nil {
		return err
	}
	dir := filepath.Join(a.config.DataDir, clientDir)
	if err := os.MkdirAll(dir, 0o711); err != nil { // tasks of other users pass through it
		return err
	}
	a.driver, err = exec.New(a.execConfig(dir))
	if err != nil {
		return err
	}
	a.life.atStop(func(context.Context) { a.life.stopFailed("exec driver", a.driver.Close()) })
	drivers, devices, err := a.openPlugins(dir)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	c := a.config.Client
	var filter func(nodeID string) firewall.Filter
	if c.GuardRendezvous && os.Geteuid() == 0 {
		filter = func(nodeID string) firewall.Filter { return firewall.NewNFTables(nodeID) }
	}
	var quotas func(dir string) (room.Quotas, error)
	if os.Geteuid() == 0 {
		quotas = func(dir string) (room.Quotas, error) { return diskquota.Open(dir) }
	}
	a.client, err = client.New(client.Config{
		DataDir: dir, NodeID: a.ID(), RPCAddr: a.addr, Version: a.options.Version,
		Wishes: fingerprint.Wishes{
			Name: a.config.Name, Advertise: a.config.Advertise, Interface: c.Interface, Pool: c.Pool, ReservedCPU: c.ReservedCPU,
			ReservedMemory: c.ReservedMemory, PortMin: c.PortMin, PortMax: c.PortMax, Attributes: metaAttributes(c.Meta),
			Topology: c.Topology, RDMA: c.RDMA,
		},
		Own: a.config.Dev, NCCLDebug: c.NCCLDebug, EnvFile: c.EnvFile,
		Devices: c.Devices, DevicePlugins: devices,
		Drivers: drivers, Storages: c.Storages, Remotes: c.Remotes, Fast: data.Config{Dir: c.Data.Path, Retention: c.Data.Retention, FreeMin: c.Data.FreeMin},
		Filter:   filter,
		Quotas:   quotas,
		Disk:     c.Disk,
		Room:     c.Room,
		Accounts: c.Exec.Accounts, UIDMin: c.Exec.UIDMin, UIDMax: c.Exec.UIDMax,
		Servers: a.servers.addresses, OpenSession: client.SessionOver(pool), OpenExec: client.ExecOver(pool),
		Binary: binary, Logger: a.log, SysRoot: a.options.SysRoot,
	})
	if err != nil {
		return err
	}
	a.client.Register(a.rpc)
	return nil
}

// openPlugins gathers the built-in drivers and device plugins, and those of
// plugin_dir.
func (a *Agent) openPlugins(dir string) (map[string]driver.Driver, map[string]device.Plugin, error) {
	plugins, err := host.New(a.hostConfig(dir))
	if err != nil {
		return nil, nil, err
	}
	a.life.atStop(func(context.Context) { a.life.stopFailed("plugins", plugins.Close()) })
	if err := plugins.Register(exec.Name, a.driver); err != nil {
		return nil, nil, err
	}
	containers, err := a.openDocker(dir)
	if err != nil {
		return nil, nil, err
	}
	if containers != nil {
		if err := plugins.Register(docker.Name, containers); err != nil {
			return nil, nil, err
		}
	}
	drivers := map[string]driver.Driver{}
	for _, name := range plugins.Names() {
		if drivers[name], err = plugins.Driver(name); err != nil {
			return nil, nil, err
		}
	}
	devices, err := devicePlugins(plugins)
	return drivers, devices, err
}

// runClient lets the node live.
func (a *Agent) runClient(context.Context) error {
	if a.client == nil {
		return nil
	}
	run, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	a.life.run(func() {
		defer close(done)
		if err := a.client.Run(run); err != nil {
			a.life.fail(err)
		}
	})
	a.life.atStop(func(context.Context) {
		cancel()
		<-done
	})
	return nil
}

// metaAttributes puts the administrator's words about a node among its
// attributes.
func metaAttributes(meta map[string]string) map[string]string {
	attributes := make(map[string]string, len(meta))
	for key, value := range meta {
		attributes["meta."+key] = value
	}
	return attributes
}

// clientPool is the pool that the node speaks through. A server's own node
// needs a client's certificate, since servers let only clients open a
// session; being a server, the agent can sign it, for its own id.
func (a *Agent) clientPool() (*rpc.Pool, error) {
	if a.identity.ca() == nil {
		return a.pool, nil
	}
	credentials, err := a.ownClientCredentials()
	if err != nil {
		return nil, err
	}
	identity := rpc.NewIdentity(credentials)
	pool := rpc.NewPool(rpc.Dialer{Identity: identity, Now: a.options.now})
	a.life.atStop(func(context.Context) { pool.Close() })
	a.life.run(func() {
		a.certificates.every(identity, func(context.Context) (*auth.Credentials, error) { return a.ownClientCredentials() })
	})
	return pool, nil
}

func (a *Agent) ownClientCredentials() (*auth.Credentials, error) {
	issued, err := a.identity.ca().IssueAgent(auth.Grant{Role: auth.RoleClient, ID: a.ID()}, rand.Reader, a.options.now())
	if err != nil {
		return nil, err
	}
	return a.identity.credentialsOf(issued.ChainPEM, issued.KeyPEM)
}
