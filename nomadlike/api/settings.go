package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// SettingsAnswer answers settings.read: what is set for the whole cluster, and what comes
// of it, of the pool and of the project for jobs of the caller.
type SettingsAnswer struct {
	Settings  structs.Settings  `json:"settings"`
	Effective []structs.Ceiling `json:"effective"` // see structs.EffectiveCeilings
	Shared    Shared            `json:"shared"`
}

// Shared counts the jobs with which others of their projects may do something by the word
// of their owners, ended ones too: what closes when sharing is switched off, and opens
// when it is switched on again.
type Shared struct {
	ReadOnly  int `json:"read_only"`
	ReadWrite int `json:"read_write"`
	Live      int `json:"live"` // of both, that have not ended
}

// SettingsRequest changes what is set for the whole cluster; what is missing stays as it
// was.
type SettingsRequest struct {
	NoSharing *bool                 `json:"no_sharing,omitempty"`
	Ceilings  *structs.PoolCeilings `json:"ceilings,omitempty"` // all of them
	// ServiceTokenTTL is the longest that a new token of a service account lives; 0: the
	// 90 days that are built in.
	ServiceTokenTTL *structs.Duration `json:"service_token_ttl,omitempty"`
}

// The endpoints of what is set for the whole cluster.
var (
	SettingsRead = endpoint[None, SettingsAnswer](Route{
		Name: "settings.read", Method: http.MethodGet, Pattern: "/v1/settings", Verb: VerbRead, Kind: ObjectCluster, From: FromKind,
		Query: []Param{
			{"pool", "string", "for jobs that stand in it; without one the default pool"},
			{"named", "boolean", "for jobs that name their nodes, for which ceilings of pools do not hold"},
		},
		Summary: "What administrators set for all jobs, and the most that the caller's may ask for",
	})
	SettingsPut = endpoint[SettingsRequest, Changed](Route{
		Name: "settings.put", Method: http.MethodPut, Pattern: "/v1/settings", Verb: VerbCeilings, Kind: ObjectCluster, From: FromKind,
		Summary: "Set ceilings of all jobs, whether owners may share theirs with their projects, and how long tokens of service accounts live",
	})
)

func settingsRoutes() []Route { return []Route{SettingsRead.route, SettingsPut.route} }

// Settings reports what is set for the whole cluster, and the most that jobs of the
// caller in a pool may ask for, "" for the default one.
func (c *Client) Settings(ctx context.Context, pool string) (*SettingsAnswer, error) {
	query := url.Values{}
	if pool != "" {
		query.Set("pool", pool)
	}
	found, _, err := read(ctx, c, SettingsRead, "", query)
	return found, err
}

// PutSettings changes what is set for the whole cluster.
func (c *Client) PutSettings(ctx context.Context, change SettingsRequest) (*Changed, error) {
	return post(ctx, c, SettingsPut, call{path: SettingsPut.path("")}, change)
}
