package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/agent/config"
	"nomadlike/internal/filelock"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// Room below which a start is not worth trying, and below which it is said.
const (
	preflightSpace  = 16 << 20 // bytes
	preflightRoom   = 1 << 30
	preflightInodes = 1000
	preflightCert   = time.Hour // a certificate that ends sooner was not renewed in time
)

// Finding is one thing that a look before the start found.
type Finding struct {
	Place   string        `json:"place"`             // a file, a directory, an address or a name
	Warning bool          `json:"warning,omitempty"` // the agent starts all the same
	Problem structs.Error `json:"problem"`
}

// Preflight looks whether an agent with this configuration would start on this
// machine, and reports everything at once: the data directory with its owner, its
// lock, its identity, certificate and log, the room of its disk, the ports, the
// addresses, the directories that the configuration names. It changes nothing,
// asks no other machine, and may run beside an agent that uses the directory:
// what such a one holds, its ports, is no finding then. now is the present time.
func Preflight(config config.Config, now time.Time) []Finding {
	p := &preflight{config: config, now: now}
	p.dataDir()
	p.identity()
	p.room()
	p.ports()
	p.places()
	p.secrets()
	return p.found
}

type preflight struct {
	config  config.Config
	now     time.Time
	exists  bool // the data directory
	running bool // an agent uses it
	found   []Finding
}

func (p *preflight) refuse(place, id string, params ...any) {
	p.found = append(p.found, Finding{Place: place, Problem: *structs.NewError(structs.CodeInvalid, id, params...)})
}

func (p *preflight) warn(place, id string, params ...any) {
	p.found = append(p.found, Finding{Place: place, Warning: true, Problem: *structs.NewError(structs.CodeInvalid, id, params...)})
}

// tell takes an error of a part that has looked for itself.
func (p *preflight) tell(place string, err error) {
	var told *structs.Error
	if !errors.As(err, &told) {
		told = structs.NewError(structs.CodeInvalid, "agent.preflight.unreadable", "path", place, "cause", cause(err))
	}
	p.found = append(p.found, Finding{Place: place, Problem: *told})
}

// cause is what the system said, without the path that stands beside it.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// dataDir looks whether the data directory can be used, or made.
func (p *preflight) dataDir() {
	dir := p.config.DataDir
	if dir == "" { // a development agent makes one of its own
		return
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		above := nearest(dir)
		if unix.Access(above, unix.W_OK|unix.X_OK) != nil {
			p.refuse(dir, "agent.preflight.cannot_make", "path", dir, "above", above)
		}
		return
	}
	switch {
	case err != nil:
		p.tell(dir, err)
		return
	case !info.IsDir():
		p.refuse(dir, "agent.preflight.no_directory", "path", dir)
		return
	}
	p.exists = true
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		p.refuse(dir, "agent.preflight.owner", "path", dir, "uid", owner.Uid, "euid", os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		p.refuse(dir, "agent.preflight.writable", "path", dir, "mode", fmt.Sprintf("%04o", mode))
	}
	if unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil {
		p.refuse(dir, "agent.preflight.no_access", "path", dir)
		return
	}
	p.lock(filepath.Join(dir, lockFile))
}

// lock reports whether an agent uses the directory.
func (p *preflight) lock(path string) {
	file, err := os.Open(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.tell(path, err)
		}
		return
	}
	defer file.Close() // lets go of the lock
	if errors.Is(filelock.Take(file, 0), syscall.EWOULDBLOCK) {
		p.running = true
		p.warn(p.config.DataDir, "agent.preflight.running", "path", p.config.DataDir)
	}
}

// nearest is the closest directory above a path that exists.
func nearest(path string) string {
	for above := filepath.Dir(path); ; above = filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil || above == filepath.Dir(above) {
			return above
		}
	}
}

// identity looks at who the agent is, and at what it needs to become somebody.
func (p *preflight) identity() {
	if !p.exists || p.config.Dev {
		return
	}
	dir := filepath.Join(p.config.DataDir, identityDir)
	id, err := loadIdentity(p.config.DataDir)
	if err != nil {
		p.tell(dir, err)
		return
	}
	log := filepath.Join(p.config.DataDir, serverDir)
	if id == nil {
		p.nobody(log)
		return
	}
	if err := id.check(p.config); err != nil {
		if told := (*structs.Error)(nil); errors.As(err, &told) {
			p.tell(p.config.DataDir, told)
		} else {
			p.tell(log, logProblem(err))
		}
	}
	for _, name := range []string{agentKeyFile, gossipKeyFile, caKeyFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			p.refuse(filepath.Join(dir, name), "agent.preflight.readable", "path", filepath.Join(dir, name), "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
		}
	}
	end := structs.At(id.credentials.ExpiresAt())
	switch place := filepath.Join(dir, agentFile); {
	case id.credentials.Over(p.now):
		p.warn(place, "agent.preflight.cert_over", "end", end)
	case id.credentials.Early(p.now):
		p.warn(place, "agent.preflight.cert_early", "begin", structs.At(id.credentials.Certificate.Leaf.NotBefore))
	case p.now.Add(preflightCert).After(id.credentials.ExpiresAt()):
		p.warn(place, "agent.preflight.cert_soon", "end", end)
	}
	if p.config.Server.Enabled {
		p.log(log)
	}
}

