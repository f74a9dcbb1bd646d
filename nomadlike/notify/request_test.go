package notify

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func plainMessage() *structs.Notification {
	return &structs.Notification{
		ID: "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", User: "li", Kind: structs.NotifyFailed, Time: noon, JobID: "j1", Job: "bert", Project: "speech",
		Event: "event.job.failed", Params: map[string]string{"job": "bert", "attempt": "2", "exit_code": "137"},
		Cause: structs.NewReason("reason.preempted", "user", "mo", "job", "big"), Lines: []string{"CUDA out of memory"},
	}
}

// The signature of a webhook is that of Standard Webhooks, checked against the vector
// that their libraries publish.
func TestWebhookSignature(t *testing.T) {
	key, err := WebhookKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const id, at, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`
	if got := signed(string(key), id+"."+at+"."+body); got != "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("signed %s", got)
	}
	n := plainMessage()
	request, err := RequestFor(structs.ChannelWebhook, Target{URL: "https://h/x", Secret: WebhookSecret(key)}, n, TextOf(messages.English, n, "https://ai.example"), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := "v1," + signed(string(key), n.ID+"."+request.Header["webhook-timestamp"]+"."+string(request.Body))
	if request.Header["webhook-signature"] != want || request.Header["webhook-id"] != n.ID || request.Header["webhook-timestamp"] != "1764244800" {
		t.Errorf("%+v", request.Header)
	}
	var sent struct {
		Type string
		Data map[string]any
	}
	if err := json.Unmarshal(request.Body, &sent); err != nil || sent.Type != "nomadlike.failed" || sent.Data["job_id"] != "j1" || sent.Data["link"] != "https://ai.example/jobs/j1" {
		t.Errorf("%s: %v", request.Body, err)
	}
	for _, secret := range []string{"", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + strings.Repeat("AAAA", 22)} {
		if _, err := WebhookKey(secret); err == nil {
			t.Errorf("%q is taken", secret)
		}
	}
}

// DingTalk signs the time and the secret with the secret, Feishu nothing with the time and
// the secret: mixed up, both refuse everything. The values were computed by openssl.
func TestRobotSignatures(t *testing.T) {
	n := plainMessage()
	text := TextOf(messages.Chinese, n, "")
	ding, err := RequestFor(structs.ChannelDingTalk, Target{URL: "https://oapi.dingtalk.com/robot/send?access_token=T", Secret: "SEC1"}, n, text, noon)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(ding.URL)
	if err != nil {
		t.Fatal(err)
	}
	if q := address.Query(); q.Get("access_token") != "T" || q.Get("timestamp") != "1764244800000" || q.Get("sign") != dingSign {
		t.Errorf("%s", ding.URL)
	}
	feishu, err := RequestFor(structs.ChannelFeishu, Target{URL: "https://open.feishu.cn/open-apis/bot/v2/hook/X", Secret: "SEC1"}, n, text, noon)
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Timestamp, Sign string
		MsgType         string `json:"msg_type"`
	}
	if err := json.Unmarshal(feishu.Body, &sent); err != nil || sent.Timestamp != "1764244800" || sent.Sign != feishuSign || sent.MsgType != "text" {
		t.Errorf("%s: %v", feishu.Body, err)
	}
}

const (
	dingSign   = "hDur+S8VGL0BX4eiQZk9Hl+SNwwAl//AfUlLKesZlYw="
	feishuSign = "XpkN9yR6gk+UYLmkn/9Oc3+6mkBagWsfQuN2ndZ3nDk="
)

// A message is a text without formatting: what a job's name or a machine said calls
// nobody, begins no line, and is cut between characters.
func TestHostileTexts(t *testing.T) {
	n := plainMessage()
	n.Job = "x\r\nBcc: all@example.org\n<at user_id=\"all\">everyone</at>\u202e"
	n.Params = map[string]string{"job": n.Job, "attempt": "1", "exit_code": strings.Repeat("错误", 5000)}
	text := TextOf(messages.Chinese, n, "https://ai.example/")
	for _, line := range append([]string{text.Title}, text.What...) {
		if strings.ContainsAny(line, "\r\n\u202e") {
			t.Errorf("%q", line)
		}
	}
	if len(text.Title) > titleMax || !utf8.ValidString(text.Title) {
		t.Errorf("title of %d bytes", len(text.Title))
	}
	feishu, err := RequestFor(structs.ChannelFeishu, Target{URL: "https://h/"}, n, text, noon)
	if err != nil || strings.Contains(string(feishu.Body), `<at`) || strings.Contains(string(feishu.Body), `\u003cat`) {
		t.Errorf("%.300s: %v", feishu.Body, err)
	}
	wecom, err := RequestFor(structs.ChannelWeCom, Target{URL: "https://h/"}, n, text, noon)
	if err != nil {
		t.Fatal(err)
	}
	var sent struct{ Text struct{ Content string } }
	if err := json.Unmarshal(wecom.Body, &sent); err != nil || len(sent.Text.Content) > weComTextMax || !utf8.ValidString(sent.Text.Content) || len(sent.Text.Content) < 1900 {
		t.Errorf("%d bytes: %v", len(sent.Text.Content), err)
	}
	webhook, err := RequestFor(structs.ChannelWebhook, Target{URL: "https://h/", Secret: WebhookSecret(make([]byte, 24))}, n, text, noon)
	if err != nil || len(webhook.Body) > 2*webhookMax {
		t.Errorf("%d bytes: %v", len(webhook.Body), err)
	}
}

// Robots answer 200 to what they refuse: the code in the body decides.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status int
		body   string
		want   Result
	}{
		{structs.ChannelWebhook, 204, "", Result{Sent: true}},
		{structs.ChannelWebhook, 302, "", Result{Problem: "HTTP 302"}},
		{structs.ChannelWebhook, 410, "", Result{Final: true, Problem: "HTTP 410"}},
		{structs.ChannelWebhook, 500, "", Result{Problem: "HTTP 500"}},
		{structs.ChannelDingTalk, 200, `{"errcode":0,"errmsg":"ok"}`, Result{Sent: true}},
		{structs.ChannelDingTalk, 200, `{"errcode":310000,"errmsg":"sign not match"}`, Result{Final: true, Problem: "310000 sign not match"}},
		{structs.ChannelDingTalk, 200, `{"errcode":130101,"errmsg":"send too fast"}`, Result{Wait: 600e9, Problem: "130101 send too fast"}},
		{structs.ChannelFeishu, 200, `{"code":0,"msg":"success"}`, Result{Sent: true}},
		{structs.ChannelFeishu, 200, `{"StatusCode":0,"StatusMessage":"success"}`, Result{Sent: true}},
		{structs.ChannelFeishu, 200, `{"code":19021,"msg":"sign match fail"}`, Result{Final: true, Problem: "19021 sign match fail"}},
		{structs.ChannelFeishu, 200, `{"code":11232,"msg":"frequency limited"}`, Result{Wait: 60e9, Problem: "11232 frequency limited"}},
		{structs.ChannelWeCom, 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, Result{Final: true, Problem: "93000 invalid webhook url"}},
		{structs.ChannelWeCom, 200, `{"errcode":0,"errmsg":"ok"}`, Result{Sent: true}},
		{structs.ChannelWeCom, 200, `<html>welcome</html>`, Result{Problem: "notify.problem.no_code"}},
		{structs.ChannelFeishu, 200, `{}`, Result{Problem: "notify.problem.no_code"}},
	} {
		if got := Verdict(c.kind, c.status, "", []byte(c.body)); got != c.want {
			t.Errorf("%s %d %s: %+v", c.kind, c.status, c.body, got)
		}
	}
	if got := Verdict(structs.ChannelWebhook, 429, "120", nil); got.Wait.Seconds() != 120 || got.Sent {
		t.Errorf("%+v", got)
	}
}

// An address goes to a host that was allowed, under the port that was; to nothing else,
// however it is written.
func TestAddressesThatAreAllowed(t *testing.T) {
	allowed := []string{"hooks.example.org", "chat.example.org:8443", "*.robots.example.org", "[2001:db8::5]:443"}
	for text, want := range map[string]string{
		"https://hooks.example.org/x?y=z":        "hooks.example.org",
		"https://HOOKS.example.org:443/":         "HOOKS.example.org:443",
		"http://hooks.example.org/":              "hooks.example.org",
		"https://chat.example.org:8443/":         "chat.example.org:8443",
		"https://a.b.robots.example.org/":        "a.b.robots.example.org",
		"https://[2001:db8::5]/":                 "[2001:db8::5]",
		"https://hooks.example.org:8443/":        "",
		"https://chat.example.org/":              "",
		"https://robots.example.org/":            "",
		"https://xrobots.example.org/":           "",
		"https://hooks.example.org.evil.test/":   "",
		"https://hooks.example.org@evil.test/":   "",
		"https://user:pw@hooks.example.org/":     "",
		"https://evil.test/#hooks.example.org":   "",
		"https://evil.test\\@hooks.example.org/": "",
		"ftp://hooks.example.org/":               "",
		"//hooks.example.org/":                   "",
		"https://hooks.example.org/\nX: y":       "",
		"https:///x":                             "",
		"":                                       "",
	} {
		host, err := CheckAddress(text, allowed)
		if host != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, host, err)
		}
	}
	if _, err := CheckAddress("https://hooks.example.org/", nil); err == nil {
		t.Error("a cluster that allows nothing sends something")
	}
}

// Where a name leads counts, in every spelling of an address.
func TestAddressesThatAreForbidden(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "0.0.0.0": true, "0.1.2.3": true, "169.254.169.254": true, "224.0.0.1": true, "255.255.255.255": true, "240.0.0.1": true,
		"100.100.100.200": true, "::1": true, "::": true, "fe80::1": true, "fe80::1%eth0": true, "ff02::1": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true,
		"64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true, "2002:a9fe:a9fe::1": true, "::127.0.0.1": true, "fd00:ec2::254": true,
		"10.2.3.4": false, "192.168.1.1": false, "8.8.8.8": false, "2001:db8::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::808:808": false, "2002:808:808::1": false,
	} {
		if got := Forbidden(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !Forbidden(netip.Addr{}) {
		t.Error("no address is allowed")
	}
}

// Every kind has a title and a name in both languages, and what is told reads as a whole.
func TestTexts(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		for _, kind := range append(structs.NotifyKinds(), structs.NotifyDigest, structs.NotifyTest) {
			if !messages.Has(language, "notify.title."+kind) || kind != structs.NotifyDigest && kind != structs.NotifyTest && !messages.Has(language, "notify.kind."+kind) {
				t.Errorf("%s: %s has no words", language, kind)
			}
		}
	}
	want := "Job bert failed\njob bert failed in attempt 2 with exit code 137\npreempted by job big of mo\n" +
		"`nomadlike job logs bert` shows its last lines; after a fix, submit it again.\nhttps://ai.example/jobs/j1\n\n  CUDA out of memory"
	if got := TextOf(messages.English, plainMessage(), "https://ai.example").Plain(1000); got != want {
		t.Errorf("%s", got)
	}
	digest := &structs.Notification{Kind: structs.NotifyDigest, Counts: map[string]int{"failed": 7, "expired": 2}, Names: []string{"a", "b"}}
	if got := TextOf(messages.Chinese, digest, "").Plain(1000); got != "发生了 9 件事\n7 次：任务最终失败\n2 次：任务达到使用时长上限\n任务：a, b" {
		t.Errorf("%s", got)
	}
}
