package config

import "nomadlike/plugins/docker"

// DockerBlock is the part of a client that runs tasks in containers. Without
// it the engine at the usual socket is used when there is one.
type DockerBlock struct {
	Enabled        *bool
	Endpoint       *string
	HostNetwork    *bool
	MountRoots     []string
	Options        []string
	RegistriesOnly []string
	AuthFile       *string
	User           *string
	ImageGC        *ImageGCBlock
	_              struct{}
}

// Docker is the part of docker.
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

func walkDocker(v visitor, b *DockerBlock, c *Docker) {
	v.setting("enabled", toggle(&b.Enabled, &c.Enabled, true))
	v.setting("endpoint", text(&b.Endpoint, &c.Endpoint, "").unset())
	v.setting("host_network", toggle(&b.HostNetwork, &c.HostNetwork, true))
	v.setting("mount_roots", list(&b.MountRoots, &c.MountRoots))
	v.setting("options", list(&b.Options, &c.Options))
	v.setting("registries_only", list(&b.RegistriesOnly, &c.RegistriesOnly))
	v.setting("auth_file", text(&b.AuthFile, &c.AuthFile, "").unset())
	v.setting("user", text(&b.User, &c.User, "").unset())
	one(v, "image_gc", &b.ImageGC, func(v visitor, b *ImageGCBlock) { walkImageGC(v, b, &c.ImageGC) })
}
