package trace

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Pool is a virtual cluster: equal nodes that take the jobs of one group.
type Pool struct {
	Name  string // the group of its jobs; "" takes the jobs of every group
	Nodes int
	GPUs  int // of each node
}

// ReadPools parses the sizes of pools: CSV with the columns vc and nodes, and
// gpus_per_node if pools differ in it; gpus is what nodes have otherwise.
// Problems are *structs.Error and name the file and the line.
func ReadPools(name string, from io.Reader, gpus int) ([]Pool, error) {
	reader := csv.NewReader(from)
	reader.FieldsPerRecord = -1
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, structs.NewError(structs.CodeInvalid, "sim.trace.pools_empty", "file", name)
	}
	if err != nil {
		return nil, csvProblem(name, err)
	}
	at := make(map[string]int, len(header))
	for i, column := range header {
		at[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(column, "\ufeff")))] = i
	}
	for _, column := range []string{"vc", "nodes"} {
		if _, ok := at[column]; !ok {
			return nil, place{name, 1}.problem("sim.trace.column_missing", "column", column, "known", "vc,nodes,gpus_per_node")
		}
	}
	var pools []Pool
	seen := make(map[string]bool)
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, csvProblem(name, err)
		}
		line, _ := reader.FieldPos(0)
		pool, err := poolOf(place{name, line}, at, record, len(header), gpus)
		switch {
		case err != nil:
			return nil, err
		case seen[pool.Name]:
			return nil, place{name, line}.problem("sim.trace.pool_twice", "pool", shown(pool.Name))
		case len(pools) == PoolsMax:
			return nil, place{name, line}.problem("sim.trace.too_many", "max", PoolsMax)
		}
		seen[pool.Name] = true
		pools = append(pools, pool)
	}
	if len(pools) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "sim.trace.pools_empty", "file", name)
	}
	return pools, nil
}

// poolOf reads one line.
func poolOf(here place, at map[string]int, record []string, width, gpus int) (Pool, error) {
	if len(record) != width {
		return Pool{}, here.problem("sim.trace.fields", "found", len(record), "want", width)
	}
	pool := Pool{Name: strings.TrimSpace(record[at["vc"]]), GPUs: gpus}
	switch {
	case pool.Name == "":
		return Pool{}, here.problem("sim.trace.blank", "column", "vc")
	case len(pool.Name) > fieldMax:
		return Pool{}, here.problem("sim.trace.too_long", "column", "vc", "max", fieldMax)
	case !utf8.ValidString(pool.Name):
		return Pool{}, here.problem("sim.trace.utf8", "column", "vc")
	}
	var err error
	if pool.Nodes, err = here.number("nodes", strings.TrimSpace(record[at["nodes"]]), GPUsMax); err != nil {
		return Pool{}, err
	}
	if i, ok := at["gpus_per_node"]; ok && strings.TrimSpace(record[i]) != "" {
		if pool.GPUs, err = here.number("gpus_per_node", strings.TrimSpace(record[i]), GPUsMax); err != nil {
			return Pool{}, err
		}
	}
	if pool.Nodes < 1 || pool.GPUs < 1 || pool.Nodes > GPUsMax/pool.GPUs {
		return Pool{}, here.problem("sim.trace.pool_size", "pool", shown(pool.Name), "nodes", pool.Nodes, "gpus", pool.GPUs, "max", GPUsMax)
	}
	return pool, nil
}
