package launch

import (
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
		// A process counts within what ASCEND_RT_VISIBLE_DEVICES shows it, from 0,
		// whatever the card's number on the node is.
		b.env.set("DEVICE_ID", "0")
	}
	spreads := b.spreads()
	if spreads { // nobody starts the scheduler that workers of the dynamic cluster would wait for
		for _, name := range [...]string{"MS_ROLE", "MS_SERVER_NUM", "MS_WORKER_NUM", "MS_LOCAL_WORKER", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_NODE_RANK"} {
			b.env.unset(name)
		}
	}
	b.env.suggest("HCCL_WHITELIST_DISABLE", "1")
	b.env.suggest("HCCL_SOCKET_IFNAME", b.node.Interface)
	b.env.suggest("GLOO_SOCKET_IFNAME", b.node.Interface)
	if err := b.rankTable(); err != nil {
		return err
	}
	if spreads {
		return b.spread(b.counted("RANK_ID", b.rank*b.slots), b.cardOf("DEVICE_ID"), b.counted("LOCAL_RANK", 0))
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
	w := jsonText{indent: true, text: make([]byte, 0, b.rankTableSize())}
	switch b.job.Distributed.RankTable {
	case "v1.2":
		b.rankTableV1(&w, true)
	case "group_list":
		b.groupList(&w)
	case "group_list_short":
		b.groupListShort(&w)
	default:
		b.rankTableV1(&w, false)
	}
	return string(append(w.text, '\n')), nil
}

// rankTableSize is about how many bytes a table has, so that it grows seldom.
func (b *build) rankTableSize() int {
	const head, ofServer, ofCard = 1 << 10, 192, 320
	return head + len(b.members)*ofServer + b.cards()*ofCard
}

// cards is how many the gang has.
func (b *build) cards() int {
	cards := 0
	for i := range b.members {
		cards += len(b.members[i].Cards)
	}
	return cards
}

// rankTableV1 writes rank table 1.0, or with pods 1.2; every number is a text.
func (b *build) rankTableV1(w *jsonText, pods bool) {
	version := "1.0"
	if pods {
		version = "1.2"
	}
	w.open('{')
	w.field("status", "completed")
	w.field("version", version)
	w.number("server_count", len(b.members))
	w.list("server_list")
	rank := 0
	for i := range b.members {
		m := &b.members[i]
		w.item()
		w.field("server_id", m.Addr)
		if pods && m.Addr != "" {
			w.field("host_ip", m.Addr)
		}
		w.list("device")
		for k := range m.Cards {
			b.deviceV1(w, &m.Cards[k], rank, pods)
			rank++
		}
		w.close(']')
		w.close('}')
	}
	w.close(']')
	if pods {
		b.superPods(w)
	}
	w.close('}')
}

func (b *build) deviceV1(w *jsonText, card *structs.Card, rank int, pods bool) {
	w.item()
	w.number("device_id", card.Index)
	if card.IP != "" {
		w.field("device_ip", card.IP)
	}
	if pods && card.SuperID != "" {
		w.field("super_device_id", card.SuperID)
	}
	w.number("rank_id", rank)
	w.close('}')
}

// superPods lists the servers of each super pod, both in the order of ranks. Cards
// of a kind that has no super pods are in none.
func (b *build) superPods(w *jsonText) {
	var order []string
	servers := make(map[string][]string) // addresses by super pod
	for i := range b.members {
		pod := b.members[i].Cards[0].SuperPod
		if pod == "" {
			continue
		}
		if servers[pod] == nil {
			order = append(order, pod)
		}
		servers[pod] = append(servers[pod], b.members[i].Addr)
	}
	if len(order) == 0 {
		return
	}
	w.list("super_pod_list")
	for _, pod := range order {
		w.item()
		w.field("super_pod_id", pod)
		w.list("server_list")
		for _, addr := range servers[pod] {
			w.item()
			w.field("server_id", addr)
			w.close('}')
		}
		w.close(']')
		w.close('}')
	}
	w.close(']')
}

// groupList writes the older of the two old forms: one instance for each card,
// ranks running through. Its network ports are those of the first node: the table
// is one for all.
func (b *build) groupList(w *jsonText) {
	cards, ports := b.cards(), len(b.members[0].Cards)
	w.open('{')
	w.field("board_id", "0x0020")
	w.field("chip_info", "910")
	w.field("deploy_mode", "lab")
	w.field("group_count", "1")
	w.list("group_list")
	w.item()
	w.number("device_num", cards)
	w.number("server_num", len(b.members))
	w.field("group_name", "")
	w.number("instance_count", cards)
	w.list("instance_list")
	rank := 0
	for i := range b.members {
		m := &b.members[i]
		for k := range m.Cards {
			w.item()
			w.list("devices")
			groupDevice(w, &m.Cards[k])
			w.close(']')
			w.number("rank_id", rank)
			w.field("server_id", m.Addr)
			w.close('}')
			rank++
		}
	}
	w.close(']')
	w.close('}')
	w.close(']')
	w.field("para_plane_nic_location", "device")
	w.list("para_plane_nic_name")
	for port := range ports {
		w.element("eth" + strconv.Itoa(port))
	}
	w.close(']')
	w.number("para_plane_nic_num", ports)
	w.field("status", "completed")
	w.close('}')
}

// groupListShort writes the other one: an instance for each node, named as its rank.
func (b *build) groupListShort(w *jsonText) {
	w.open('{')
	w.list("group_list")
	w.item()
	w.list("instance_list")
	for i := range b.members {
		m := &b.members[i]
		w.item()
		w.list("devices")
		for k := range m.Cards {
			groupDevice(w, &m.Cards[k])
		}
		w.close(']')
		w.number("pod_name", i)
		w.field("server_id", m.Addr)
		w.close('}')
	}
	w.close(']')
	w.field("group_name", "")
	w.number("device_count", b.cards())
	w.number("instance_count", len(b.members))
	w.close('}')
	w.close(']')
	w.field("status", "completed")
	w.field("group_count", "1")
	w.close('}')
}

func groupDevice(w *jsonText, card *structs.Card) {
	w.item()
	w.number("device_id", card.Index)
	w.field("device_ip", card.IP)
	w.close('}')
}
