package agent

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"

	"nomadlike/agent/config"
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

// clientPart is the part of an agent that runs tasks: the node itself, its drivers and
// plugins, and the pool that it speaks through. On an agent that is no node it does
// nothing. The agent opens and runs it once.
type clientPart struct {
	config  config.Config
	options Options
	log     *slog.Logger
	life    *lifecycle

	id       string
	addr     string // host:port under which others reach the agent
	identity *identity
	ident    *rpc.Identity
	rpc      *rpc.Server
	pool     *rpc.Pool
	servers  func() []string // addresses, those first that nobody can forge
	renew    func(*rpc.Identity, func(context.Context) (*auth.Credentials, error))

	client *client.Client // nil until it is open
	driver *exec.Driver
}

// open opens the node, where the agent is one.
func (p *clientPart) open() error {
	if !p.config.Client.Enabled {
		return nil
	}
	pool, err := p.ownPool()
	if err != nil {
		return err
	}
	dir := filepath.Join(p.config.DataDir, clientDir)
	if err := os.MkdirAll(dir, 0o711); err != nil { // tasks of other users pass through it
		return err
	}
	p.driver, err = exec.New(p.execConfig(dir))
	if err != nil {
		return err
	}
	p.life.atStop(func(context.Context) { p.life.stopFailed("exec driver", p.driver.Close()) })
	drivers, devices, err := p.openPlugins(dir)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	c := p.config.Client
	var filter func(nodeID string) firewall.Filter
	if c.GuardRendezvous && os.Geteuid() == 0 {
		filter = func(nodeID string) firewall.Filter { return firewall.NewNFTables(nodeID) }
	}
	var quotas func(dir string) (room.Quotas, error)
	if os.Geteuid() == 0 {
		quotas = func(dir string) (room.Quotas, error) { return diskquota.Open(dir) }
	}
	calls := client.StagingCalls{Pool: pool, Servers: p.servers}
	p.client, err = client.New(client.Config{
		DataDir: dir, NodeID: p.id, RPCAddr: p.addr, Version: p.options.Version,
		Wishes: fingerprint.Wishes{
			Name: p.config.Name, Advertise: p.config.Advertise, Interface: c.Interface, Pool: c.Pool, ReservedCPU: c.ReservedCPU,
			ReservedMemory: c.ReservedMemory, PortMin: c.PortMin, PortMax: c.PortMax, Attributes: metaAttributes(c.Meta),
			Topology: c.Topology, RDMA: c.RDMA,
		},
		Own: p.config.Dev, NCCLDebug: c.NCCLDebug, EnvFile: c.EnvFile,
		Devices: c.Devices, DevicePlugins: devices,
		Drivers: drivers, Storages: c.Storages, Remotes: c.Remotes, Fast: data.Config{Dir: c.Data.Path, Retention: c.Data.Retention, FreeMin: c.Data.FreeMin},
		Filter:   filter,
		Quotas:   quotas,
		Disk:     c.Disk,
		Room:     c.Room,
		Accounts: c.Exec.Accounts, UIDMin: c.Exec.UIDMin, UIDMax: c.Exec.UIDMax,
		Servers: p.servers, OpenSession: client.SessionOver(pool), OpenExec: client.ExecOver(pool), AskSecrets: client.SecretsOver(pool), AskCode: client.AskCodeOver(pool),
		Staging: client.Staging{Servers: calls, Nodes: calls, Off: !c.Data.Share, Rate: c.Data.ShareRate},
		Binary:  binary, Logger: p.log, SysRoot: p.options.SysRoot,
	})
	if err != nil {
		return err
	}
	p.client.Register(p.rpc)
	return nil
}

// openPlugins gathers the built-in drivers and device plugins, and those of
// plugin_dir.
func (p *clientPart) openPlugins(dir string) (map[string]driver.Driver, map[string]device.Plugin, error) {
	plugins, err := host.New(p.hostConfig(dir))
	if err != nil {
		return nil, nil, err
	}
	p.life.atStop(func(context.Context) { p.life.stopFailed("plugins", plugins.Close()) })
	if err := plugins.Register(exec.Name, p.driver); err != nil {
		return nil, nil, err
	}
	containers, err := p.openDocker(dir)
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

// run lets the node live.
func (p *clientPart) run() error {
	if p.client == nil {
		return nil
	}
	run, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p.life.run(func() {
		defer close(done)
		if err := p.client.Run(run); err != nil {
			p.life.fail(err)
		}
	})
	p.life.atStop(func(context.Context) {
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

// ownPool is the pool that the node speaks through. A server's own node
// needs a client's certificate, since servers let only clients open a
// session; being a server, the agent can sign it, for its own id.
func (p *clientPart) ownPool() (*rpc.Pool, error) {
	if p.identity.ca() == nil {
		return p.pool, nil
	}
	credentials, err := p.ownCredentials()
	if err != nil {
		return nil, err
	}
	identity := rpc.NewIdentity(credentials)
	pool := rpc.NewPool(rpc.Dialer{Identity: identity, Now: p.options.now})
	p.life.atStop(func(context.Context) { pool.Close() })
	p.life.run(func() {
		p.renew(identity, func(context.Context) (*auth.Credentials, error) { return p.ownCredentials() })
	})
	return pool, nil
}

func (p *clientPart) ownCredentials() (*auth.Credentials, error) {
	issued, err := p.identity.ca().IssueAgent(auth.Grant{Role: auth.RoleClient, ID: p.id}, rand.Reader, p.options.now())
	if err != nil {
		return nil, err
	}
	return p.identity.credentialsOf(issued.ChainPEM, issued.KeyPEM)
}
