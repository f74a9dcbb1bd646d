package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func clusterVerbs() []verb {
	return []verb{
		{path: "server members", setup: serverMembers},
		{path: "server join", args: "ADDRESS...", setup: serverJoin},
		{path: "event stream", setup: eventStream},
		{path: "operator raft list-peers", setup: raftListPeers},
		{path: "operator raft remove-peer", args: "SERVER", setup: raftRemovePeer},
		{path: "operator raft recover", args: "DATA_DIR [DATA_DIR|https://HOST:PORT]...", setup: raftRecover},
		{path: "operator raft add-peer", args: "SERVER", setup: raftAddPeer},
		{path: "operator autopilot health", setup: autopilotHealth},
		{path: "operator snapshot save", args: "FILE", setup: snapshotSave},
		{path: "operator snapshot restore", args: "FILE", setup: snapshotRestore},
		{path: "operator snapshot inspect", args: "FILE", setup: snapshotInspect},
		{path: "operator metrics", setup: operatorMetrics},
		{path: "operator debug", setup: operatorDebug},
		{path: "operator monitoring", args: "DIR", setup: operatorMonitoring},
	}
}

func serverMembers(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.Member, error) {
		list, err := client.Members(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Members), nil
	}, func(env *Env, members []api.Member) {
		table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.role"), env.text("cli.col.address"),
			env.text("cli.col.state"), env.text("cli.col.leader"), env.text("cli.col.version"))
		for _, m := range members {
			leader := ""
			if m.Leader {
				leader = "*"
			}
			table.row(short(m.ID), safe(m.Name), m.Role, m.RPCAddr, m.Status, leader, safe(m.Version))
		}
		table.print()
	})(set)
}

func serverJoin(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "ADDRESS")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		joined, err := client.JoinServers(env.Context, args)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.server.joined", "joined", joined.Joined, "asked", len(args)))
		return nil
	}
}

func eventStream(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	filter := api.EventFilter{}
	set.Uint64Var(&filter.Index, "index", 0, "cli.flag.index")
	cursor := set.String("cursor", "", "cli.flag.cursor")
	set.StringVar(&filter.JobID, "job", "", "cli.flag.job")
	connection.means(set, "cli.flag.project")
	topics := set.String("topic", "", "cli.flag.topic")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		filter.Project = *connection.project
		if *topics != "" {
			filter.Topics = strings.Split(*topics, ",")
		}
		for _, topic := range filter.Topics {
			if !slices.Contains(eventTopics(), topic) {
				return usagef("cli.bad_topic", "value", safe(topic), "known", joined(eventTopics()))
			}
		}
		if *cursor != "" {
			after, ok := structs.ParseCursor(*cursor)
			if !ok {
				return usagef("cli.bad_cursor", "value", safe(*cursor))
			}
			filter.After = after
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if filter.JobID != "" { // the stream wants the whole id
			detail, _, err := client.Job(env.Context, filter.JobID, nil)
			if err != nil {
				return err
			}
			filter.JobID = detail.Job.ID
		}
		for {
			stream, err := client.Events(env.Context, filter)
			if err != nil {
				return err
			}
			err = env.printEvents(stream, output)
			filter.After = stream.Cursor()
			closing := stream.Close()
			if env.Context.Err() != nil {
				return env.Context.Err()
			}
			var refused *structs.Error
			if errors.As(err, &refused) {
				return errors.Join(err, closing)
			}
			// The agent stopped, or the connection broke: go on where it was.
			if !pause(env.Context, logRetry) {
				return env.Context.Err()
			}
		}
	}
}

// eventTopics lists what events can be about.
func eventTopics() []string {
	return []string{"job", "attempt", "alloc", "node", "token", "cluster", "data"}
}

// printEvents prints until the stream ends, and returns why it did.
func (env *Env) printEvents(stream *api.EventStream, output outputFlags) error {
	for {
		event, err := stream.Next()
		if err != nil {
			return err
		}
		if *output.json {
			line := struct {
				*structs.Event
				Cursor string `json:"cursor"` // for -cursor
			}{event, event.Cursor().String()}
			if err := jsonLine(env.Stdout, line); err != nil {
				return err
			}
			continue
		}
		if err := env.show(output, event, func() { env.printEvent(event) }); err != nil {
			return err
		}
	}
}

func raftListPeers(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.RaftPeerList, error) {
		return client.RaftPeers(env.Context)
	}, func(env *Env, peers *api.RaftPeerList) {
		table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.address"), env.text("cli.col.voter"), env.text("cli.col.leader"))
		for _, peer := range peers.Peers {
			table.row(peer.ID, safe(peer.Name), peer.Addr, env.yesNo(peer.Voter), env.yesNo(peer.Leader))
		}
		table.print()
		for _, removed := range peers.Removed {
			fmt.Fprintln(env.Stdout, env.text("cli.operator.peer_out", "id", removed.ID, "by", safe(removed.By), "at", when(removed.At)))
		}
	})(set)
}

func raftRemovePeer(set *flag.FlagSet) func(*Env, []string) error {
	return changePeer(set, (*api.Client).RemoveRaftPeer, "cli.operator.peer_removed")
}

func raftAddPeer(set *flag.FlagSet) func(*Env, []string) error {
	return changePeer(set, (*api.Client).AddRaftPeer, "cli.operator.peer_back")
}

