package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// pastPatience is how long a node may take to tell of its past.
const pastPatience = 5 * time.Second

// pastDay is how far back nodes know.
const pastDay = 24 * time.Hour

// nodeHistory answers nodes.past: the node itself keeps what it measured.
func (h *usageHandlers) nodeHistory(r *front.Request, _ *structs.Node) (*api.NodeHistory, error) {
	q := front.Query{R: r}
	since := q.Span("since", pastDay, pastDay)
	ask := structs.HistoryRequest{Points: int(cmp.Or(q.Int("points", 1, structs.HistoryPointsMax), structs.HistoryPointsDefault))}
	name := q.Text("device")
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	node := h.store.Snapshot().Node(r.ID)
	if node == nil {
		return nil, auth.NotFound(auth.ObjectNode, r.ID)
	}
	if name != "" {
		chosen, err := chooseDevice(node, name)
		if err != nil {
			return nil, err
		}
		ask.Devices = []string{chosen.ID}
	}
	ask.Since = structs.At(h.now().Add(-since))
	past, err := h.askHistory(r.Context(), node, &ask)
	if err != nil {
		return nil, err
	}
	return answer(historyOf(node, past))
}

func (h *usageHandlers) askHistory(ctx context.Context, node *structs.Node, ask *structs.HistoryRequest) (*structs.NodeHistory, error) {
	if node.RPCAddr == "" || node.Status != structs.NodeReady && node.Status != structs.NodeDisconnected {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", node.Name)
	}
	conn, err := h.calls.of(node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pastPatience)
	defer cancel()
	return rpc.Call[structs.HistoryRequest, structs.NodeHistory](ctx, conn, structs.MethodNodeHistory, ask)
}

// historyOf puts together what the state knows of a node's devices and what the
// node told of their past. Pure.
func historyOf(node *structs.Node, past *structs.NodeHistory) api.NodeHistory {
	out := api.NodeHistory{ID: node.ID, Name: node.Name, Step: past.Step, At: []structs.UnixNano{}, Machine: whole(past.Machine, past.Count), Devices: []api.CardHistory{}}
	for i := range min(past.Count, structs.HistoryPointsMax) {
		out.At = append(out.At, past.From+structs.UnixNano(i)*structs.UnixNano(past.Step))
	}
	for i := range past.Devices {
		one := api.CardHistory{ID: past.Devices[i].ID, Series: whole(past.Devices[i].Series, past.Count), Gone: true}
		if k := slices.IndexFunc(node.Devices, func(d structs.Device) bool { return d.ID == one.ID }); k >= 0 {
			d := &node.Devices[k]
			one.Index, one.Model, one.Gone = d.Index, d.Model, false
			one.Slice, _ = strconv.Atoi(d.Attrs[device.AttrSlice]) // 0: a whole card
		}
		out.Devices = append(out.Devices, one)
	}
	slices.SortStableFunc(out.Devices, func(a, b api.CardHistory) int {
		return cmp.Or(cmp.Compare(truth(a.Gone), truth(b.Gone)), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Slice, b.Slice), structs.CompareNames(a.ID, b.ID))
	})
	return out
}

// whole leaves out series that have not a value for each point: what a node
// says is not trusted.
func whole(all []structs.GaugeHistory, count int) []structs.GaugeHistory {
	kept := []structs.GaugeHistory{}
	for _, one := range all {
		if len(one.Values) == count {
			kept = append(kept, one)
		}
	}
	return kept
}
