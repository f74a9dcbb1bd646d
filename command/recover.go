//go:build linux && !cli

package command

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"nomadlike/agent"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// survivor is what one server of a cluster without a majority still holds.
type survivor struct {
	where string
	consensus.Remains
}

func raftRecover(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	var peers listFlag
	set.Var(&peers, "peer", "cli.flag.recover_peer")
	addr := set.String("advertise", "", "cli.flag.recover_address")
	snapshot := set.String("snapshot", "", "cli.flag.recover_snapshot")
	yes := set.Bool("yes", false, "cli.flag.yes")
	show := set.Bool("show", false, "cli.flag.recover_show")
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "DATA_DIR")
		}
		options := agent.RecoverOptions{DataDir: args[0], Snapshot: *snapshot, Addr: *addr, Now: time.Now()}
		for _, text := range peers {
			id, at, ok := strings.Cut(text, "=")
			if !ok || id == "" || !strings.Contains(at, ":") {
				return usagef("cli.recover.bad_peer", "value", safe(text))
			}
			options.Peers = append(options.Peers, consensus.Peer{ID: id, Addr: at, Voter: true})
		}
		if *snapshot != "" {
			if err := env.showArchive(*snapshot); err != nil {
				return err
			}
		} else if err := env.showSurvivors(connection, args); err != nil {
			return err
		}
		if *show {
			return nil
		}
		if err := env.confirm(*yes, env.text("cli.recover.ask", "dir", args[0], "peers", strconv.Itoa(len(peers)+1))); err != nil {
			return err
		}
		done, err := agent.Recover(options)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.recover.done", "id", done.ID, "until", moment(done.Until)))
		if done.Kept != "" {
			fmt.Fprintln(env.Stdout, env.text("cli.recover.kept", "dir", done.Kept))
		}
		fmt.Fprintln(env.Stdout, env.text("cli.recover.next"))
		return nil
	}
}

// showArchive reports what the archive is from which a cluster is to begin again.
func (env *Env) showArchive(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	defer file.Close()
	meta, err := consensus.InspectSnapshot(file)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "agent.snapshot_broken", "reason", err).Because(err)
	}
	fmt.Fprintln(env.Stdout, env.text("cli.recover.archive", "path", path, "cluster", meta.ClusterID,
		"index", strconv.FormatUint(meta.Index, 10), "at", moment(meta.CreatedAt)))
	return nil
}

// showSurvivors reports what each server that is left holds, and refuses to go on
// from the first when another one holds more.
func (env *Env) showSurvivors(connection connectionFlags, places []string) error {
	survivors := make([]survivor, 0, len(places))
	for _, place := range places {
		found, err := env.lookAt(connection, place)
		if err != nil {
			return err
		}
		survivors = append(survivors, found)
	}
	table := newTable(env.Stdout, env.text("cli.col.place"), "ID", env.text("cli.col.term"), env.text("cli.col.index"), env.text("cli.col.newest_entry"))
	for _, s := range survivors {
		table.row(safe(s.where), s.ServerID, strconv.FormatUint(s.LastTerm, 10), strconv.FormatUint(s.LastIndex, 10), moment(s.LastAt))
	}
	table.print()
	for _, peer := range survivors[0].Peers {
		fmt.Fprintln(env.Stdout, env.text("cli.recover.peer", "id", peer.ID, "address", peer.Addr))
	}
	for _, other := range survivors[1:] {
		switch {
		case other.ClusterID != "" && other.ClusterID != survivors[0].ClusterID:
			return structs.NewError(structs.CodeConflict, "cli.recover.other_cluster", "place", other.where, "have", other.ClusterID, "want", survivors[0].ClusterID)
		case other.Newer(survivors[0].Remains):
			return structs.NewError(structs.CodeConflict, "cli.recover.newer", "place", other.where, "dir", survivors[0].where)
		}
	}
	return nil
}

// lookAt asks a directory, or a server that runs, what it holds.
func (env *Env) lookAt(connection connectionFlags, place string) (survivor, error) {
	if !strings.HasPrefix(place, "https://") {
		remains, err := agent.Remains(place)
		return survivor{where: filepath.Clean(place), Remains: remains}, err
	}
	*connection.address = place
	client, err := env.connect(connection)
	if err != nil {
		return survivor{}, err
	}
	defer client.Close()
	self, err := client.AgentSelf(env.Context)
	if err != nil {
		return survivor{}, err
	}
	return runningSurvivor(place, self), nil
}

func runningSurvivor(place string, self *api.AgentSelf) survivor {
	s := survivor{where: place}
	s.ServerID, s.ClusterID = self.ID, self.Cluster
	s.LastIndex, _ = strconv.ParseUint(self.Stats["raft_last_index"], 10, 64) // 0: an agent that is no server
	s.LastTerm, _ = strconv.ParseUint(self.Stats["raft_last_term"], 10, 64)
	return s
}

// moment is a time as people and their logs write it.
func moment(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
