package gossip

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"nomadlike/nomadlike/wire"
)

// Bounds and defaults.
const (
	DefaultLabel   = "nomadlike"
	DefaultPort    = 4648
	KeySize        = 32               // bytes of a gossip key: AES-256
	MetaSizeMax    = 200              // bytes of a member's encoded metadata
	MembersMax     = 20000            // members that one agent keeps track of
	RejoinInterval = 30 * time.Second // between attempts to reach servers that are missing

	joinAddrsMax     = 16 // addresses tried at once
	seedsMax         = 64 // configured addresses
	knownMax         = 64 // servers remembered over a restart
	tcpTimeout       = 3 * time.Second
	rejoinFirst      = 250 * time.Millisecond // while no server has been reached yet
	rejoinFirstMax   = 5 * time.Second
	rememberInterval = time.Second // between looks at which servers there are
	rejoinAddrs      = 3           // servers tried at once by the background
	settleDelay      = time.Second // after joining, see Gossip.settle
	settleMembersMax = 256
	deadKept         = 10 * time.Minute // how long gone members stay in the table
	nameLengthMax    = 64
	serversMax       = 64 // members that say they are servers
)

// Config configures an agent's membership. Name, Meta, Key and Logger are
// required; zero values of the rest mean the defaults.
type Config struct {
	Name   string // the agent's id
	Meta   Meta
	Key    []byte // of the cluster, KeySize bytes; encrypts what is sent
	Logger *slog.Logger

	Label         string   // DefaultLabel; members of other labels are not heard
	BindAddr      string   // IP; "" means all addresses
	Port          int      // DefaultPort; -1 lets the system choose
	AdvertiseAddr string   // IP that others reach this agent at; "" means the bound one
	AdvertisePort int      // 0 means Port
	Seeds         []string // host:port of agents to join through; more may be known
	Known         Known    // where servers are remembered; nil means nowhere

	// Peers, on servers, names those of the log by id and where their gossip is
	// likely to be (host:port). It finds the cluster again for a server that
	// remembers nobody, such as a founder that met the others a moment before it
	// was stopped. It must not block, and returns nothing until the log is open.
	// Nil means that there is no log.
	Peers func() map[string]string

	// Prove, on servers, is asked about every claim about a server; those that
	// it refuses are not heard. Nil, on nodes, means that they are heard: who
	// then calls such a server has it prove itself anyway.
	Prove Prove

	// Scale stretches all timings of failure detection, for machines that
	// are too busy to answer in time: 1 (also 0) is right for a LAN, 2.5 for
	// two shared cores.
	Scale float64

	// Transport replaces the network, for tests.
	Transport memberlist.NodeAwareTransport
}

// Meta is what every member tells about itself. It is sent with every
// change, so it is small.
type Meta struct {
	Cluster  string `cbor:"1,keyasint"` // id of the cluster; other clusters are not heard
	Role     string `cbor:"2,keyasint"` // "server" or "client"
	RPCAddr  string `cbor:"3,keyasint"` // host:port of its TLS port
	Protocol int    `cbor:"4,keyasint"` // wire.ProtocolVersion that it speaks
	Version  string `cbor:"5,keyasint,omitempty"`
	Leaving  bool   `cbor:"6,keyasint,omitempty"` // it is about to leave in order
	Name     string `cbor:"7,keyasint,omitempty"` // of its machine, for people
	Full     bool   `cbor:"8,keyasint,omitempty"` // a server without room for log entries

	// CertificateEnds is when the first of the agent's certificates ends, in Unix
	// seconds; 0: it does not tell.
	CertificateEnds int64 `cbor:"9,keyasint,omitempty" since:"19"`
}

// encode returns the metadata's bytes, at most MetaSizeMax.
func (m Meta) encode() ([]byte, error) {
	data, err := wire.Marshal(&m)
	if err != nil {
		return nil, err
	}
	if len(data) > MetaSizeMax {
		return nil, fmt.Errorf("encode gossip metadata: %d bytes are over the limit of %d", len(data), MetaSizeMax)
	}
	return data, m.validate()
}

