package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// ServiceAccountDetail is a service account with what is known of it.
type ServiceAccountDetail struct {
	Account structs.ServiceAccount `json:"account"`
	User    string                 `json:"user"` // what it is called where names of users stand
	Live    int                    `json:"live"` // subjobs that have not ended
	// Tokens are its tokens, the newest first; nil for whoever may not change the account.
	Tokens []structs.Token `json:"tokens,omitempty"`
	Verbs  []string        `json:"verbs"` // what the caller may do with it
}

// ServiceAccountList answers service_accounts.list, by name: the project's, then those of
// the whole cluster.
type ServiceAccountList struct {
	Accounts []ServiceAccountDetail `json:"accounts"`
}

// ServiceAccountRequest makes a service account, or replaces what it says.
type ServiceAccountRequest struct {
	Description string `json:"description,omitempty"`
	Owner       string `json:"owner,omitempty"` // the account of whom to ask; "": of a new one the caller, else as it was
	Role        string `json:"role,omitempty"`  // viewer | user | project-admin; in the cluster operator; "": of a new one user, or operator
}

// ServiceAccountStateRequest disables a service account, or enables it. To disable one
// says what becomes of its jobs.
type ServiceAccountStateRequest struct {
	Disabled bool   `json:"disabled,omitempty"`
	Jobs     string `json:"jobs,omitempty"` // run_on (default) | stop | hand_over
	To       string `json:"to,omitempty"`   // the user that they are handed over to
}

// ServiceTokenRequest asks for a token of a service account.
type ServiceTokenRequest struct {
	Name      string           `json:"name,omitempty"`
	TTL       structs.Duration `json:"ttl,omitempty"`       // 0: structs.ServiceTokenTTLDefault
	Verbs     []string         `json:"verbs,omitempty"`     // all that it is good for, within the role; nil: all of the role
	Addresses []string         `json:"addresses,omitempty"` // all that requests may come from; nil: any
}

// ServiceRevokeRequest revokes one token of a service account, or all of them.
type ServiceRevokeRequest struct {
	Token string `json:"token,omitempty"` // its id
	All   bool   `json:"all,omitempty"`
}

func serviceParams(more ...Param) []Param {
	return append([]Param{{"cluster", "boolean", "the one of the whole cluster, not of the project"}}, more...)
}

// The endpoints of service account routes.
var (
	ServiceAccountsList = endpoint[None, ServiceAccountList](Route{
		Name: "service_accounts.list", Method: http.MethodGet, Pattern: "/v1/service-accounts", Verb: VerbList, Kind: ObjectService, From: FromKind,
		Summary: "List the project's service accounts, and those of the cluster for whoever may see them",
	})
	ServiceAccountsRead = endpoint[None, ServiceAccountDetail](Route{
		Name: "service_accounts.read", Method: http.MethodGet, Pattern: "/v1/service-accounts/{id}", Verb: VerbRead, Kind: ObjectService, From: FromService,
		Query: serviceParams(), Summary: "Read one service account by name",
	})
	ServiceAccountsPut = endpoint[ServiceAccountRequest, Changed](Route{
		Name: "service_accounts.put", Method: http.MethodPut, Pattern: "/v1/service-accounts/{id}", Verb: VerbWrite, Kind: ObjectService, From: FromService,
		Query: serviceParams(), Summary: "Make a service account, or replace what it says",
	})
	ServiceAccountsState = endpoint[ServiceAccountStateRequest, Changed](Route{
		Name: "service_accounts.state", Method: http.MethodPut, Pattern: "/v1/service-accounts/{id}/state", Verb: VerbWrite, Kind: ObjectService, From: FromService,
		Query: serviceParams(), Summary: "Disable a service account, which ends its tokens and streams, or enable it",
	})
	ServiceAccountsToken = endpoint[ServiceTokenRequest, NewToken](Route{
		Name: "service_accounts.token", Method: http.MethodPost, Pattern: "/v1/service-accounts/{id}/tokens", Verb: VerbWrite, Kind: ObjectService, From: FromService,
		Query: serviceParams(), Summary: "Make a token of a service account; its secret is in the answer and nowhere else",
	})
	ServiceAccountsRevoke = endpoint[ServiceRevokeRequest, Changed](Route{
		Name: "service_accounts.revoke", Method: http.MethodPost, Pattern: "/v1/service-accounts/{id}/revoke", Verb: VerbWrite, Kind: ObjectService, From: FromService,
		Query: serviceParams(), Summary: "Revoke one token of a service account, or all of them",
	})
	ServiceAccountsDelete = endpoint[None, Changed](Route{
		Name: "service_accounts.delete", Method: http.MethodDelete, Pattern: "/v1/service-accounts/{id}", Verb: VerbWrite, Kind: ObjectService, From: FromService,
		Query: serviceParams(
			Param{"jobs", "string", "what becomes of its live jobs: stop or hand_over; without a word it is refused while there are any"},
			Param{"to", "string", "the user that they are handed over to"},
		),
		Summary: "Forget a service account and its tokens",
	})
)

