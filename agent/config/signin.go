package config

import (
	"slices"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Bounds of signing in through providers.
const (
	providersMax = 8    // of one kind
	grantsMax    = 1024 // of one provider
	captionMax   = 64   // bytes
)

// SignInBlock is the block of the providers that people sign in through.
type SignInBlock struct {
	LDAP []LDAPBlock
	OIDC []OIDCBlock
}

// GrantBlock is the role of who belongs to a group, which is its label: in a project, or
// in the whole cluster.
type GrantBlock struct {
	Group       string
	Project     *string
	Role        *string
	ClusterRole *string
}

// SignIn is the part of the providers that people sign in through.
type SignIn struct {
	LDAP []LDAP
	OIDC []OIDC
}

// Provider is what all providers have.
type Provider struct {
	Name    string
	Caption string
	Rules   []auth.Rule
}

func walkSignIn(v visitor, b *SignInBlock, c *SignIn) {
	every(v, "ldap", "name", &b.LDAP, walkLDAP, nil)
	every(v, "oidc", "name", &b.OIDC, walkOIDC, nil)
	v.rule(func(r *resolver) { resolveSignIn(r, b, c) })
}

func walkGrant(v visitor, b *GrantBlock) {
	v.label(&b.Group)
	v.setting("project", text(&b.Project, new(string), "").unset().apart())
	v.setting("role", word(&b.Role, new(string), "", structs.RoleViewer, structs.RoleUser, structs.RoleProjectAdmin).unset().apart())
	v.setting("cluster_role", word(&b.ClusterRole, new(string), "", structs.RoleOperator, structs.RoleAdmin).unset().apart())
}

// resolveSignIn reads the blocks of all kinds of providers.
func resolveSignIn(r *resolver, b *SignInBlock, c *SignIn) {
	*c = SignIn{}
	if len(b.LDAP) > providersMax {
		r.refuse("server.sign_in.ldap", "agent.config.provider_count", "max", providersMax)
		return
	}
	if len(b.OIDC) > providersMax {
		r.refuse("server.sign_in.oidc", "agent.config.provider_count", "max", providersMax)
		return
	}
	var names []string
	for i := range b.LDAP {
		if one, ok := resolveLDAP(r, structs.IndexedPath("server.sign_in.ldap", i), &b.LDAP[i], &names); ok {
			c.LDAP = append(c.LDAP, one)
		}
	}
	for i := range b.OIDC {
		c.OIDC = append(c.OIDC, resolveOIDC(r, structs.IndexedPath("server.sign_in.oidc", i), &b.OIDC[i], &names))
	}
}

// resolveProvider reads what all providers have. names are those of the providers before it, of
// whatever kind.
func resolveProvider(r *resolver, path, name string, caption *string, grants []GrantBlock, names *[]string) Provider {
	p := Provider{Name: name, Caption: get(caption, "")}
	if id := structs.NameProblem(name); id != "" {
		r.refuse(path, id)
	}
	if slices.Contains(*names, name) {
		r.refuse(path, "agent.config.provider_twice", "name", name)
	}
	*names = append(*names, name)
	if !structs.PlainText(p.Caption, captionMax) {
		r.refuse(path+".caption", "agent.config.provider_caption", "max", captionMax)
	}
	if len(grants) > grantsMax {
		r.refuse(path+".grant", "agent.config.grant_count", "max", grantsMax)
		return p
	}
	projects := make(map[string]bool)
	for i := range grants {
		g, at := &grants[i], structs.IndexedPath(path+".grant", i)
		r.settle(at, func(v visitor) { walkGrant(v, g) })
		project, role := get(g.Project, ""), get(g.Role, "")
		switch {
		case g.Group == "":
			r.refuse(at, "agent.config.grant_group")
		case g.ClusterRole != nil && g.Project == nil && g.Role == nil:
			p.Rules = append(p.Rules, auth.Rule{Group: g.Group, Role: *g.ClusterRole})
		case g.ClusterRole == nil && project != "" && role != "":
			r.name(at+".project", project)
			projects[project] = true
			p.Rules = append(p.Rules, auth.Rule{Group: g.Group, Project: project, Role: role})
		default:
			r.refuse(at, "agent.config.grant_what")
		}
	}
	if len(projects) > structs.SignInGrantsMax {
		r.refuse(path+".grant", "agent.config.grant_projects", "max", structs.SignInGrantsMax)
	}
	return p
}

// providerTimeout bounds how long a provider may take to answer a sign-in.
const (
	providerTimeout    = 5 * time.Second
	providerTimeoutMin = 100 * time.Millisecond
	providerTimeoutMax = time.Minute
)