func changePeer(set *flag.FlagSet, change func(*api.Client, context.Context, string) (*api.Changed, error), done string) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		id, err := one(args, "SERVER")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := change(client, env.Context, id); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text(done, "id", id))
		return nil
	}
}

func autopilotHealth(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.AutopilotHealth, error) {
		return client.Autopilot(env.Context)
	}, func(env *Env, health *api.AutopilotHealth) {
		fmt.Fprintln(env.Stdout, env.text("cli.operator.tolerance", "healthy", env.yesNo(health.Healthy), "tolerance", health.FailureTolerance))
		table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.address"), env.text("cli.col.voter"),
			env.text("cli.col.leader"), env.text("cli.col.state"), env.text("cli.col.healthy"))
		for _, s := range health.Servers {
			table.row(s.ID, safe(s.Name), s.Addr, env.yesNo(s.Voter), env.yesNo(s.Leader), s.Status, env.yesNo(s.Healthy))
		}
		table.print()
		for _, s := range health.Servers {
			name := safe(s.Name)
			if name == "" {
				name = s.ID
			}
			if s.DiskFull {
				fmt.Fprintln(env.Stdout, env.text("event.cluster.server_full", "server", name))
			}
			if s.BackupFailed != "" {
				fmt.Fprintln(env.Stdout, env.text("event.cluster.backup_failed", "server", name, "reason", safe(s.BackupFailed)))
			}
		}
		agentNotes(env, health)
	})(set)
}

// agentNotes prints what is wrong with the agents together, and the cure of each.
func agentNotes(env *Env, health *api.AutopilotHealth) {
	for _, one := range health.Certificates {
		fmt.Fprintln(env.Stdout, env.text("cli.operator.certificate_ends", "agent", safe(cmp.Or(one.Name, one.ID)), "at", when(one.EndsAt)))
	}
	if len(health.Certificates) > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.operator.certificate_ends.hint"))
	}
	if len(health.Versions) < 2 {
		return
	}
	for _, one := range health.Versions {
		names := safe(strings.Join(one.Names, " "))
		if one.Agents > len(one.Names) {
			names += " …"
		}
		fmt.Fprintln(env.Stdout, env.text("cli.operator.version", "version", safe(one.Version), "count", one.Agents, "agents", names))
	}
	fmt.Fprintln(env.Stdout, env.text("cli.operator.version.hint"))
}

func snapshotSave(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	stale := set.Bool("stale", false, "cli.flag.snapshot_stale")
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		partial := path + ".partial"
		file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("create snapshot file: %w", err)
		}
		defer os.Remove(partial)
		save := client.SaveSnapshot
		if *stale {
			save = client.SaveStaleSnapshot
		}
		written, err := save(env.Context, file)
		if err == nil {
			err = file.Sync()
		}
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return err
		}
		if err := os.Rename(partial, path); err != nil {
			return fmt.Errorf("name snapshot file: %w", err)
		}
		fmt.Fprintln(env.Stdout, env.text("cli.snapshot.saved", "path", path, "size", size(written)))
		return nil
	}
}

func snapshotRestore(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	foreign := set.Bool("foreign", false, "cli.flag.snapshot_foreign")
	yes := set.Bool("yes", false, "cli.flag.yes")
	return func(env *Env, args []string) error {
		client, file, err := env.snapshotFile(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		defer file.Close()
		restore := client.RestoreSnapshot
		if *foreign {
			restore = client.RestoreForeignSnapshot
			if err := env.confirm(*yes, env.text("cli.snapshot.ask_foreign")); err != nil {
				return err
			}
		}
		changed, err := restore(env.Context, file)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.snapshot.restored", "index", changed.Index))
		if keys, err := client.SecretKeys(env.Context); err == nil { // what is lacking is told at any later time, too
			for _, lacking := range keys.Lacking {
				fmt.Fprintln(env.Stderr, env.text("cli.secrets.lacking", "key", safe(lacking)))
			}
		}
		return nil
	}
}

func snapshotInspect(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		client, file, err := env.snapshotFile(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		defer file.Close()
		meta, err := client.InspectSnapshot(env.Context, file)
		if err != nil {
			return err
		}
		return env.show(output, meta, func() {
			fields := newTable(env.Stdout, "", "")
			fields.row(env.text("cli.col.cluster"), meta.Cluster)
			fields.row(env.text("cli.col.index"), strconv.FormatUint(meta.Index, 10))
			fields.row(env.text("cli.col.term"), strconv.FormatUint(meta.Term, 10))
			fields.row(env.text("cli.col.size"), size(meta.Size))
			fields.row("SHA-256", meta.SHA256)
			fields.row(env.text("cli.col.taken"), when(meta.TakenAt))
			for _, key := range meta.SecretKeys {
				fields.row(env.text("cli.col.secret_keys"), safe(key))
			}
			fields.print()
		})
	}
}

func (env *Env) snapshotFile(connection connectionFlags, args []string) (*api.Client, *os.File, error) {
	path, err := one(args, "FILE")
	if err != nil {
		return nil, nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	client, err := env.connect(connection)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return client, file, nil
}

func operatorMetrics(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Metrics(env.Context, env.Stdout)
	}
}