func serviceAccountRoutes() []Route {
	return []Route{
		ServiceAccountsList.route,
		ServiceAccountsRead.route,
		ServiceAccountsPut.route,
		ServiceAccountsState.route,
		ServiceAccountsToken.route,
		ServiceAccountsRevoke.route,
		ServiceAccountsDelete.route,
	}
}

// ServiceAccount names a service account in the project that the client acts in, or of
// the whole cluster.
type ServiceAccount struct {
	Name    string
	Cluster bool
}

func (a ServiceAccount) query() url.Values {
	query := url.Values{}
	if a.Cluster {
		query.Set("cluster", strconv.FormatBool(true))
	}
	return query
}

// ServiceAccounts lists the service accounts of the project that the client acts in, and
// those of the cluster for whoever may see them.
func (c *Client) ServiceAccounts(ctx context.Context) (*ServiceAccountList, error) {
	list, _, err := read(ctx, c, ServiceAccountsList, "", nil)
	return list, err
}

// ServiceAccount reads one service account.
func (c *Client) ServiceAccount(ctx context.Context, of ServiceAccount) (*ServiceAccountDetail, error) {
	detail, _, err := read(ctx, c, ServiceAccountsRead, of.Name, of.query())
	return detail, err
}

// PutServiceAccount makes a service account, or replaces what it says.
func (c *Client) PutServiceAccount(ctx context.Context, of ServiceAccount, request ServiceAccountRequest) (*Changed, error) {
	return changeService(ctx, c, ServiceAccountsPut, of, request)
}

// SetServiceAccountState disables a service account, or enables it.
func (c *Client) SetServiceAccountState(ctx context.Context, of ServiceAccount, to ServiceAccountStateRequest) (*Changed, error) {
	return changeService(ctx, c, ServiceAccountsState, of, to)
}

// CreateServiceToken makes a token of a service account. Its secret is in the answer and
// nowhere else.
func (c *Client) CreateServiceToken(ctx context.Context, of ServiceAccount, request ServiceTokenRequest) (*NewToken, error) {
	return changeService(ctx, c, ServiceAccountsToken, of, request)
}

// RevokeServiceTokens revokes one token of a service account, or all of them.
func (c *Client) RevokeServiceTokens(ctx context.Context, of ServiceAccount, request ServiceRevokeRequest) (*Changed, error) {
	return changeService(ctx, c, ServiceAccountsRevoke, of, request)
}

// DeleteServiceAccount forgets a service account. jobs and to say what becomes of the
// jobs that have not ended, as in ServiceAccountStateRequest.
func (c *Client) DeleteServiceAccount(ctx context.Context, of ServiceAccount, jobs, to string) (*Changed, error) {
	query := of.query()
	for name, value := range map[string]string{"jobs": jobs, "to": to} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return post(ctx, c, ServiceAccountsDelete, call{path: ServiceAccountsDelete.path(of.Name), query: query}, None{})
}

func changeService[In, Out any](ctx context.Context, c *Client, to Endpoint[In, Out], of ServiceAccount, body In) (*Out, error) {
	return post(ctx, c, to, call{path: to.path(of.Name), query: of.query()}, body)
}
