package launch

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// The slow twins of what is written by hand: the same tables as structs, written
// by encoding/json.

// Rank tables and clusters are the bytes that encoding/json writes.
func TestWrittenByHandAsByTheEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, form := range []string{"v1.0", "v1.2", "group_list", "group_list_short"} {
			b := drawnGang(t, &structs.Job{Distributed: structs.Distributed{Mode: structs.ModeMindSpore, RankTable: form}})
			got, err := b.rankTableText()
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.MarshalIndent(b.twin(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want)+"\n", got); diff != "" {
				t.Fatalf("%s: %s", form, diff)
			}
		}
		j := &structs.Job{Distributed: structs.Distributed{
			Mode: structs.ModeTensorFlow, Chief: rapid.Bool().Draw(t, "chief"),
			ParameterServers: rapid.IntRange(0, 3).Draw(t, "servers"),
		}}
		b := drawnGang(t, j)
		got, err := b.tfClusterText()
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(b.twinCluster())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Fatal(diff)
		}
		// A text with anything in it, by itself.
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var w jsonText
		w.quote(text)
		if want, _ = json.Marshal(text); string(want) != string(w.text) {
			t.Fatalf("%q is written %s, and %s by the encoder", text, w.text, want)
		}
	})
}

// drawnGang is a gang of a few nodes, each with cards; some of what it says is
// empty and some needs escapes.
func drawnGang(t *rapid.T, job *structs.Job) *build {
	word := rapid.SampledFrom([]string{"", "10.0.0.1", "fd00::1", "a\"b", "<&>", "\u2028é", "\xff", "pod-1", "pod-2"})
	job.Nodes = rapid.IntRange(1, 6).Draw(t, "nodes")
	b := &build{job: job, members: make([]structs.Member, job.RanksOf(job.Nodes)), node: NodeFacts{PrivateHosts: rapid.Bool().Draw(t, "private")}}
	for i := range b.members {
		m := &b.members[i]
		m.Rank, m.Name, m.Addr = i, "n"+strconv.Itoa(i), word.Draw(t, "address")
		if rapid.Bool().Draw(t, "port") {
			m.Ports = map[string]int{structs.MasterPortName: 20000 + i}
		}
		for k := range rapid.IntRange(1, 4).Draw(t, "cards") {
			m.Cards = append(m.Cards, structs.Card{
				Index: k, IP: "198.51.100." + strconv.Itoa(k) + word.Draw(t, "ip"),
				SuperID: word.Draw(t, "id"), SuperPod: word.Draw(t, "pod"),
			})
		}
	}
	if len(b.members) == 1 {
		b.members[0].Cards[0].IP = word.Draw(t, "only") // which may have none
	}
	return b
}

func (b *build) twin() any {
	switch b.job.Distributed.RankTable {
	case "v1.2":
		return b.twinV1(true)
	case "group_list":
		return b.twinGroupList()
	case "group_list_short":
		return b.twinGroupListShort()
	default:
		return b.twinV1(false)
	}
}

type tfCluster struct {
	Chief  []string `json:"chief,omitempty"`
	PS     []string `json:"ps,omitempty"`
	Worker []string `json:"worker,omitempty"`
}

func (b *build) twinCluster() tfCluster {
	var cluster tfCluster
	for i := range b.members {
		address := b.members[i].Name
		if !b.node.PrivateHosts {
			address = b.members[i].Addr
		}
		address = hostPort(address, b.portOf(i))
		switch {
		case b.job.IsServer(i):
			cluster.PS = append(cluster.PS, address)
		case b.job.Distributed.Chief && i == 0:
			cluster.Chief = []string{address}
		default:
			cluster.Worker = append(cluster.Worker, address)
		}
	}
	return cluster
}

// Rank table 1.0 and 1.2; every number is a text.
type (
	tableV1 struct {
		Status      string       `json:"status"`
		Version     string       `json:"version"`
		ServerCount string       `json:"server_count"`
		ServerList  []serverV1   `json:"server_list"`
		SuperPods   []superPodV1 `json:"super_pod_list,omitempty"`
	}
	serverV1 struct {
		ServerID string     `json:"server_id"`
		HostIP   string     `json:"host_ip,omitempty"`
		Device   []deviceV1 `json:"device"`
	}
	deviceV1 struct {
		DeviceID      string `json:"device_id"`
		DeviceIP      string `json:"device_ip,omitempty"`
		SuperDeviceID string `json:"super_device_id,omitempty"`
		RankID        string `json:"rank_id"`
	}
	superPodV1 struct {
		SuperPodID string          `json:"super_pod_id"`
		ServerList []superServerV1 `json:"server_list"`
	}
	superServerV1 struct {
		ServerID string `json:"server_id"`
	}
)

