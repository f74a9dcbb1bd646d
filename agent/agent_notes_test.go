package agent

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func TestCertificatesThatEndSoon(t *testing.T) {
	now := structs.At(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	in := func(hours int) structs.UnixNano { return now + structs.UnixNano(time.Duration(hours)*time.Hour) }
	member := func(name, status string, end structs.UnixNano) api.Member {
		return api.Member{ID: "id-" + name, Name: name, Role: "client", Status: status, CertificateEndsAt: end}
	}
	var names []string
	for _, one := range endingSoon([]api.Member{
		member("renewed", "alive", in(70)), member("due", "alive", in(35)), member("late", "alive", in(20)), member("over", "suspect", in(-2)),
		member("gone", "dead", in(1)), member("left", "left", in(1)), member("older", "alive", 0),
	}, now) {
		names = append(names, one.Name)
	}
	if want := []string{"over", "late"}; !reflect.DeepEqual(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	var many []api.Member
	for i := range 3 * api.AgentsNamedMax {
		many = append(many, member(fmt.Sprint(i), "alive", in(1)))
	}
	if got := len(endingSoon(many, now)); got != api.AgentsNamedMax {
		t.Errorf("%d are named", got)
	}
}

func TestVersionsOfAgents(t *testing.T) {
	member := func(name, role, version, status string) api.Member {
		return api.Member{ID: "id-" + name, Name: name, Role: role, Version: version, Status: status}
	}
	got := versionsOf([]api.Member{
		member("n2", "client", "1.4", "alive"), member("n1", "client", "1.4", "alive"), member("s2", "server", "1.4", "alive"),
		member("s1", "server", "1.3", "suspect"), member("", "client", "1.3", "alive"), member("gone", "client", "1.2", "dead"),
	})
	want := []api.AgentVersion{{Version: "1.4", Agents: 3, Names: []string{"s2", "n1", "n2"}}, {Version: "1.3", Agents: 2, Names: []string{"s1", "id-"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := versionsOf(nil); got == nil || len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}

// A member may tell any number.
func TestTimesOfMembers(t *testing.T) {
	for seconds, want := range map[int64]structs.UnixNano{-1: 0, 0: 0, 1: structs.UnixNano(time.Second), 1 << 62: 0} {
		if got := unixSeconds(seconds); got != want {
			t.Errorf("%d seconds are %d", seconds, got)
		}
	}
}
