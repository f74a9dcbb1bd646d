package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/agent/directory"
)

// Kinds of directories. They differ in defaults, and in what is asked of an account.
const (
	ldapGeneric         = "generic"
	ldapActiveDirectory = "active_directory"
)

// LDAPBlock is the block of one directory, labelled with the provider's name.
type LDAPBlock struct {
	Name             string
	Caption          *string
	Kind             *string
	Servers          []string
	StartTLS         *bool
	Insecure         *bool
	CAFile           *string
	Timeout          *string
	BindDN           *string
	BindPasswordFile *string
	Users            *LDAPUsersBlock
	Groups           *LDAPGroupsBlock
	Grants           []GrantBlock
}

// LDAPUsersBlock says how people stand in a directory.
type LDAPUsersBlock struct {
	DN          *string
	Base        *string
	Filter      *string
	Subject     *string
	Name        *string
	DisplayName *string
	Email       *string
}

// LDAPGroupsBlock says how groups stand in a directory.
type LDAPGroupsBlock struct {
	Base      *string
	Filter    *string
	Attribute *string
	Nested    *bool
}

// LDAP is one directory.
type LDAP struct {
	Provider
	Directory directory.Config
}

// ldapDefaults are what a kind of directories has where nothing is said.
func ldapDefaults(b *LDAPBlock) (users directory.Users, groups directory.Groups) {
	groups = directory.Groups{Filter: "(|(member={dn})(uniqueMember={dn})(memberUid={name}))", Attribute: "memberOf", Nested: true}
	if get(b.Kind, ldapGeneric) == ldapActiveDirectory {
		groups.Filter = "(member={dn})"
		if b.Groups == nil || get(b.Groups.Nested, true) {
			groups.Attribute = directory.TokenGroups
		}
		return directory.Users{
			Filter:  "(&(objectCategory=person)(objectClass=user)(|(sAMAccountName={name})(userPrincipalName={name})))",
			Subject: "objectGUID", Name: "sAMAccountName", DisplayName: "displayName", Email: "mail",
		}, groups
	}
	return directory.Users{Filter: "(&(objectClass=person)(uid={name}))", Subject: "entryUUID", Name: "uid", DisplayName: "cn", Email: "mail"}, groups
}

func walkLDAP(v visitor, b *LDAPBlock) { walkTypedLDAP(v, b, &directory.Config{}) }

func walkTypedLDAP(v visitor, b *LDAPBlock, c *directory.Config) {
	users, groups := ldapDefaults(b)
	v.label(&b.Name)
	v.setting("caption", text(&b.Caption, new(string), "").unset())
	v.setting("kind", word(&b.Kind, new(string), ldapGeneric, ldapGeneric, ldapActiveDirectory))
	v.setting("servers", list(&b.Servers, &c.Servers))
	v.setting("start_tls", toggle(&b.StartTLS, &c.StartTLS, true))
	v.setting("insecure", toggle(&b.Insecure, &c.Insecure, false))
	v.setting("ca_file", text(&b.CAFile, &c.CAFile, "").unset())
	v.setting("timeout", span(&b.Timeout, &c.Timeout, providerTimeout).from(float64(providerTimeoutMin), float64(providerTimeoutMax)).refused("agent.config.provider_timeout"))
	v.setting("bind_dn", text(&b.BindDN, &c.BindDN, "").unset())
	v.setting("bind_password_file", text(&b.BindPasswordFile, &c.BindPasswordFile, "").unset())
	one(v, "users", &b.Users, func(v visitor, b *LDAPUsersBlock) {
		v.setting("dn", text(&b.DN, &c.UserDN, "").unset())
		v.setting("base", text(&b.Base, &c.Users.Base, "").unset())
		v.setting("filter", text(&b.Filter, &c.Users.Filter, users.Filter))
		v.setting("subject", text(&b.Subject, &c.Users.Subject, users.Subject))
		v.setting("name", text(&b.Name, &c.Users.Name, users.Name))
		v.setting("display_name", text(&b.DisplayName, &c.Users.DisplayName, users.DisplayName))
		v.setting("email", text(&b.Email, &c.Users.Email, users.Email))
	})
	one(v, "groups", &b.Groups, func(v visitor, b *LDAPGroupsBlock) {
		v.setting("base", text(&b.Base, &c.Groups.Base, "").unset())
		v.setting("filter", text(&b.Filter, &c.Groups.Filter, groups.Filter))
		v.setting("attribute", text(&b.Attribute, &c.Groups.Attribute, groups.Attribute))
		v.setting("nested", toggle(&b.Nested, &c.Groups.Nested, groups.Nested))
	})
	every(v, "grant", "group", &b.Grants, walkGrant, nil)
}

