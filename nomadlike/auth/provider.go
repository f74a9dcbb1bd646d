package auth

import (
	"cmp"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// External is who a provider of sign-ins says that somebody is. All of it comes from
// outside, and is hostile until SignInOf has looked at it.
type External struct {
	Subject     string   // what the provider knows the person by for good; never used again for another
	Name        string   // that the person signs in with there
	DisplayName string   // "" for none
	Email       string   // "" for none
	Groups      []string // that the rules are about, as the provider spells them
}

// Rule is the role that whoever belongs to a group of a provider has: in a project, or
// in the whole cluster.
type Rule struct {
	Group   string // compared byte by byte, but see Fold
	Project string
	Role    string // viewer | user | project-admin of Project; operator | admin of the cluster without one
}

// GroupsMax bounds the groups of one person that are looked at: more is a mistake of
// the provider, or an attack.
const GroupsMax = 10_000

// Grants is what the rules of a provider give whoever belongs to these groups: the
// highest role in the whole cluster and in each project, by name. fold compares groups
// by another spelling of them, as directories do with names; nil: by their bytes. Pure.
func Grants(rules []Rule, groups []string, fold func(string) string) (role string, projects []structs.Membership) {
	if fold == nil {
		fold = func(group string) string { return group }
	}
	in := make(map[string]bool, len(groups))
	for _, group := range groups {
		in[fold(group)] = true
	}
	for _, rule := range rules {
		if !in[fold(rule.Group)] {
			continue
		}
		if rule.Project == "" {
			role = higher(role, rule.Role)
			continue
		}
		at := slices.IndexFunc(projects, func(m structs.Membership) bool { return m.Project == rule.Project })
		if at < 0 {
			projects = append(projects, structs.Membership{Project: rule.Project, Role: rule.Role})
		} else {
			projects[at].Role = higher(projects[at].Role, rule.Role)
		}
	}
	slices.SortFunc(projects, func(a, b structs.Membership) int { return cmp.Compare(a.Project, b.Project) })
	return role, projects
}

func higher(a, b string) string {
	if a == "" || lower(UserRole(a), UserRole(b)) == UserRole(a) {
		return b
	}
	return a
}

// AccountName makes the name of an account of a name from outside: the blanks around it
// go, and capitals of ASCII become small ones, since directories do not tell them apart.
// Nothing else changes: what would have to be left out or replaced could be two people's.
// The id is that of why it may not name an account, "" when it may.
func AccountName(outside string) (name, problem string) {
	name = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(outside))
	return name, structs.UserNameProblem(name)
}

// SignInOf is the command that signs in whom a provider vouches for, without its token.
// What of a person cannot be shown is left out; a name or a subject that cannot be is
// refused. fold is of Grants.
func SignInOf(provider string, rules []Rule, who *External, fold func(string) string) (*structs.SignIn, *structs.Error) {
	name, problem := AccountName(who.Name)
	switch {
	case problem != "":
		return nil, structs.NewError(structs.CodeForbidden, "auth.identity_name", "provider", provider, "name", shownName(who.Name))
	case structs.SubjectProblem(who.Subject) != "":
		return nil, structs.NewError(structs.CodeForbidden, "auth.identity_subject", "provider", provider, "user", name)
	case len(who.Groups) > GroupsMax:
		return nil, structs.NewError(structs.CodeForbidden, "auth.identity_groups", "provider", provider, "user", name, "count", len(who.Groups), "max", GroupsMax)
	}
	in := &structs.SignIn{Provider: provider, Subject: who.Subject, Name: name}
	in.Role, in.Projects = Grants(rules, who.Groups, fold)
	person := structs.User{Name: name, DisplayName: strings.TrimSpace(who.DisplayName)}
	if len(person.Validate()) == 0 {
		in.DisplayName = person.DisplayName
	}
	person = structs.User{Name: name, Email: strings.TrimSpace(who.Email)}
	if len(person.Validate()) == 0 {
		in.Email = person.Email
	}
	return in, nil
}

// shownName is a name from outside as a message may hold it.
func shownName(name string) string {
	const most = 64
	cut := strings.ToValidUTF8(name[:min(len(name), most)], "")
	if !structs.PlainText(cut, most) {
		return "?"
	}
	return cut
}
