package launch

import (
	"encoding/json"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Where the rank table lies in the task directory, and where older start
// scripts look for it.
const (
	rankTableFile = ".nomadlike/hccl.json"
	rankTablePath = "/user/serverid/devindex/config/hccl.json"
)

// mindspore runs the command on every node with what msrun and the dynamic
// cluster read, and on NPUs with the rank table of the form that the job asks
// for. The gang is placed, so the table is complete before the command starts.
func (b *build) mindspore() error {
	total, slots, rank := strconv.Itoa(len(b.members)*b.slots), strconv.Itoa(b.slots), strconv.Itoa(b.rank)
	host, port := b.masterAddr(), strconv.Itoa(b.masterPort())
	for _, v := range [...]struct{ name, value string }{
		{"MS_ROLE", "MS_WORKER"},
		{"MS_SERVER_NUM", "0"},
		{"MS_WORKER_NUM", total},
		{"MS_LOCAL_WORKER", slots},
		{"MS_SCHED_HOST", host},
		{"MS_SCHED_PORT", port},
		{"MS_NODE_RANK", rank},
		{"RANK_SIZE", total},
		{"DEVICE_NUM", slots},
		{"SERVER_ID", rank},
	} {
		b.env.set(v.name, v.value)
	}
	if b.slots == 1 { // one process on each node: its rank is the node's
		b.env.set("RANK_ID", rank)
		if cards := b.members[b.rank].Cards; len(cards) == 1 {
			b.env.set("DEVICE_ID", strconv.Itoa(cards[0].Index))
		} else {
			b.env.set("DEVICE_ID", "0")
		}
	}
	b.env.suggest("HCCL_WHITELIST_DISABLE", "1")
	b.env.suggest("HCCL_SOCKET_IFNAME", b.node.Interface)
	b.env.suggest("GLOO_SOCKET_IFNAME", b.node.Interface)
	if err := b.rankTable(); err != nil {
		return err
	}
	return b.plain()
}

// rankTable writes the table when the members' cards are known.
func (b *build) rankTable() error {
	text, err := b.gang.table.by(b.rankTableText)
	if err != nil || text == "" {
		return err
	}
	b.out.Files = append(b.out.Files, File{Path: rankTableFile, Mode: 0o644, Content: text})
	b.view(rankTablePath, rankTableFile)
	b.env.set("RANK_TABLE_FILE", b.inTaskDir(rankTableFile))
	b.env.set("MINDSPORE_HCCL_CONFIG_PATH", b.inTaskDir(rankTableFile))
	return nil
}

// rankTableText is the table of the whole gang; "" without NPUs.
func (b *build) rankTableText() (string, error) {
	for i := range b.members {
		m := &b.members[i]
		if len(m.Cards) == 0 {
			return "", nil // the dynamic cluster needs no table
		}
		for _, card := range m.Cards {
			if card.IP == "" && len(b.members) > 1 {
				return "", structs.NewError(structs.CodeInvalid, "launch.card_address", "node", m.NodeName, "card", card.ID)
			}
		}
	}
	var table any
	switch b.job.Distributed.RankTable {
	case "v1.2":
		table = b.rankTableV1(true)
	case "group_list":
		table = b.groupList()
	case "group_list_short":
		table = b.groupListShort()
	default:
		table = b.rankTableV1(false)
	}
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return "", structs.NewError(structs.CodeInternal, "launch.input", "what", "rank table can not be written").Because(err)
	}
	return string(text) + "\n", nil
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

func (b *build) rankTableV1(pods bool) tableV1 {
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
		Devices  []groupDevice `json:"devices"`
		RankID   string        `json:"rank_id"`
		ServerID string        `json:"server_id"`
	}
	groupDevice struct {
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
		Devices  []groupDevice `json:"devices"`
		PodName  string        `json:"pod_name"`
		ServerID string        `json:"server_id"`
	}
)

// groupList has one instance for each card, ranks running through. Its network
// ports are those of the first node: the table is one for all.
func (b *build) groupList() groupTable {
	group := groupFull{ServerNum: strconv.Itoa(len(b.members))}
	for _, m := range b.members {
		for _, card := range m.Cards {
			group.InstanceList = append(group.InstanceList, instanceFull{
				Devices: []groupDevice{{strconv.Itoa(card.Index), card.IP}},
				RankID:  strconv.Itoa(len(group.InstanceList)), ServerID: m.Addr})
		}
	}
	group.DeviceNum = strconv.Itoa(len(group.InstanceList))
	group.InstanceCount = group.DeviceNum
	var names []string
	for i := range b.members[0].Cards {
		names = append(names, "eth"+strconv.Itoa(i))
	}
	return groupTable{BoardID: "0x0020", ChipInfo: "910", DeployMode: "lab", GroupCount: "1", GroupList: []groupFull{group},
		NICLocation: "device", NICName: names, NICNum: strconv.Itoa(len(names)), Status: "completed"}
}

// groupListShort has one instance for each node, named as its rank.
func (b *build) groupListShort() groupTableShort {
	var group groupShort
	devices := 0
	for i, m := range b.members {
		instance := instanceShort{PodName: strconv.Itoa(i), ServerID: m.Addr}
		for _, card := range m.Cards {
			instance.Devices = append(instance.Devices, groupDevice{strconv.Itoa(card.Index), card.IP})
			devices++
		}
		group.InstanceList = append(group.InstanceList, instance)
	}
	group.DeviceCount, group.InstanceCount = strconv.Itoa(devices), strconv.Itoa(len(b.members))
	return groupTableShort{GroupList: []groupShort{group}, Status: "completed", GroupCount: "1"}
}
