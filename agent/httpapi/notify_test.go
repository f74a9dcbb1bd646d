package httpapi

import (
	"context"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// fakeTell lets messages go to one host, and keeps those that were tried.
type fakeTell struct{ tried []structs.NotifyChannel }

func (*fakeTell) Hosts() ([]string, bool) { return []string{"hooks.example.org"}, true }

func (f *fakeTell) Try(_ context.Context, channel structs.NotifyChannel, _ *structs.Notification) notify.Result {
	f.tried = append(f.tried, channel)
	return notify.Result{Problem: "notify.problem.no_answer"}
}

// People choose what they are told, each for themselves; addresses go in and never come
// out, whatever is asked.
func TestPeopleChooseWhatTheyAreTold(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li, eve := h.person("li", "speech"), h.person("eve", "vision")
	const address = "https://hooks.example.org/services/very-secret-path"
	status, err := li.NotifyStatus(ctx)
	if err != nil || status.Chosen || len(status.On) == 0 || status.On[0].Kind != structs.NotifyFailed {
		t.Fatalf("at first: %+v, %v", status, err)
	}
	made, err := li.SetNotifyChannel(ctx, "team", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: address})
	if err != nil || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("channel: %+v, %v", made, err)
	}
	on := []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{"bell", "team"}}}
	if _, err := li.SetNotify(ctx, api.NotifyRequest{On: on, Quiet: &structs.NotifyQuiet{From: 1320, To: 480, Zone: "Asia/Shanghai"}}); err != nil {
		t.Fatal(err)
	}
	if status, err = li.NotifyStatus(ctx); err != nil || !status.Chosen || len(status.Channels) != 1 || status.Channels[0].Host != "hooks.example.org" || len(status.On) != 1 {
		t.Errorf("after that: %+v, %v", status, err)
	}
	tested, err := li.TestNotifyChannel(ctx, "team")
	if err != nil || tested.Sent || tested.Problem != "no answer in time" {
		t.Errorf("tested: %+v, %v", tested, err)
	}
	if other, err := eve.NotifyStatus(ctx); err != nil || other.Chosen || len(other.Channels) != 0 {
		t.Errorf("eve: %+v, %v", other, err)
	}
	if _, err := eve.TestNotifyChannel(ctx, "team"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("eve tries li's channel: %v", err)
	}
	for what, refused := range map[string]error{
		"an operator's kind":    second(li.SetNotify(ctx, api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyNodes, Channels: []string{"bell"}}}})),
		"an unknown kind":       second(li.SetNotify(ctx, api.NotifyRequest{On: []structs.NotifyRule{{Kind: "lunch", Channels: []string{"bell"}}}})),
		"an unknown channel":    second(li.SetNotify(ctx, api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{"pigeon"}}}})),
		"an unknown zone":       second(li.SetNotify(ctx, api.NotifyRequest{Quiet: &structs.NotifyQuiet{From: 1, To: 2, Zone: "../../etc/passwd"}})),
		"another host":          second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: "https://evil.example.org/"})),
		"this machine":          second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: "https://127.0.0.1:4646/v1/jobs"})),
		"a user in the address": second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: "https://hooks.example.org@evil.example.org/"})),
		"another scheme":        second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: "file://hooks.example.org/etc/passwd"})),
		"a short secret":        second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: address, Secret: "whsec_AAAA"})),
		"mail without address":  second(li.SetNotifyChannel(ctx, "x", api.NotifyChannelRequest{Kind: structs.ChannelEmail})),
		"the bell":              second(li.SetNotifyChannel(ctx, "bell", api.NotifyChannelRequest{Kind: structs.ChannelWebhook, URL: address})),
	} {
		if refused == nil {
			t.Errorf("%s is taken", what)
		} else if strings.Contains(refused.Error(), "very-secret-path") {
			t.Errorf("%s: the refusal repeats the address: %v", what, refused)
		}
	}
	if _, err := h.admin.SetNotify(ctx, api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyNodes, Channels: []string{"bell"}}}}); err != nil {
		t.Errorf("an administrator is told of nodes: %v", err)
	}
	// A server that does not know a kind would refuse what the others take.
	quota := api.NotifyRequest{On: append(on, structs.NotifyRule{Kind: structs.NotifyQuota, Channels: []string{"bell"}})}
	h.members.Oldest = wire.ProtocolHolds - 1
	if _, err := li.SetNotify(ctx, quota); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("quota, while a server is older: %v", err)
	}
	h.members.Oldest = 0
	if _, err := li.SetNotify(ctx, quota); err != nil {
		t.Error(err)
	}
	if _, err := li.SetNotify(ctx, api.NotifyRequest{On: on}); err != nil {
		t.Error(err)
	}
	secrets, err := li.Secrets(ctx)
	if err != nil || len(secrets.Secrets) != 1 || secrets.Secrets[0].Name != "notify_team" {
		t.Errorf("secrets: %+v, %v", secrets, err)
	}
	if _, err := li.DeleteNotifyChannel(ctx, "team"); err != nil {
		t.Fatal(err)
	}
	if status, err = li.NotifyStatus(ctx); err != nil || len(status.Channels) != 0 || len(status.On[0].Channels) != 1 {
		t.Errorf("without the channel: %+v, %v", status, err)
	}
	if secrets, err = li.Secrets(ctx); err != nil || len(secrets.Secrets) != 0 {
		t.Errorf("its secret stays: %+v, %v", secrets, err)
	}
}

