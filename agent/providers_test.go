package agent

import (
	"errors"
	"log/slog"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/agent/directory"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// The directories of the configuration are what people sign in through, in its order.
func TestProvidersOfTheConfiguration(t *testing.T) {
	rules := []auth.Rule{{Group: "cn=ml,dc=x", Project: "vision", Role: structs.RoleUser}}
	told := config.SignIn{LDAP: []config.LDAP{
		{Provider: config.Provider{Name: "company", Caption: "Company", Rules: rules}, Directory: directory.Config{Name: "company"}},
		{Provider: config.Provider{Name: "lab"}, Directory: directory.Config{Name: "lab"}},
	}}
	providers := providersOf(&told, slog.New(slog.DiscardHandler))
	if len(providers) != 2 || providers[0].Name != "company" || providers[0].Caption != "Company" || providers[0].Kind != structs.MethodLDAP || providers[1].Name != "lab" {
		t.Fatalf("there are %+v", providers)
	}
	role, projects := auth.Grants(providers[0].Rules, []string{"CN=ML,DC=X"}, providers[0].Fold)
	if role != "" || len(projects) != 1 || projects[0].Project != "vision" {
		t.Errorf("the group gives %q and %v", role, projects)
	}
	var refused *structs.Error
	if _, err := providers[0].Directory.Ask(t.Context(), "ann", "", func(string) error { return nil }); !errors.As(err, &refused) || refused.ID != "auth.directory_wrong" || refused.Params["provider"] != "company" {
		t.Errorf("without a password: %v", err)
	}
}
