package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// SecretInfo is what can be known of a secret; its value is never told.
type SecretInfo struct {
	Name      string           `json:"name"`
	Project   string           `json:"project,omitempty"` // "" of the caller's own
	Own       bool             `json:"own"`               // the caller's own, in every project
	Version   uint64           `json:"version"`
	CreatedAt structs.UnixNano `json:"created_at"`
	CreatedBy string           `json:"created_by"`
	UpdatedAt structs.UnixNano `json:"updated_at"`
	UpdatedBy string           `json:"updated_by"`
	Jobs      []SecretJob      `json:"jobs"` // that have not ended, name it, and may be seen by the caller
	Verbs     []string         `json:"verbs"`
}

// SecretJob is a job that uses a secret.
type SecretJob struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	User string `json:"user"`
}

// SecretList answers secrets.list: the project's by name, then the caller's own.
type SecretList struct {
	Secrets []SecretInfo `json:"secrets"`
}

// SecretRequest sets a secret's value.
type SecretRequest struct {
	Value structs.SecretBytes `json:"value"` // 1 byte to 64 KiB, in base64
}

// SecretChanged says what was done, and which jobs it reaches at their next start.
type SecretChanged struct {
	Index   uint64      `json:"index"`
	Version uint64      `json:"version,omitempty"` // of a secret that was set
	Jobs    []SecretJob `json:"jobs"`
	// Unmasked: the value, or a part of it, is too short to be masked in logs.
	Unmasked bool `json:"unmasked,omitempty"`
}

// SecretKeys says with which keys secrets are sealed. No key is told, only names.
type SecretKeys struct {
	Current   string   `json:"current"`    // id of the data key that seals; "" before the first secret
	ServerKey string   `json:"server_key"` // fingerprint of the servers' key that it is sealed with
	Keys      int      `json:"keys"`       // data keys; more than one while a rotation is under way
	Secrets   int      `json:"secrets"`
	Lacking   []string `json:"lacking"`  // fingerprints of servers' keys that are needed and not on this server
	Resealed  int      `json:"resealed"` // of a rotation: values that were sealed anew
}

func secretParams() []Param {
	return []Param{{"mine", "boolean", "the caller's own secret, not the project's"}}
}

// The endpoints of secret routes.
var (
	SecretsList = endpoint[None, SecretList](Route{
		Name: "secrets.list", Method: http.MethodGet, Pattern: "/v1/secrets", Verb: VerbList, Kind: ObjectSecret, From: FromKind,
		Summary: "List the project's secrets and one's own, without their values",
	})
	SecretsSet = endpoint[SecretRequest, SecretChanged](Route{
		Name: "secrets.set", Method: http.MethodPut, Pattern: "/v1/secrets/{id}", Verb: VerbWrite, Kind: ObjectSecret, From: FromSecret,
		Query: secretParams(), Summary: "Make a secret, or give it another value; nobody reads it back",
	})
	SecretsDelete = endpoint[None, SecretChanged](Route{
		Name: "secrets.delete", Method: http.MethodDelete, Pattern: "/v1/secrets/{id}", Verb: VerbDelete, Kind: ObjectSecret, From: FromSecret,
		Query: secretParams(), Summary: "Delete a secret; jobs that name it start no more",
	})
	OperatorSecrets = endpoint[None, SecretKeys](Route{
		Name: "operator.secrets", Method: http.MethodGet, Pattern: "/v1/operator/secrets", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "With which keys are secrets sealed, and does this server have them?",
	})
	OperatorSecretsRotate = endpoint[None, SecretKeys](Route{
		Name: "operator.secrets_rotate", Method: http.MethodPost, Pattern: "/v1/operator/secrets/rotate", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
		Summary: "Seal all secrets anew with new keys",
	})
)

func secretRoutes() []Route {
	return []Route{
		SecretsList.route,
		SecretsSet.route,
		SecretsDelete.route,
		OperatorSecrets.route,
		OperatorSecretsRotate.route,
	}
}

// Secrets lists the project's secrets and the caller's own.
func (c *Client) Secrets(ctx context.Context) (*SecretList, error) {
	list, _, err := read(ctx, c, SecretsList, "", nil)
	return list, err
}

func mineQuery(mine bool) url.Values {
	query := url.Values{}
	if mine {
		query.Set("mine", "true")
	}
	return query
}

// SetSecret makes a secret, or gives it another value.
func (c *Client) SetSecret(ctx context.Context, name string, mine bool, value []byte) (*SecretChanged, error) {
	return post(ctx, c, SecretsSet, call{path: SecretsSet.path(name), query: mineQuery(mine)}, SecretRequest{Value: value})
}

// DeleteSecret deletes a secret.
func (c *Client) DeleteSecret(ctx context.Context, name string, mine bool) (*SecretChanged, error) {
	return send(ctx, c, SecretsDelete, call{path: SecretsDelete.path(name), query: mineQuery(mine)})
}

// SecretKeys reports with which keys secrets are sealed.
func (c *Client) SecretKeys(ctx context.Context) (*SecretKeys, error) {
	keys, _, err := read(ctx, c, OperatorSecrets, "", nil)
	return keys, err
}

// RotateSecretKeys seals all secrets anew with new keys.
func (c *Client) RotateSecretKeys(ctx context.Context) (*SecretKeys, error) {
	return send(ctx, c, OperatorSecretsRotate, call{path: OperatorSecretsRotate.path("")})
}