// The lines of an error are shown to whoever may read the log that they are of, now: not
// to one who left its project, nor by a token that is bound to other verbs.
func TestErrorLinesAreOfTheLog(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li := h.person("li", "speech")
	made := func(id, project string) structs.Notification {
		return structs.Notification{ID: id, User: "li", Kind: structs.NotifyFailed, Time: 5, Job: id, JobID: id, Project: project, Bell: true, Event: "event.job.failed", Lines: []string{"boom"}}
	}
	h.submit(structs.CommandNotifyStep, structs.NotifyStep{Index: 1, Made: []structs.Notification{made("a", "speech"), made("b", "vision")}})
	bound, err := h.admin.CreateToken(ctx, api.TokenRequest{Role: structs.RoleAccount, User: "li", Verbs: []string{string(auth.VerbNotify)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client *api.Client
		want   map[string]int
	}{"li": {li, map[string]int{"a": 1, "b": 0}}, "a bound token": {li.WithToken(bound.Secret), map[string]int{"a": 0, "b": 0}}} {
		list, err := c.client.Notifications(ctx)
		if err != nil || len(list.Notifications) != 2 {
			t.Fatalf("%s: %+v, %v", name, list, err)
		}
		for _, n := range list.Notifications {
			if len(n.Lines) != c.want[n.ID] {
				t.Errorf("%s sees %q of %s", name, n.Lines, n.ID)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The bell shows what the log holds in the reader's language, and forgets nothing by
// being read; what was seen is no news.
func TestTheBell(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li, eve := h.person("li", "speech"), h.person("eve", "vision")
	h.submit(structs.CommandNotifyStep, structs.NotifyStep{Index: 1, Made: []structs.Notification{
		{ID: "msg_1", User: "li", Kind: structs.NotifyFailed, Time: 5, Job: "bert", JobID: "j1", Bell: true, Event: "event.job.failed", Params: map[string]string{"job": "bert", "attempt": "1", "exit_code": "3"}},
		{ID: "msg_2", User: "li", Kind: structs.NotifyDigest, Time: 6, Bell: true, Counts: map[string]int{"failed": 7, "expired": 1}, Names: []string{"a", "b"}},
	}})
	list, err := li.Notifications(ctx)
	if err != nil || len(list.Notifications) != 2 || list.Unseen != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if n := list.Notifications[1]; n.Title != "Job bert failed" || n.What[0] != "job bert failed in attempt 1 with exit code 3" {
		t.Errorf("%+v", n)
	}
	if n := list.Notifications[0]; n.Title != "8 things happened" || len(n.What) != 3 {
		t.Errorf("%+v", n)
	}
	if other, err := eve.Notifications(ctx); err != nil || len(other.Notifications) != 0 {
		t.Errorf("eve reads %+v, %v", other, err)
	}
	if _, err := li.SeeNotifications(ctx, list.Through); err != nil {
		t.Fatal(err)
	}
	if list, err = li.Notifications(ctx); err != nil || list.Unseen != 0 || len(list.Notifications) != 2 {
		t.Errorf("seen: %+v, %v", list, err)
	}
	if _, err := li.SeeNotifications(ctx, 1<<40); err == nil {
		t.Error("what is still to come was seen")
	}
}