// resolveLDAP reads a block. It tells everything that a sign-in would stumble over later.
func resolveLDAP(r *resolver, path string, b *LDAPBlock, names *[]string) (LDAP, bool) {
	before := len(r.problems)
	c := directory.Config{Name: b.Name}
	r.settle(path, func(v visitor) { walkTypedLDAP(v, b, &c) })
	c.Active = get(b.Kind, ldapGeneric) == ldapActiveDirectory
	out := LDAP{Provider: resolveProvider(r, path, b.Name, b.Caption, b.Grants, names), Directory: c}
	if len(c.Servers) == 0 {
		r.refuse(path+".servers", "agent.config.ldap_servers")
	}
	for _, server := range c.Servers {
		at, err := url.Parse(server)
		switch {
		case err != nil || at.Scheme != "ldap" && at.Scheme != "ldaps" || at.Hostname() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" || at.RawQuery != "":
			r.refuse(path+".servers", "agent.config.ldap_server", "value", server)
		case at.Scheme == "ldap" && !c.StartTLS && !c.Insecure:
			r.refuse(path+".servers", "agent.config.ldap_plain", "value", server)
		}
	}
	for _, file := range []struct{ name, value string }{{".ca_file", c.CAFile}, {".bind_password_file", c.BindPasswordFile}} {
		if file.value != "" && !filepath.IsAbs(file.value) {
			r.refuse(path+file.name, "agent.config.storage_file", "value", file.value)
		}
	}
	searches := c.BindDN != "" && c.BindPasswordFile != "" && c.Users.Base != "" && c.UserDN == ""
	itself := c.BindDN == "" && c.BindPasswordFile == "" && c.Users.Base == "" && strings.Contains(c.UserDN, directory.PlaceName)
	if !searches && !itself {
		r.refuse(path, "agent.config.ldap_how")
	}
	checkLDAPFilter(r, path+".users.filter", c.Users.Filter, directory.PlaceName)
	checkLDAPFilter(r, path+".groups.filter", c.Groups.Filter, directory.PlaceDN, directory.PlaceName)
	if strings.EqualFold(c.Groups.Attribute, directory.TokenGroups) && (!c.Active || !c.Groups.Nested && c.Groups.Base == "") {
		r.refuse(path+".groups.attribute", "agent.config.ldap_token_groups")
	}
	for _, dn := range []struct{ name, value string }{
		{".bind_dn", c.BindDN}, {".users.base", c.Users.Base}, {".groups.base", c.Groups.Base}, {".users.dn", strings.ReplaceAll(c.UserDN, directory.PlaceName, "x")},
	} {
		if _, err := ldap.ParseDN(dn.value); err != nil {
			r.refuse(path+dn.name, "agent.config.ldap_dn", "value", dn.value)
		}
	}
	for _, attribute := range []struct{ name, value string }{{".users.subject", c.Users.Subject}, {".users.name", c.Users.Name}, {".groups.attribute", c.Groups.Attribute}} {
		if attribute.value == "" {
			r.refuse(path+attribute.name, "agent.config.ldap_attribute")
		}
	}
	return out, len(r.problems) == before
}

// checkLDAPFilter checks the template of a filter.
func checkLDAPFilter(r *resolver, path, filter string, places ...string) {
	has, filled := false, filter
	for _, place := range places {
		has = has || strings.Contains(filter, place)
		filled = strings.ReplaceAll(filled, place, "x")
	}
	if _, err := ldap.CompileFilter(filled); err != nil || !has {
		r.refuse(path, "agent.config.ldap_filter", "value", filter, "places", strings.Join(places, ", "))
	}
}
