package config

import (
	"strings"
	"testing"

	"nomadlike/internal/messages"
)

// TestActiveDirectoryConfig: what the kind has where nothing is said, and what does not go
// together.
func TestActiveDirectoryConfig(t *testing.T) {
	yes, no, kind, file, dn, tokens, members := true, false, ldapActiveDirectory, "/etc/password", "dc=corp,dc=example", "tokenGroups", "memberOf"
	load := func(kind *string, groups *LDAPGroupsBlock) (Config, error) {
		return Load(nil, Settings{Dev: &yes, Server: &ServerBlock{SignIn: &SignInBlock{LDAP: []LDAPBlock{{
			Name: "company", Kind: kind, Servers: []string{"ldaps://dc1.corp.example"}, BindDN: &dn, BindPasswordFile: &file, Users: &LDAPUsersBlock{Base: &dn}, Groups: groups,
		}}}}}, messages.English)
	}
	for what, c := range map[string]struct {
		kind      *string
		groups    *LDAPGroupsBlock
		active    bool
		attribute string // of groups; "": refused
	}{
		"a directory":                         {nil, nil, false, "memberOf"},
		"Active Directory":                    {&kind, nil, true, "tokenGroups"},
		"without groups of groups":            {&kind, &LDAPGroupsBlock{Nested: &no}, true, "memberOf"},
		"walked":                              {&kind, &LDAPGroupsBlock{Attribute: &members}, true, "memberOf"},
		"searched":                            {&kind, &LDAPGroupsBlock{Base: &dn, Nested: &no}, true, "memberOf"},
		"tokens without groups of groups":     {&kind, &LDAPGroupsBlock{Attribute: &tokens, Nested: &no}, true, ""},
		"tokens of what is no such directory": {nil, &LDAPGroupsBlock{Attribute: &tokens}, false, ""},
	} {
		config, err := load(c.kind, c.groups)
		if c.attribute == "" {
			if err == nil || !strings.Contains(err.Error(), "tokenGroups are of Active Directory") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got := config.Server.SignIn.LDAP[0].Directory; got.Active != c.active || got.Groups.Attribute != c.attribute || strings.Contains(got.Users.Filter, "userPrincipalName") != c.active {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
