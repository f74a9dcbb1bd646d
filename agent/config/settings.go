package config

// Settings is one layer of configuration: a file, or the flags of the
// command line. What a layer leaves nil it leaves to the layers below.
type Settings struct {
	Name      *string
	DataDir   *string
	Bind      *string
	Advertise *string
	JoinToken *string
	JoinFile  *string
	PluginDir *string
	Scale     *float64
	Ports     *PortsBlock
	Server    *ServerBlock
	Client    *ClientBlock
	Log       *LogBlock
	Limits    *LimitsBlock
	HTTP      *HTTPBlock
	Plugins   []PluginBlock
	Dev       *bool
	Found     *bool
	_         struct{} // keyed fields only: the list grows
}

// PortsBlock are the ports that an agent listens on.
type PortsBlock struct{ HTTP, Gossip *int }

// LogBlock is the block of the agent's own log.
type LogBlock struct{ Level, Format *string }

// HTTPBlock is the block of the HTTP API.
type HTTPBlock struct {
	Hosts      []string
	TaskDomain *string
}

// walkSettings goes over everything that an agent can be told, and what it comes to.
func walkSettings(v visitor, s *Settings, c *Config) {
	v.setting("dev", toggle(&s.Dev, &c.Dev, false).byFlagOnly("dev", "cli.flag.dev"))
	v.setting("found", toggle(&s.Found, &c.Found, false).byFlagOnly("found", "cli.flag.found"))
	one(v, "log", &s.Log, func(v visitor, b *LogBlock) {
		v.setting("level", word(&b.Level, &c.LogLevel, "info", "debug", "info", "warn", "error").onFlag("log-level", "cli.flag.log_level").onReload())
		v.setting("format", word(&b.Format, &c.LogFormat, "auto", "auto", "text", "json"))
	})
	v.setting("plugin_dir", text(&s.PluginDir, &c.PluginDir, "").unset())
	one(v, "http", &s.HTTP, func(v visitor, b *HTTPBlock) {
		v.setting("hosts", list(&b.Hosts, &c.Hosts))
		v.setting("task_domain", text(&b.TaskDomain, &c.TaskDomain, "").unset())
	})
	v.setting("scale", decimal(&s.Scale, &c.Scale, 1).from(0.5, scaleMax).refused("agent.config.scale"))
	v.setting("name", text(&s.Name, &c.Name, "").unset().onFlag("name", "cli.flag.agent_name"))
	v.rule(func(r *resolver) {
		r.ownName(s)
		taskDomain(r)
	})
	one(v, "server", &s.Server, func(v visitor, b *ServerBlock) { walkServer(v, b, c) })
	v.rule(func(r *resolver) {
		if c.Dev && (len(c.Server.Join) > 0 || c.Server.BootstrapExpect != 1) {
			r.refuse("server", "agent.config.dev_join")
		}
	})
	one(v, "ports", &s.Ports, func(v visitor, b *PortsBlock) {
		v.setting("http", number(&b.HTTP, &c.HTTPPort, DefaultHTTPPort).from(0, portMax).refused("agent.config.port").onFlag("port", "cli.flag.port"))
		v.setting("gossip", number(&b.Gossip, &c.Gossip, DefaultGossipPort).from(0, portMax).refused("agent.config.port").onFlag("gossip-port", "cli.flag.gossip_port"))
	})
	v.setting("bind", text(&s.Bind, &c.Bind, "0.0.0.0").onFlag("bind", "cli.flag.bind"))
	v.setting("advertise", text(&s.Advertise, &c.Advertise, "").unset().onFlag("advertise", "cli.flag.advertise"))
	v.rule(func(r *resolver) { r.addresses(s) })
	v.setting("data_dir", text(&s.DataDir, &c.DataDir, DefaultDataDir).onFlag("data-dir", "cli.flag.data_dir"))
	v.rule(func(r *resolver) { r.dataDir(s) })
	one(v, "client", &s.Client, func(v visitor, b *ClientBlock) { walkClient(v, b, c) })
	v.rule(func(r *resolver) {
		if !c.Server.Enabled && !c.Client.Enabled {
			r.refuse("", "agent.config.no_role")
		}
	})
	one(v, "limits", &s.Limits, func(v visitor, b *LimitsBlock) { walkLimits(v, b, &c.Limits) })
	every(v, "plugin", "name", &s.Plugins, walkPlugin, func(top, below *PluginBlock) bool { return top.Name == below.Name })
	v.rule(func(r *resolver) { r.plugins(s.Plugins) })
	v.setting("join_token", secretText(&s.JoinToken, &c.JoinToken).onFlag("join-token", "cli.flag.join"))
	v.setting("join_token_file", text(&s.JoinFile, new(string), "").unset().apart().onFlag("join-token-file", "cli.flag.join_file"))
	v.rule(func(r *resolver) {
		r.joinToken(s)
		r.found()
	})
}
