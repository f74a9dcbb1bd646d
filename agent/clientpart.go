package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/host"
)

// How certificates are renewed.
const (
	renewRetry   = time.Minute
	renewTimeout = 10 * time.Second
)

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
	a.atStop(func(context.Context) { a.stopFailed("exec driver", a.driver.Close()) })
	drivers, devices, err := a.openPlugins(dir)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	c := a.config.Client
	a.client, err = client.New(client.Config{
		DataDir: dir, NodeID: a.ID(), RPCAddr: a.addr, Version: a.options.Version,
		Wishes: fingerprint.Wishes{
			Name: a.config.Name, Advertise: a.config.Advertise, Interface: c.Interface, Pool: c.Pool, ReservedCPU: c.ReservedCPU,
			ReservedMemory: c.ReservedMemory, PortMin: c.PortMin, PortMax: c.PortMax, Attributes: metaAttributes(c.Meta),
			Topology: c.Topology, RDMA: c.RDMA,
		},
		Own:     a.config.Dev,
		Devices: c.Devices, DevicePlugins: devices,
		Drivers: drivers, Storages: c.Storages, Remotes: c.Remotes, Fast: data.Config{Dir: c.Data.Path, Retention: c.Data.Retention, FreeMin: c.Data.FreeMin},
		Servers: a.serverAddresses, OpenSession: client.SessionOver(pool), OpenExec: client.ExecOver(pool),
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
	a.atStop(func(context.Context) { a.stopFailed("plugins", plugins.Close()) })
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
	a.tasks.Go(func() {
		defer close(done)
		if err := a.client.Run(run); err != nil {
			a.fail(err)
		}
	})
	a.atStop(func(context.Context) {
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
	if a.identity.ca == nil {
		return a.pool, nil
	}
	credentials, err := a.ownClientCredentials()
	if err != nil {
		return nil, err
	}
	identity := rpc.NewIdentity(credentials)
	pool := rpc.NewPool(rpc.Dialer{Identity: identity})
	a.atStop(func(context.Context) { pool.Close() })
	a.tasks.Go(func() {
		a.everyRenewal(identity, func(context.Context) (*auth.Credentials, error) { return a.ownClientCredentials() })
	})
	return pool, nil
}

func (a *Agent) ownClientCredentials() (*auth.Credentials, error) {
	issued, err := a.identity.ca.IssueAgent(auth.Grant{Role: auth.RoleClient, ID: a.ID()}, rand.Reader, time.Now())
	if err != nil {
		return nil, err
	}
	return auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, a.identity.caPEM)
}

// keepCertificate renews the agent's certificate when half of its life is
// over.
func (a *Agent) keepCertificate() { a.everyRenewal(a.ident, a.renew) }

// everyRenewal waits for each renewal of an identity and stores what renew
// gives, until the agent stops.
func (a *Agent) everyRenewal(identity *rpc.Identity, renew func(context.Context) (*auth.Credentials, error)) {
	wait := time.Until(identity.Load().RenewAt())
	for {
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-a.stopping:
			timer.Stop()
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
		credentials, err := renew(ctx)
		cancel()
		if err != nil {
			a.log.Error("certificate was not renewed", "expires", identity.Load().ExpiresAt(), logkey.Error, err)
			wait = renewRetry
			continue
		}
		identity.Store(credentials)
		a.log.Info("certificate renewed", "expires", credentials.ExpiresAt())
		wait = time.Until(credentials.RenewAt())
	}
}

// renew gets a new certificate for this agent's identity: a server signs its
// own, a client asks a server.
func (a *Agent) renew(ctx context.Context) (*auth.Credentials, error) {
	self := a.ident.Self()
	csr, key, err := auth.NewCSR(self.Role, self.ID, rand.Reader)
	if err != nil {
		return nil, err
	}
	var chain []byte
	if a.identity.ca != nil {
		chain, err = a.identity.sign(csr, self, time.Now(), a.config.Advertise)
	} else {
		chain, err = a.askRenewal(ctx, csr)
	}
	if err != nil {
		return nil, err
	}
	return a.identity.renewed(chain, key)
}

func (a *Agent) askRenewal(ctx context.Context, csr []byte) ([]byte, error) {
	failure := errors.New("no server is known")
	for _, addr := range a.serverAddresses() {
		conn, err := a.pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
		if err == nil {
			var reply *structs.RenewReply
			reply, err = rpc.Call[structs.RenewRequest, structs.RenewReply](ctx, conn, structs.MethodServerRenew, &structs.RenewRequest{CSR: csr})
			if err == nil {
				return reply.Certificate, nil
			}
		}
		failure = err
	}
	return nil, failure
}
