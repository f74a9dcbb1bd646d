package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// TestDataSweep: a sweep asks a node of each storage what is left there, and has removed
// what the log does not go on with. The log is read after the node has answered.
func TestDataSweep(t *testing.T) {
	store, index := state.New(), uint64(0)
	apply := func(kind structs.CommandKind, body any) {
		t.Helper()
		command, err := wire.EncodeCommand(kind, 1, "tester", body)
		if err != nil {
			t.Fatal(err)
		}
		index++
		if result := store.Apply(index, command); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
		ID: "n1", Name: "n1", RPCAddr: "10.0.0.1:1", Drivers: []string{"exec"}, Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40},
		Storages: []string{"dataset/nas", "model/nas"}, Attributes: map[string]string{structs.AttrProtocol: strconv.Itoa(wire.ProtocolVersion)},
	}})
	object := structs.DataObject{Project: "vision", Kind: "dataset", Name: "cifar10", Owner: "li", Access: "project", Storage: "nas"}
	leads, asked := true, []string(nil)
	sweeper := &dataSweeper{
		snapshot: store.Snapshot, leads: func() bool { return leads }, log: slog.New(slog.DiscardHandler),
		consistent: func(context.Context) (*state.Snapshot, error) { return store.Snapshot(), nil },
		call: func(_ context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error) {
			if ask.What == structs.DataAskClear {
				asked = append(asked, node.ID+" "+ask.Place.Kind+" "+ask.Upload+" "+strconv.FormatBool(ask.End))
				return &structs.DataReply{Done: true}, nil
			}
			if ask.Place.Kind == structs.StorageModel {
				return nil, errors.New("the storage is away")
			}
			apply(structs.CommandDataBegin, &structs.DataBegin{Object: object, UploadID: "begun-meanwhile"})
			return &structs.DataReply{Done: true, List: []structs.DataFile{{ID: "given-up"}, {ID: "begun-meanwhile"}}}, nil
		},
	}
	sweeper.sweep(t.Context())
	if want := []string{"n1 dataset given-up true"}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	leads = false
	if sweeper.sweep(t.Context()); len(asked) != 1 {
		t.Errorf("who does not lead has removed: %q", asked)
	}
}