// nobody looks at an agent without an identity: it joins, or founds.
func (p *preflight) nobody(log string) {
	switch {
	case p.config.JoinToken.Secret != "":
	case !p.config.Server.Enabled:
		p.tell(filepath.Join(p.config.DataDir, identityDir), refuseWithoutToken())
	default:
		if opened, err := consensus.WasOpened(log); err != nil {
			p.tell(log, err)
		} else if opened {
			p.refuse(log, "agent.preflight.log_alone", "path", log)
		}
	}
}

// log verifies what a server's log and snapshots can be verified by without
// opening them.
func (p *preflight) log(dir string) {
	for _, err := range consensus.Verify(dir) {
		place := dir
		if damaged := (*consensus.CorruptError)(nil); errors.As(err, &damaged) {
			place = damaged.File
		}
		p.tell(place, logProblem(err))
	}
}

// room looks at the file system of the data directory.
func (p *preflight) room() {
	if p.config.DataDir == "" {
		return
	}
	place := p.config.DataDir
	if !p.exists {
		place = nearest(place)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(place, &stat); err != nil {
		p.tell(place, err)
		return
	}
	free := int64(stat.Bavail) * stat.Bsize
	switch {
	case stat.Flags&unix.ST_RDONLY != 0:
		p.refuse(place, "agent.preflight.read_only", "path", place)
	case free < preflightSpace:
		p.refuse(place, "agent.preflight.full", "path", place, "free", structs.FormatSize(free/structs.KiB*structs.KiB))
	case free < preflightRoom:
		p.warn(place, "agent.preflight.little", "path", place, "free", structs.FormatSize(free/structs.MiB*structs.MiB))
	}
	if stat.Files > 0 && stat.Ffree < preflightInodes {
		p.warn(place, "agent.preflight.inodes", "path", place, "free", stat.Ffree)
	}
}

// ports looks whether the agent could listen.
func (p *preflight) ports() {
	if !hasAddress(p.config.Advertise) {
		p.warn(p.config.Advertise, "agent.preflight.advertise", "address", p.config.Advertise)
	}
	if p.running {
		return // they are its
	}
	for _, port := range []struct {
		network string
		number  int
	}{{"tcp", p.config.HTTPPort}, {"tcp", p.config.Gossip}, {"udp", p.config.Gossip}} {
		address := net.JoinHostPort(p.config.Bind, strconv.Itoa(port.number))
		if err := tryListen(port.network, address); err != nil {
			p.refuse(address, "agent.preflight.port", "address", address, "network", port.network, "cause", listenCause(err))
		}
	}
}

// tryListen takes a port for a moment.
func tryListen(network, address string) error {
	if network == "udp" {
		conn, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// listenCause is what the system said of a port.
func listenCause(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}

// hasAddress reports whether this machine has an address; one that cannot be
// told is taken for its own.
func hasAddress(address string) bool {
	ip := net.ParseIP(address)
	all, err := net.InterfaceAddrs()
	if ip == nil || ip.IsUnspecified() || err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		network, ok := one.(*net.IPNet)
		return ok && network.IP.Equal(ip)
	})
}

// places looks at the directories that the configuration names.
func (p *preflight) places() {
	if dir := p.config.PluginDir; dir != "" {
		p.directory("plugin_dir", dir, false)
	}
	if !p.config.Client.Enabled {
		return
	}
	for _, storage := range p.config.Client.Storages {
		if storage.Remote {
			continue
		}
		// Of a template only what comes before its first word is there already.
		dir := storage.Path
		if word := strings.IndexByte(dir, '{'); word >= 0 {
			dir = filepath.Dir(dir[:word] + "x")
		}
		p.directory("storage "+storage.Name, dir, true)
	}
}

func (p *preflight) directory(name, dir string, warning bool) {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
	case err == nil:
		p.refuse(dir, "agent.preflight.no_directory", "path", dir)
	case warning:
		p.warn(dir, "agent.preflight.missing", "name", name, "path", dir, "cause", cause(err))
	default:
		p.refuse(dir, "agent.preflight.missing", "name", name, "path", dir, "cause", cause(err))
	}
}

// secrets looks who may read the join token: its own file, or else the files of the
// configuration, one of which may hold it.
func (p *preflight) secrets() {
	if p.config.JoinToken.Secret == "" {
		return
	}
	files := p.config.Files
	if p.config.JoinFile != "" {
		files = []string{p.config.JoinFile}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err == nil && info.Mode().Perm()&0o004 != 0 {
			p.warn(file, "agent.preflight.token_readable", "path", file, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
		}
	}
}
