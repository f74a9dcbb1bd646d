package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// holder is what the log keeps of conditions, as the state does.
type holder struct {
	*world
	mark structs.NotifyMark
}

// take does what the log does with a step.
func (h *holder) take(t interface{ Fatalf(string, ...any) }, step structs.NotifyStep) {
	if step.Before != h.mark.Step {
		t.Fatalf("decided from step %d, the log is at %d", step.Before, h.mark.Step)
	}
	h.world.take(step)
	holds := maps.Clone(h.mark.Holds)
	if holds == nil {
		holds = map[string]structs.UnixNano{}
	}
	for _, key := range step.Cleared {
		delete(holds, key)
	}
	for _, key := range step.Raised {
		holds[key] = noon
	}
	h.mark = structs.NotifyMark{Step: h.mark.Step + 1, Index: step.Index, Holds: holds}
}

// look decides as a leader that knows nothing but the log, and returns what it told.
func (h *holder) look(t interface{ Fatalf(string, ...any) }, now structs.UnixNano, holding ...Condition) []structs.Notification {
	step := Hold(h.world, h.mark, holding, now)
	if len(step.Raised)+len(step.Cleared) == 0 {
		if len(step.Made) > 0 {
			t.Fatalf("told of nothing: %+v", step.Made)
		}
		return nil
	}
	h.take(t, step)
	return step.Made
}

func boundedProject(kind, model string, most int) *structs.Project {
	return &structs.Project{Name: "speech", Quotas: []structs.Quota{{Kind: kind, Model: model, Maximum: &most}}}
}

func usageOf(held int64) *structs.ProjectUsage {
	return &structs.ProjectUsage{Project: "speech", QuotaUsage: structs.QuotaUsage{"gpu/a100": held}}
}

// A quota is told of at 90 %, once, to those who belong to the project and chose it; again
// only after it was below 80 %, whoever leads meanwhile.
func TestAQuotaIsToldOnceForEachCrossing(t *testing.T) {
	h := &holder{world: newWorld()}
	h.person("li", structs.NotifyQuota)
	h.person("mo", structs.NotifyFailed)
	h.person("eve", structs.NotifyQuota)
	h.belong = map[string][]string{"speech": {"li", "mo"}, "vision": {"eve"}}
	project := boundedProject("gpu", "", 10)
	for i, step := range []struct {
		held int64
		told bool
	}{{8, false}, {9, true}, {10, false}, {8, false}, {9, false}, {7, false}, {8, false}, {10, true}, {0, false}, {9, true}} {
		made := h.look(t, noon.Add(time.Duration(i)*time.Minute), QuotaConditions(project, usageOf(step.held))...)
		switch {
		case !step.told && len(made) != 0:
			t.Errorf("%d: at %d told %+v", i, step.held, made)
		case step.told && (len(made) != 1 || made[0].User != "li" || made[0].Kind != structs.NotifyQuota || made[0].Project != "speech" || !made[0].Bell || len(made[0].Deliveries) != 1):
			t.Errorf("%d: at %d told %+v", i, step.held, made)
		}
	}
	ids := map[string]bool{}
	for _, n := range h.Told("li") {
		ids[n.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d messages with ids of their own", len(ids))
	}
	// What does not bound, or a project that is closed for good, is nobody's quota.
	none := boundedProject("gpu", "", 0)
	gone := boundedProject("gpu", "", 10)
	gone.Archived = true
	open := &structs.Project{Name: "speech", Quotas: []structs.Quota{{Kind: "gpu", Guaranteed: 4}}}
	for _, one := range []*structs.Project{none, gone, open, nil} {
		if list := QuotaConditions(one, usageOf(10)); len(list) != 0 {
			t.Errorf("%+v: %+v", one, list)
		}
	}
	if list := QuotaConditions(project, nil); len(list) != 0 {
		t.Errorf("nothing is held: %+v", list)
	}
}

// Whatever a quota does and however often the leader changes, it is told as often as it
// came to 90 % from below 80 %.
func TestQuotasWithAnyUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &holder{world: newWorld()}
		h.person("li", structs.NotifyQuota)
		h.belong = map[string][]string{"speech": {"li"}}
		project := boundedProject("gpu", "", 100)
		want, got, near := 0, 0, false
		for i, held := range rapid.SliceOfN(rapid.Int64Range(60, 110), 0, 60).Draw(t, "held") {
			switch {
			case held >= 90 && !near:
				near, want = true, want+1
			case held < 80:
				near = false
			}
			got += len(h.look(t, noon.Add(time.Duration(i)*time.Hour), QuotaConditions(project, usageOf(held))...))
		}
		if got != want {
			t.Fatalf("told %d times, want %d", got, want)
		}
	})
}

