package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Administrators see what everybody used, others what their projects did and what they did
// themselves; what has ended and what runs is together what was held.
func TestReports(t *testing.T) {
	h := newHarness(t)
	node := structs.Node{
		ID: fmt.Sprintf("%032x", 1), Name: "gpu-1", Pool: structs.PoolDefault, Status: structs.NodeReady, Incarnation: 1, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 8, Memory: 16 << 30, PortMin: 20000, PortMax: 20100},
	}
	for i := range 4 {
		node.Devices = append(node.Devices, structs.Device{ID: fmt.Sprint("card-", i), Index: i, Kind: "nvidia/gpu", Model: "H800", Memory: 80 << 30, Healthy: true})
	}
	h.submit(structs.CommandNodeRegister, &structs.NodeRegister{Node: node})
	later := func(span time.Duration) { h.replica.SetNow(h.replica.Now().Add(span)) }
	eve := h.as("user", "speech", "eve")
	short := h.start(h.admin, cards("short", "vision", 2))
	later(time.Hour)
	h.report(short, structs.AllocComplete)
	later(time.Hour)
	failed := h.start(eve, cards("bad", "speech", 1))
	h.start(h.admin, cards("long", "vision", 3))
	later(time.Hour)
	h.report(failed, structs.AllocFailed)
	later(time.Hour)
	usage := func(who *api.Client, query api.ReportQuery) string {
		query.Zone = "Asia/Shanghai"
		report, err := who.ReportUsage(t.Context(), query)
		var problem *structs.Error
		if errors.As(err, &problem) {
			return problem.ID
		} else if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, line := range report.Lines {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %v=%v+%v+%v", line.Period, line.Key, hour(line.CardMs), hour(line.GoodMs), hour(line.Failed), hour(line.Running))))
		}
		return strings.Join(lines, "; ")
	}
	for _, c := range []struct {
		who   *api.Client
		query api.ReportQuery
		want  string
	}{
		{h.admin, api.ReportQuery{}, "vision 8=2+0+6; speech 1=0+1+0"},
		{h.admin, api.ReportQuery{By: "user"}, "ada 8=2+0+6; eve 1=0+1+0"},
		{h.admin, api.ReportQuery{By: "cards"}, "nvidia/gpu/H800 9=2+1+6"},
		{h.admin, api.ReportQuery{By: "size"}, "3-4 6=0+0+6; 2 2=2+0+0; 1 1=0+1+0"},
		{h.admin, api.ReportQuery{Project: "speech"}, "speech 1=0+1+0"},
		{h.admin, api.ReportQuery{From: "1h"}, "vision 3=0+0+3"},
		{h.admin, api.ReportQuery{From: "3h", To: "2h"}, ""},
		{h.admin, api.ReportQuery{Per: "month"}, "2026-11 vision 8=2+0+6; 2026-11 speech 1=0+1+0"},
		{eve, api.ReportQuery{}, "speech 1=0+1+0"},
		{eve, api.ReportQuery{By: "user"}, "eve 1=0+1+0"},
		{eve, api.ReportQuery{User: "me"}, "speech 1=0+1+0"},
		{eve, api.ReportQuery{User: "ada"}, ""},
		{eve, api.ReportQuery{Project: "vision"}, "auth.not_found"},
		{eve, api.ReportQuery{Project: "nothing-there"}, "auth.not_found"},
		{h.admin, api.ReportQuery{By: "moon"}, "agent.query_malformed"},
		{h.admin, api.ReportQuery{From: "tomorrow"}, "agent.query_malformed"},
		{h.admin, api.ReportQuery{From: "2027"}, "agent.report_range"},
		{h.admin, api.ReportQuery{From: "1980", Per: "day"}, "agent.report_periods"},
	} {
		if got := usage(c.who, c.query); got != c.want {
			t.Errorf("%+v: %s, want %s", c.query, got, c.want)
		}
	}
	waits, err := eve.ReportWaits(t.Context(), api.ReportQuery{By: "user"})
	if err != nil || len(waits.Lines) != 1 || waits.Lines[0].Attempts != 1 || waits.Lines[0].Key != "eve" {
		t.Errorf("%+v, %v", waits, err)
	}
}

func hour(ms int64) float64 { return float64(ms) / 3_600_000 }