func (b *build) twinV1(pods bool) tableV1 {
	table := tableV1{Status: "completed", Version: "1.0", ServerCount: strconv.Itoa(len(b.members))}
	if pods {
		table.Version = "1.2"
	}
	rank := 0
	at := make(map[string]int) // super pods by id
	for _, m := range b.members {
		server := serverV1{ServerID: m.Addr}
		if pods {
			server.HostIP = m.Addr
		}
		for _, card := range m.Cards {
			device := deviceV1{DeviceID: strconv.Itoa(card.Index), DeviceIP: card.IP, RankID: strconv.Itoa(rank)}
			if pods {
				device.SuperDeviceID = card.SuperID
			}
			server.Device = append(server.Device, device)
			rank++
		}
		table.ServerList = append(table.ServerList, server)
		if !pods {
			continue
		}
		pod := m.Cards[0].SuperPod
		if pod == "" {
			continue // of a kind that has no super pods
		}
		if _, known := at[pod]; !known {
			at[pod] = len(table.SuperPods)
			table.SuperPods = append(table.SuperPods, superPodV1{SuperPodID: pod})
		}
		table.SuperPods[at[pod]].ServerList = append(table.SuperPods[at[pod]].ServerList, superServerV1{m.Addr})
	}
	return table
}

// The two old forms, group_list.
type (
	groupTable struct {
		BoardID     string      `json:"board_id"`
		ChipInfo    string      `json:"chip_info"`
		DeployMode  string      `json:"deploy_mode"`
		GroupCount  string      `json:"group_count"`
		GroupList   []groupFull `json:"group_list"`
		NICLocation string      `json:"para_plane_nic_location"`
		NICName     []string    `json:"para_plane_nic_name"`
		NICNum      string      `json:"para_plane_nic_num"`
		Status      string      `json:"status"`
	}
	groupFull struct {
		DeviceNum     string         `json:"device_num"`
		ServerNum     string         `json:"server_num"`
		GroupName     string         `json:"group_name"`
		InstanceCount string         `json:"instance_count"`
		InstanceList  []instanceFull `json:"instance_list"`
	}
	instanceFull struct {
		Devices  []deviceOfGroup `json:"devices"`
		RankID   string          `json:"rank_id"`
		ServerID string          `json:"server_id"`
	}
	deviceOfGroup struct {
		DeviceID string `json:"device_id"`
		DeviceIP string `json:"device_ip"`
	}
	groupTableShort struct {
		GroupList  []groupShort `json:"group_list"`
		Status     string       `json:"status"`
		GroupCount string       `json:"group_count"`
	}
	groupShort struct {
		InstanceList  []instanceShort `json:"instance_list"`
		GroupName     string          `json:"group_name"`
		DeviceCount   string          `json:"device_count"`
		InstanceCount string          `json:"instance_count"`
	}
	instanceShort struct {
		Devices  []deviceOfGroup `json:"devices"`
		PodName  string          `json:"pod_name"`
		ServerID string          `json:"server_id"`
	}
)

// twinGroupList has one instance for each card, ranks running through. Its network
// ports are those of the first node: the table is one for all.
func (b *build) twinGroupList() groupTable {
	group := groupFull{ServerNum: strconv.Itoa(len(b.members))}
	for _, m := range b.members {
		for _, card := range m.Cards {
			group.InstanceList = append(group.InstanceList, instanceFull{
				Devices: []deviceOfGroup{{strconv.Itoa(card.Index), card.IP}},
				RankID:  strconv.Itoa(len(group.InstanceList)), ServerID: m.Addr,
			})
		}
	}
	group.DeviceNum = strconv.Itoa(len(group.InstanceList))
	group.InstanceCount = group.DeviceNum
	var names []string
	for i := range b.members[0].Cards {
		names = append(names, "eth"+strconv.Itoa(i))
	}
	return groupTable{
		BoardID: "0x0020", ChipInfo: "910", DeployMode: "lab", GroupCount: "1", GroupList: []groupFull{group},
		NICLocation: "device", NICName: names, NICNum: strconv.Itoa(len(names)), Status: "completed",
	}
}

// twinGroupListShort has one instance for each node, named as its rank.
func (b *build) twinGroupListShort() groupTableShort {
	var group groupShort
	devices := 0
	for i, m := range b.members {
		instance := instanceShort{PodName: strconv.Itoa(i), ServerID: m.Addr}
		for _, card := range m.Cards {
			instance.Devices = append(instance.Devices, deviceOfGroup{strconv.Itoa(card.Index), card.IP})
			devices++
		}
		group.InstanceList = append(group.InstanceList, instance)
	}
	group.DeviceCount, group.InstanceCount = strconv.Itoa(devices), strconv.Itoa(len(b.members))
	return groupTableShort{GroupList: []groupShort{group}, Status: "completed", GroupCount: "1"}
}

// A command without variables is parted once for a gang: ranks get copies, and a
// gang that is used for another command says so by parting that.
func TestPartedOnceForAll(t *testing.T) {
	var g Gang
	one, err := g.parted("python3 'a b'")
	if diff := cmp.Diff([]string{"python3", "a b"}, one); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if other, err := g.parted("true"); err != nil || cmp.Diff([]string{"true"}, other) != "" {
		t.Error(err, other)
	}
	in := input(job(structs.ModePyTorch, 2, "python3 train.py"), 0)
	in.Gang = &Gang{hosts: make([]string, len(in.Members))}
	for range 2 { // the second finds what the first changed
		out, err := Build(in)
		if err != nil || out.Command[len(out.Command)-1] != "train.py" {
			t.Fatal(out.Command, err)
		}
		for i := range out.Command {
			out.Command[i] = "changed"
		}
	}
}
