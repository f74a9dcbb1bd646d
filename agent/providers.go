package agent

import (
	"log/slog"

	"nomadlike/agent/config"
	"nomadlike/agent/directory"
	"nomadlike/agent/httpapi"
	"nomadlike/nomadlike/structs"
)

// providersOf lists what people sign in through, as the configuration says.
func providersOf(config *config.SignIn, log *slog.Logger) (providers []httpapi.Provider) {
	for _, one := range config.LDAP {
		providers = append(providers, httpapi.Provider{
			Name: one.Name, Kind: structs.MethodLDAP, Caption: one.Caption, Rules: one.Rules, Fold: directory.Fold,
			Directory: directory.New(one.Directory, log),
		})
	}
	return providers
}
