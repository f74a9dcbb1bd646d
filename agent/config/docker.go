package config

import (
	"nomadlike/plugins/docker"
)

// DockerBlock is the part of a client that runs tasks in containers. Without
// it the engine at the usual socket is used when there is one.
type DockerBlock struct {
	Enabled        *bool    `hcl:"enabled,optional"`
	Endpoint       *string  `hcl:"endpoint,optional"`        // unix:///path
	HostNetwork    *bool    `hcl:"host_network,optional"`    // gangs of several nodes need it; true unless told
	MountRoots     []string `hcl:"mount_roots,optional"`     // directories below which jobs may mount
	Options        []string `hcl:"options,optional"`         // settings of the engine that jobs may use
	RegistriesOnly []string `hcl:"registries_only,optional"` // where images may come from
	AuthFile       *string  `hcl:"auth_file,optional"`       // credentials, as docker login writes them
	User           *string  `hcl:"user,optional"`            // uid[:gid] of tasks that name none

	ImageGC *ImageGCBlock `hcl:"image_gc,block"`
	_       struct{}
}

// DockerConfig is the part of docker.
type Docker struct {
	Enabled        bool
	Endpoint       string
	HostNetwork    bool
	MountRoots     []string
	Options        []string
	RegistriesOnly []string
	AuthFile       string
	User           string
	ImageGC        docker.GC
	// Program replaces the program that runs in and beside containers, for
	// tests; "" means the embedded one.
	Program string `json:"-"`
}

func (r *resolver) docker(block *DockerBlock) Docker {
	if block == nil {
		block = &DockerBlock{}
	}
	return Docker{
		Enabled: get(block.Enabled, true), Endpoint: get(block.Endpoint, ""), HostNetwork: get(block.HostNetwork, true),
		MountRoots: block.MountRoots, Options: block.Options, RegistriesOnly: block.RegistriesOnly,
		AuthFile: get(block.AuthFile, ""), User: get(block.User, ""), ImageGC: r.imageGC(block.ImageGC),
	}
}

func (d DockerBlock) over(top DockerBlock) DockerBlock {
	return DockerBlock{
		Enabled: or(top.Enabled, d.Enabled), Endpoint: or(top.Endpoint, d.Endpoint), HostNetwork: or(top.HostNetwork, d.HostNetwork),
		MountRoots: orList(top.MountRoots, d.MountRoots), Options: orList(top.Options, d.Options),
		RegistriesOnly: orList(top.RegistriesOnly, d.RegistriesOnly), AuthFile: or(top.AuthFile, d.AuthFile), User: or(top.User, d.User),
		ImageGC: both(d.ImageGC, top.ImageGC, ImageGCBlock.over),
	}
}
