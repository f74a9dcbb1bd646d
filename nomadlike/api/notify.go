package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// NotifyStatus is what the caller is told, where, and what could be chosen.
type NotifyStatus struct {
	User       string               `json:"user"`
	Chosen     bool                 `json:"chosen"` // by the caller; else this is what everybody is told
	On         []structs.NotifyRule `json:"on"`
	Channels   []NotifyChannelInfo  `json:"channels"`
	WaitLonger structs.Duration     `json:"wait_longer"` // what counts as waiting long
	ExpireIn   structs.Duration     `json:"expire_in"`   // how long before its time limit a job is told of
	Quiet      *structs.NotifyQuiet `json:"quiet,omitempty"`
	Kinds      []string             `json:"kinds"`             // that the caller may choose
	Allowed    []string             `json:"allowed"`           // hosts that channels may lead to
	Mail       bool                 `json:"mail"`              // the cluster has a mail server
	Email      string               `json:"email,omitempty"`   // of the caller's account, where mail goes
	Version    uint64               `json:"version,omitempty"` // of what was chosen
}

// NotifyChannelInfo is what can be known of a channel; its address is never told.
type NotifyChannelInfo struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Host string `json:"host,omitempty"`
	// Last is how the newest message fared that went there, nil before the first.
	Last *structs.NotifyDelivery `json:"last,omitempty"`
}

// NotifyRequest replaces what the caller is told; channels have requests of their own.
type NotifyRequest struct {
	On         []structs.NotifyRule `json:"on"`
	WaitLonger structs.Duration     `json:"wait_longer,omitempty"`
	ExpireIn   structs.Duration     `json:"expire_in,omitempty"`
	Quiet      *structs.NotifyQuiet `json:"quiet,omitempty"`
}

// NotifyChannelRequest makes a channel, or gives it another address.
type NotifyChannelRequest struct {
	Kind   string `json:"kind"`
	URL    string `json:"url,omitempty"`    // not of e-mail
	Secret string `json:"secret,omitempty"` // that messages are signed with; a webhook's is drawn where none is given
}

// NotifyChannelChanged says what was done.
type NotifyChannelChanged struct {
	Index  uint64 `json:"index"`
	Secret string `json:"secret,omitempty"` // of a webhook, where it was drawn; nobody is told it again
}

// NotifyTested is how a message to try a channel went.
type NotifyTested struct {
	Sent    bool   `json:"sent"`
	Problem string `json:"problem,omitempty"` // as the channel told it
}

// NotificationInfo is one message, in the caller's language.
type NotificationInfo struct {
	ID      string           `json:"id"`
	Kind    string           `json:"kind"`
	Time    structs.UnixNano `json:"time"`
	Title   string           `json:"title"`
	What    []string         `json:"what"`
	Do      string           `json:"do,omitempty"`
	Lines   []string         `json:"lines,omitempty"`
	Project string           `json:"project,omitempty"`
	JobID   string           `json:"job_id,omitempty"`
	Job     string           `json:"job,omitempty"`
	Seen    bool             `json:"seen"`

	Deliveries []structs.NotifyDelivery `json:"deliveries"`
}

// NotificationList is what the bell holds, newest first.
type NotificationList struct {
	Notifications []NotificationInfo `json:"notifications"`
	Unseen        int                `json:"unseen"`
	Through       uint64             `json:"through"` // what to say was seen
}

// NotificationsSeen says how far the list was seen.
type NotificationsSeen struct {
	Through uint64 `json:"through"`
}

// The endpoints of notification routes. All are the caller's own.
var (
	NotifyRead = endpoint[None, NotifyStatus](Route{
		Name: "notify.read", Method: http.MethodGet, Pattern: "/v1/self/notify", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "What the caller is told, and where",
	})
	NotifyPut = endpoint[NotifyRequest, Changed](Route{
		Name: "notify.put", Method: http.MethodPut, Pattern: "/v1/self/notify", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "Choose what to be told, and where",
	})
	NotifyChannelPut = endpoint[NotifyChannelRequest, NotifyChannelChanged](Route{
		Name: "notify.channel_put", Method: http.MethodPut, Pattern: "/v1/self/notify/channels/{id}", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "Make a channel, or give it another address; nobody reads the address back",
	})
	NotifyChannelDelete = endpoint[None, Changed](Route{
		Name: "notify.channel_delete", Method: http.MethodDelete, Pattern: "/v1/self/notify/channels/{id}", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "Remove a channel; what went there is told nowhere",
	})
	NotifyChannelTest = endpoint[None, NotifyTested](Route{
		Name: "notify.channel_test", Method: http.MethodPost, Pattern: "/v1/self/notify/channels/{id}/test", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "Send a message to a channel to see it work",
	})
	NotificationsList = endpoint[None, NotificationList](Route{
		Name: "notifications.list", Method: http.MethodGet, Pattern: "/v1/self/notifications", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "What the caller was told of late",
	})
	NotificationsSee = endpoint[NotificationsSeen, Changed](Route{
		Name: "notifications.seen", Method: http.MethodPost, Pattern: "/v1/self/notifications/seen", Verb: VerbNotify, Kind: ObjectToken, From: FromCaller,
		Summary: "Say how far the list was seen",
	})
)

func notifyRoutes() []Route {
	return []Route{
		NotifyRead.route,
		NotifyPut.route,
		NotifyChannelPut.route,
		NotifyChannelDelete.route,
		NotifyChannelTest.route,
		NotificationsList.route,
		NotificationsSee.route,
	}
}

// NotifyStatus reads what the caller is told, and where.
func (c *Client) NotifyStatus(ctx context.Context) (*NotifyStatus, error) {
	status, _, err := read(ctx, c, NotifyRead, "", nil)
	return status, err
}

// SetNotify chooses what the caller is told.
func (c *Client) SetNotify(ctx context.Context, request NotifyRequest) (*Changed, error) {
	return change(ctx, c, NotifyPut, "", request)
}

// SetNotifyChannel makes a channel, or gives it another address.
func (c *Client) SetNotifyChannel(ctx context.Context, name string, request NotifyChannelRequest) (*NotifyChannelChanged, error) {
	return change(ctx, c, NotifyChannelPut, name, request)
}

// DeleteNotifyChannel removes a channel.
func (c *Client) DeleteNotifyChannel(ctx context.Context, name string) (*Changed, error) {
	return change(ctx, c, NotifyChannelDelete, name, None{})
}

// TestNotifyChannel sends a message to a channel to see it work.
func (c *Client) TestNotifyChannel(ctx context.Context, name string) (*NotifyTested, error) {
	return change(ctx, c, NotifyChannelTest, name, None{})
}

// Notifications lists what the caller was told of late.
func (c *Client) Notifications(ctx context.Context) (*NotificationList, error) {
	list, _, err := read(ctx, c, NotificationsList, "", nil)
	return list, err
}

// SeeNotifications says how far the list was seen.
func (c *Client) SeeNotifications(ctx context.Context, through uint64) (*Changed, error) {
	return change(ctx, c, NotificationsSee, "", NotificationsSeen{Through: through})
}