// Nobody who wants to be told: nothing is noted, and whoever asks while it holds is told.
func TestAConditionThatNobodyChose(t *testing.T) {
	h := &holder{world: newWorld()}
	h.operators = []string{"ops"}
	ops := h.person("ops", structs.NotifyNodes)
	short := *QuorumCondition(3, 2)
	if made := h.look(t, noon, short); len(made) != 0 || h.mark.Step != 0 {
		t.Fatalf("told %+v, at step %d", made, h.mark.Step)
	}
	ops.On = append(ops.On, structs.NotifyRule{Kind: structs.NotifyServers, Channels: []string{structs.ChannelBell}})
	if made := h.look(t, noon, short); len(made) != 1 || made[0].User != "ops" {
		t.Errorf("told %+v", made)
	}
	if made := h.look(t, noon, short); len(made) != 0 {
		t.Errorf("told again: %+v", made)
	}
	if h.look(t, noon); len(h.mark.Holds) != 0 {
		t.Errorf("holds %v", h.mark.Holds)
	}
}

// The quorum has no margin when no other server may fail, which needs three to begin with.
func TestMarginOfTheQuorum(t *testing.T) {
	for _, c := range []struct {
		voters, living int
		short          bool
	}{{1, 1, false}, {2, 2, false}, {2, 1, false}, {3, 3, false}, {3, 2, true}, {3, 1, true}, {4, 4, false}, {4, 3, true}, {5, 5, false}, {5, 4, false}, {5, 3, true}, {7, 5, false}, {7, 4, true}} {
		got := QuorumCondition(c.voters, c.living)
		if got == nil == c.short {
			t.Errorf("%d of %d: %+v", c.living, c.voters, got)
		}
	}
}

// A CA's certificate is told of 30, 7 and 1 days before its end, once each; an agent's when
// it did not renew it in time, and once however often the agent comes and goes.
func TestCertificatesThatEnd(t *testing.T) {
	h := &holder{world: newWorld()}
	h.operators = []string{"ops"}
	h.person("ops", structs.NotifyServers)
	const day = 24 * time.Hour
	end := noon.Add(100 * day)
	var told []string
	for hours := 0; hours <= 24*101; hours += 6 {
		now := noon.Add(time.Duration(hours) * time.Hour)
		for _, n := range h.look(t, now, CertificateConditions([]Certificate{{ID: "f1", Ends: end}}, now)...) {
			told = append(told, fmt.Sprintf("%s %dh", n.Event, int(end.Sub(now).Hours())))
		}
	}
	if want := []string{"notify.what.ca 714h", "notify.what.ca 162h", "notify.what.ca 18h"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if h.look(t, noon, CertificateConditions([]Certificate{{ID: "f2", Ends: end.Add(100 * day)}}, end)...); len(h.mark.Holds) != 0 {
		t.Errorf("after another took its place: %v", h.mark.Holds)
	}
	node := Certificate{Name: "node-1", ID: "n1", Ends: end}
	at := func(left time.Duration, away bool) int {
		one := node
		one.Away = away
		now := end.Add(-left)
		return len(h.look(t, now, CertificateConditions([]Certificate{one}, now)...))
	}
	for i, step := range []struct {
		left time.Duration
		away bool
		told int
	}{{36 * time.Hour, false, 0}, {23 * time.Hour, true, 0}, {23 * time.Hour, false, 1}, {22 * time.Hour, true, 0}, {21 * time.Hour, false, 0}, {72 * time.Hour, false, 0}, {time.Hour, false, 1}} {
		if got := at(step.left, step.away); got != step.told {
			t.Errorf("%d: told %d times, want %d", i, got, step.told)
		}
	}
}

// Many conditions are parted into steps, and no more hold than the log takes.
func TestManyConditions(t *testing.T) {
	h := &holder{world: newWorld()}
	h.operators = []string{"ops"}
	h.person("ops", structs.NotifyServers)
	var list []Condition
	for i := range structs.NotifyHoldsMax + 100 {
		list = append(list, CertificateConditions([]Certificate{{Name: "n\x00 ☃", ID: fmt.Sprint(i), Ends: noon}}, noon)...)
	}
	looks := 0
	for ; ; looks++ {
		step := Hold(h.world, h.mark, list, noon.Add(time.Duration(looks)*time.Second))
		if len(step.Raised) == 0 {
			break
		}
		if len(step.Raised) > structs.NotifyRaisedMax || len(step.Made) > structs.NotifyMadeMax {
			t.Fatalf("%d raised, %d made", len(step.Raised), len(step.Made))
		}
		h.take(t, step)
	}
	if len(h.mark.Holds) != structs.NotifyHoldsMax || looks != structs.NotifyHoldsMax/structs.NotifyRaisedMax {
		t.Errorf("%d hold after %d looks", len(h.mark.Holds), looks)
	}
	for key := range h.mark.Holds {
		if len(key) > 64 || strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
			t.Fatalf("key %q", key)
		}
	}
}

