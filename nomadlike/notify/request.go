package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Target is where a channel leads. Both parts are secrets.
type Target struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"` // that messages are signed with
}

// Request is what a channel is sent, by POST.
type Request struct {
	URL    string
	Header map[string]string
	Body   []byte
}

// Bounds of what channels take, in bytes.
const (
	weComTextMax = 2048
	textMax      = 8 << 10
	webhookMax   = 20 << 10
)

// webhookPrefix begins the secrets of Standard Webhooks; base64 follows.
const webhookPrefix = "whsec_"

// RequestFor makes what a channel of a kind is sent: a webhook as Standard Webhooks
// describe it, robots as their makers do. Pure.
func RequestFor(kind string, target Target, n *structs.Notification, text Text, now structs.UnixNano) (Request, error) {
	request := Request{URL: target.URL, Header: map[string]string{"Content-Type": "application/json; charset=utf-8"}}
	var body any
	switch kind {
	case structs.ChannelWebhook:
		return webhookRequest(request, target, n, text, now)
	case structs.ChannelDingTalk:
		body = map[string]any{"msgtype": "text", "text": map[string]string{"content": text.Plain(textMax)}}
		if target.Secret != "" {
			millis := strconv.FormatInt(now.Time().UnixMilli(), 10)
			address, err := url.Parse(target.URL)
			if err != nil {
				return Request{}, structs.NewError(structs.CodeInvalid, "notify.url")
			}
			query := address.Query()
			query.Set("timestamp", millis)
			query.Set("sign", signed(target.Secret, millis+"\n"+target.Secret))
			address.RawQuery = query.Encode()
			request.URL = address.String()
		}
	case structs.ChannelFeishu:
		message := map[string]any{"msg_type": "text", "content": map[string]string{"text": untagged.Replace(text.Plain(textMax))}}
		if target.Secret != "" {
			at := seconds(now)
			message["timestamp"], message["sign"] = at, signed(at+"\n"+target.Secret, "") // key and text the other way round
		}
		body = message
	case structs.ChannelWeCom:
		body = map[string]any{"msgtype": "text", "text": map[string]string{"content": bounded(untagged.Replace(text.Plain(weComTextMax)), weComTextMax)}}
	default:
		return Request{}, structs.NewError(structs.CodeInvalid, "notify.channel_kind", "kind", kind)
	}
	var err error
	request.Body, err = json.Marshal(body)
	return request, err
}

// untagged takes away the tags that call people in the texts of some robots; they come
// from nobody here.
var untagged = strings.NewReplacer("<", "‹", ">", "›")

// signed is the HMAC-SHA256 of a text in base64.
func signed(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// webhookBody is what a webhook is sent.
type webhookBody struct {
	Type      string      `json:"type"` // nomadlike.KIND
	Timestamp string      `json:"timestamp"`
	Data      webhookData `json:"data"`
}

type webhookData struct {
	ID      string            `json:"id"`
	Kind    string            `json:"kind"`
	User    string            `json:"user"`
	Project string            `json:"project,omitempty"`
	JobID   string            `json:"job_id,omitempty"`
	Job     string            `json:"job,omitempty"`
	Event   string            `json:"event,omitempty"`
	Params  map[string]string `json:"params,omitempty"`
	Counts  map[string]int    `json:"counts,omitempty"`
	Title   string            `json:"title"`
	What    []string          `json:"what,omitempty"`
	Do      string            `json:"do,omitempty"`
	Lines   []string          `json:"lines,omitempty"`
	Link    string            `json:"link,omitempty"`
}

func webhookRequest(request Request, target Target, n *structs.Notification, text Text, now structs.UnixNano) (Request, error) {
	key, err := WebhookKey(target.Secret)
	if err != nil {
		return Request{}, err
	}
	body := webhookBody{
		Type: "nomadlike." + n.Kind, Timestamp: n.Time.Time().UTC().Format(time.RFC3339Nano),
		Data: webhookData{
			ID: n.ID, Kind: n.Kind, User: n.User, Project: n.Project, JobID: n.JobID, Job: n.Job, Event: n.Event, Params: n.Params, Counts: n.Counts,
			Title: text.Title, What: text.What, Do: text.Do, Lines: text.Lines, Link: text.Link,
		},
	}
	if request.Body, err = json.Marshal(body); err != nil {
		return Request{}, err
	}
	if len(request.Body) > webhookMax { // the words say what the parameters do
		body.Data.Params, body.Data.Lines = nil, nil
		if request.Body, err = json.Marshal(body); err != nil {
			return Request{}, err
		}
	}
	at := seconds(now)
	request.Header["webhook-id"], request.Header["webhook-timestamp"] = n.ID, at
	request.Header["webhook-signature"] = "v1," + signed(string(key), n.ID+"."+at+"."+string(request.Body))
	return request, nil
}

// WebhookKey reads the secret of a webhook: base64 of 24 to 64 bytes behind whsec_.
func WebhookKey(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, webhookPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, structs.NewError(structs.CodeInvalid, "notify.webhook_secret")
	}
	return key, nil
}

// WebhookSecret spells a key as WebhookKey reads it.
func WebhookSecret(key []byte) string { return webhookPrefix + base64.StdEncoding.EncodeToString(key) }

// The refusals of robots after which another try would go the same way: a wrong
// signature, address or keyword, a robot that is gone.
var finalCodes = map[string][]int{
	structs.ChannelDingTalk: {300001, 310000, 400101, 400102, 400106},
	structs.ChannelFeishu:   {9499, 19001, 19021, 19022, 19024},
	structs.ChannelWeCom:    {93000, 93004, 93008, 93017},
}

// slowCodes are those that ask for patience, and for how long.
var slowCodes = map[string]map[int]time.Duration{
	structs.ChannelDingTalk: {130101: 10 * time.Minute, 410100: 10 * time.Minute},
	structs.ChannelFeishu:   {11232: time.Minute},
	structs.ChannelWeCom:    {45009: time.Minute, 45033: time.Minute},
}

// Verdict judges what a channel answered: a webhook by the status, robots by the code
// in the body, since they answer 200 to what they refuse. retryAfter is that header. Pure.
func Verdict(kind string, status int, retryAfter string, body []byte) Result {
	result := Result{Sent: status >= 200 && status < 300, Final: status == 410}
	if wait, err := strconv.Atoi(retryAfter); err == nil && wait > 0 && (status == 429 || status == 503) {
		result.Wait = time.Duration(min(wait, 24*3600)) * time.Second
	}
	if !result.Sent {
		result.Problem = "HTTP " + strconv.Itoa(status)
		return result
	}
	if kind == structs.ChannelWebhook {
		return result
	}
	var told struct {
		ErrCode *int   `json:"errcode"`
		ErrMsg  string `json:"errmsg"`
		Code    *int   `json:"code"`
		Msg     string `json:"msg"`
		Status  *int   `json:"StatusCode"` // of Feishu's older answers
	}
	if json.Unmarshal(body, &told) != nil || told.ErrCode == nil && told.Code == nil && told.Status == nil {
		return Result{Problem: "notify.problem.no_code"}
	}
	code, why := 0, told.ErrMsg
	for _, one := range []*int{told.Status, told.Code, told.ErrCode} {
		if one != nil && *one != 0 {
			code = *one
		}
	}
	if code == 0 {
		return Result{Sent: true}
	}
	if why == "" {
		why = told.Msg
	}
	result = Result{Problem: strconv.Itoa(code) + " " + oneLine(why), Wait: slowCodes[kind][code]}
	for _, final := range finalCodes[kind] {
		result.Final = result.Final || final == code
	}
	return result
}
