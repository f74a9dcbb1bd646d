// Attack is the red team: three scripts against a running cluster, one with
// nothing, one with a plain user's token, one with the certificate and keys of
// a node. Each line of the output says that an attack was held, or BROKEN, and
// the run ends non-zero when anything broke.
//
// Every line has a control: the same request with the right credentials works,
// or what the attack would change was seen before. Where the control fails,
// nothing was attacked, and the line is BROKEN as well. Behind each line stands
// in brackets what its control was.
//
// scripts/attack.sh makes the cluster, runs the scripts from hosts of their own,
// and the floods, whose figures it takes. The administrator's token serves
// controls and judgements, never an attack.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// patience bounds what is asked of the cluster for one line.
const patience = 40 * time.Second

// target is the cluster that is attacked, and what the script holds.
type target struct {
	servers []string // host:port of their ports
	gossip  []string // host:port of all members' gossip
	ca      []byte
	admin   *api.Client // the judge
	token   string      // of a plain user of project plain

	adminToken string
	members    int // that gossip knows

	setup  string // the setup secret, which was used
	bind   string // an address of this host
	node   string // data directory of the compromised node
	server string // data directory of a server: for controls
	other  string // data directory of a node that is not compromised
	shared string // a directory that every task may read

	broken  int
	victims int // jobs of another project that were begun
}

// line makes one attack. The control comes first and says by an error that the
// attack would show nothing; attack returns what was broken.
func (t *target) line(name, controlled string, control, attack func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := control(ctx); err != nil {
		t.broken++
		fmt.Printf("BROKEN  %s: not tried, the control failed: %v\n", name, err)
		return
	}
	if err := attack(ctx); err != nil {
		t.broken++
		fmt.Printf("BROKEN  %s: %v\n", name, err)
		return
	}
	fmt.Printf("held    %s [%s]\n", name, controlled)
}

// client speaks to the servers with a token.
func (t *target) client(token string, addrs ...string) (*api.Client, error) {
	if len(addrs) == 0 {
		addrs = t.servers
	}
	client, err := api.New(api.Config{Address: "https://" + strings.Join(addrs, ",https://"), CAPEM: t.ca, Token: token, RetryFor: -1})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// refusedAs says what is wrong when err is not a refusal with one of codes.
func refusedAs(err error, codes ...structs.ErrorCode) error {
	if err == nil {
		return errors.New("it was done")
	}
	var refusal *structs.Error
	if errors.As(err, &refusal) {
		fmt.Printf("        refused: %s %s\n", refusal.ID, refusal.Message)
	}
	for _, code := range codes {
		if structs.CodeOf(err) == code {
			return nil
		}
	}
	return fmt.Errorf("refused for another reason: %w", err)
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	return strings.TrimSpace(string(data))
}

func main() {
	t := new(target)
	script := flag.String("script", "", "stranger, user, node, both, flood or judge")
	servers := flag.String("servers", "", "addresses of the servers, with commas")
	gossip := flag.String("gossip", "", "addresses of everybody's gossip, with commas")
	ca := flag.String("ca", "", "file with the CA")
	admin := flag.String("admin", "", "file with an administrator's token")
	token := flag.String("token", "", "file with a plain user's token")
	setup := flag.String("setup", "", "file with the setup secret")
	kind := flag.String("kind", "", "of flood: silent, heads, bodies, gossip or idle")
	count := flag.Int("count", 0, "connections of the flood")
	span := flag.Duration("for", 10*time.Second, "how long to flood or to judge")
	flag.StringVar(&t.bind, "bind", "127.0.0.1", "address of this host")
	flag.StringVar(&t.node, "node", "", "data directory of the compromised node")
	flag.StringVar(&t.server, "server", "", "data directory of a server")
	flag.StringVar(&t.other, "other", "", "data directory of another node")
	flag.StringVar(&t.shared, "shared", "", "directory that tasks may read")
	flag.Parse()
	t.servers, t.gossip = strings.Split(*servers, ","), strings.Split(*gossip, ",")
	if *script == "flood" {
		addrs := t.servers
		if *kind == "gossip" {
			addrs = t.gossip
		}
		if err := flood(*kind, addrs, *count, *span); err != nil {
			fmt.Fprintln(os.Stderr, "attack:", err)
			os.Exit(1)
		}
		return
	}
	t.ca = []byte(read(*ca) + "\n")
	var err error
	t.adminToken = read(*admin)
	if t.admin, err = t.client(t.adminToken); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	if *token != "" {
		t.token = read(*token)
	}
	if *setup != "" {
		t.setup = read(*setup)
	}
	switch *script {
	case "stranger":
		t.stranger()
	case "user":
		t.user()
	case "both":
		t.both()
	case "node":
		t.rogue()
	case "judge":
		t.judge(*span)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if t.broken > 0 {
		os.Exit(1)
	}
}

// hostOf is the part of an address before its port.
func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	return host
}
