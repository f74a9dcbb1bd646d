package agent

import (
	"context"
	"path/filepath"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
)

// openDocker makes the driver of containers, nil when it is switched off. A
// missing engine is no error: the driver says so and looks again.
func (p *clientPart) openDocker(dir string) (driver.Driver, error) {
	c := p.config.Client.Docker
	if !c.Enabled {
		return nil, nil // no driver is an answer
	}
	network := driver.NetworkPrivate
	if c.HostNetwork {
		network = driver.NetworkHost
	}
	d, err := docker.New(docker.Config{
		StateDir: filepath.Join(dir, "docker"), Endpoint: c.Endpoint, Cluster: p.ident.Self().Cluster, Node: p.id,
		Program: c.Program,
		Network: network, MountRoots: c.MountRoots, User: c.User, AuthFile: c.AuthFile,
		Policy: docker.Policy{HostNetwork: c.HostNetwork, Options: c.Options, RegistriesOnly: c.RegistriesOnly},
		GC:     c.ImageGC,
		Logger: p.log,
	})
	if err != nil {
		return nil, err
	}
	p.life.atStop(func(context.Context) { p.life.stopFailed("docker driver", d.Close()) })
	return d, nil
}