// Each says what it is and what to do about it, in both languages.
func TestTextsOfConditions(t *testing.T) {
	conditions := QuotaConditions(boundedProject("gpu", "A100", 10), &structs.ProjectUsage{QuotaUsage: structs.QuotaUsage{"gpu/A100": 9}})
	conditions = append(conditions, QuotaConditions(boundedProject(structs.QuotaCPU, "", 64), &structs.ProjectUsage{QuotaUsage: structs.QuotaUsage{structs.QuotaCPU: 62_500}})...)
	conditions = append(conditions, *QuorumCondition(5, 3))
	conditions = append(conditions, CertificateConditions([]Certificate{{Name: "node-1", ID: "n1", Ends: noon}, {ID: "f1", Ends: noon.Add(48 * time.Hour)}}, noon)...)
	var got []string
	for _, c := range conditions {
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if c.Lingers {
				continue
			}
			text := TextOf(language, &structs.Notification{Kind: c.Kind, Project: c.Project, Event: c.Event, Params: c.Params}, "")
			got = append(got, text.Title+" | "+strings.Join(text.What, "; ")+" | "+text.Do)
		}
	}
	want := []string{
		"Project speech has nearly used a quota | project speech uses 9 of 10 of gpu A100 | `nomadlike project usage speech` shows who uses it; `nomadlike project status speech` its quotas.",
		"项目 speech 的某项配额即将用完 | 项目 speech 已使用 gpu A100 9，上限 10 | `nomadlike project usage speech` 显示谁在使用；`nomadlike project status speech` 显示其配额。",
		"Project speech has nearly used a quota | project speech uses 62.5 of 64 of cpu | `nomadlike project usage speech` shows who uses it; `nomadlike project status speech` its quotas.",
		"项目 speech 的某项配额即将用完 | 项目 speech 已使用 cpu 62.5，上限 64 | `nomadlike project usage speech` 显示谁在使用；`nomadlike project status speech` 显示其配额。",
		"A server needs attention | of 5 servers that vote 3 are there: if another fails, the cluster takes no changes | Start the servers that are away, or put others in their place; `nomadlike server members` shows them.",
		"服务器需要处理 | 5 台有投票权的服务器中只有 3 台在线：再有一台故障，集群将不接受更改 | 请启动离线的服务器，或用其他服务器替换；`nomadlike server members` 列出它们。",
		"A server needs attention | the certificate of agent node-1 ends at 2025-11-27T12:00:00Z, and it did not renew it | Look at the log of that agent: it renews its certificate at the servers, when it reaches them.",
		"服务器需要处理 | agent node-1 的证书将于 2025-11-27T12:00:00Z 到期，且未能续期 | 请查看该 agent 的日志：连得上服务器时，它会自行续期证书。",
		"A server needs attention | the certificate of the cluster's CA ends at 2025-11-29T12:00:00Z | `nomadlike operator ca rotate` puts another in its place while everything runs.",
		"服务器需要处理 | 集群 CA 的证书将于 2025-11-29T12:00:00Z 到期 | `nomadlike operator ca rotate` 可在运行中更换 CA。",
	}
	if !slices.Equal(got, want) {
		t.Errorf("texts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