func (m Meta) validate() error {
	if m.Cluster == "" {
		return fmt.Errorf("check gossip metadata: the cluster is missing")
	}
	if m.Role != roleServer && m.Role != roleClient {
		return fmt.Errorf("check gossip metadata: %q is no role", m.Role)
	}
	host, port, err := net.SplitHostPort(m.RPCAddr)
	if err != nil || host == "" {
		return fmt.Errorf("check gossip metadata: %q is no address", m.RPCAddr)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("check gossip metadata: %q has no port", m.RPCAddr)
	}
	return nil
}

// The roles as they stand in Meta.Role.
const (
	roleServer = "server"
	roleClient = "client"
)

// decodeMeta reads what a member told; it may be hostile.
func decodeMeta(data []byte) (Meta, error) {
	if len(data) > MetaSizeMax {
		return Meta{}, fmt.Errorf("decode gossip metadata: %d bytes are over the limit of %d", len(data), MetaSizeMax)
	}
	var meta Meta
	if err := wire.Unmarshal(data, &meta); err != nil {
		return Meta{}, err
	}
	return meta, meta.validate()
}

func (c *Config) validate() error {
	switch {
	case !validName(c.Name):
		return fmt.Errorf("open gossip: %q is no agent id", c.Name)
	case len(c.Key) != KeySize:
		return fmt.Errorf("open gossip: the key has %d bytes, want %d", len(c.Key), KeySize)
	case c.Logger == nil:
		return fmt.Errorf("open gossip: no logger")
	case len(c.Seeds) > seedsMax:
		return fmt.Errorf("open gossip: %d seeds are over the limit of %d", len(c.Seeds), seedsMax)
	case c.Scale < 0 || c.Scale > 100:
		return fmt.Errorf("open gossip: a scale of %g is out of range", c.Scale)
	}
	return nil
}

// validName accepts printable ASCII without separators: names appear in logs
// and in messages of other members.
func validName(name string) bool {
	if name == "" || len(name) > nameLengthMax {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// listConfig turns c into memberlist's configuration. The figures follow the
// targets: a silent member is suspected after about 0.5 s and gone within
// 2·log10(members)·0.2 s more.
func (c *Config) listConfig() *memberlist.Config {
	scale := c.Scale
	if scale == 0 {
		scale = 1
	}
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * scale) }
	list := memberlist.DefaultLANConfig()
	list.Name = c.Name
	list.Label = c.Label
	if list.Label == "" {
		list.Label = DefaultLabel
	}
	list.BindAddr = c.BindAddr
	if list.BindAddr == "" {
		list.BindAddr = "0.0.0.0"
	}
	list.BindPort = c.Port
	switch c.Port {
	case 0:
		list.BindPort = DefaultPort
	case -1:
		list.BindPort = 0
	}
	list.AdvertiseAddr = c.AdvertiseAddr
	list.AdvertisePort = c.AdvertisePort
	if list.AdvertisePort == 0 {
		list.AdvertisePort = list.BindPort
	}
	list.ProbeInterval = scaled(200 * time.Millisecond)
	list.ProbeTimeout = scaled(100 * time.Millisecond)
	list.SuspicionMult = 2
	list.SuspicionMaxTimeoutMult = 3
	list.AwarenessMaxMultiplier = 8
	list.GossipInterval = scaled(100 * time.Millisecond)
	list.GossipToTheDeadTime = 30 * time.Second
	list.PushPullInterval = 15 * time.Second // memberlist stretches it in large clusters
	list.TCPTimeout = tcpTimeout
	list.DeadNodeReclaimTime = scaled(2 * time.Second) // a restarted agent may have a new address
	list.EnableCompression = false                     // costs more than it saves: packets are small, keys random
	return list
}
