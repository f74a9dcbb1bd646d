package auth

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// fakeAccounts are records in memory, projects by name.
type fakeAccounts struct {
	users    map[string]*structs.User
	services map[string]*structs.ServiceAccount
	projects []*structs.Project
	settings *structs.Settings
}

func (f fakeAccounts) ServiceAccount(id string) *structs.ServiceAccount { return f.services[id] }

func (f fakeAccounts) Settings() *structs.Settings { return f.settings }

func (f fakeAccounts) User(name string) *structs.User { return f.users[name] }

func (f fakeAccounts) Project(name string) *structs.Project {
	for _, project := range f.projects {
		if project.Name == name {
			return project
		}
	}
	return nil
}

func (f fakeAccounts) ProjectsOf(user string) iter.Seq[*structs.Project] {
	return func(yield func(*structs.Project) bool) {
		for _, project := range f.projects {
			if project.RoleOf(user) != "" && !yield(project) {
				return
			}
		}
	}
}

func group() fakeAccounts {
	return fakeAccounts{
		users: map[string]*structs.User{
			"li":   {Name: "li", ModifyIndex: 1},
			"mei":  {Name: "mei", Project: "vision", ModifyIndex: 2},
			"olga": {Name: "olga", Role: structs.RoleOperator, ModifyIndex: 3},
			"ada":  {Name: "ada", Role: structs.RoleAdmin, ModifyIndex: 4},
			"gone": {Name: "gone", Disabled: true, ModifyIndex: 5},
			"new":  {Name: "new", ModifyIndex: 6},
		},
		services: map[string]*structs.ServiceAccount{
			"service+vision+ci":  {Name: "ci", Project: "vision", Role: structs.RoleUser, ModifyIndex: 11},
			"service+open+boss":  {Name: "boss", Project: "open", Role: structs.RoleProjectAdmin, ModifyIndex: 12},
			"service+vision+off": {Name: "off", Project: "vision", Role: structs.RoleUser, Disabled: true, ModifyIndex: 13},
			"service+wall":       {Name: "wall", Role: structs.RoleOperator, ModifyIndex: 14},
		},
		projects: []*structs.Project{
			{Name: "open", ModifyIndex: 7},
			{Name: "speech", Members: []string{"li", "mei"}, Admins: []string{"pat"}, ModifyIndex: 8},
			{Name: "vision", Members: []string{"olga"}, Admins: []string{"mei"}, Viewers: []string{"li", "gone"}, ModifyIndex: 9},
		},
	}
}

// TestStanding spells out what each sort of token becomes, where the request names
// a project and where it does not.
func TestStanding(t *testing.T) {
	later := structs.At(testNow.Add(time.Hour))
	tokens := []structs.Token{
		{ID: "t", Role: "account", User: "li"},
		{ID: "t", Role: "account", User: "li", Project: "vision"},
		{ID: "t", Role: "viewer", User: "li", Project: "speech"},
		{ID: "t", Role: "project-admin", User: "li", Project: "speech"},
		{ID: "t", Role: "user", User: "li", Project: "open"},
		{ID: "t", Role: "admin", User: "li"},
		{ID: "t", Role: "account", User: "mei"},
		{ID: "t", Role: "account", User: "olga"},
		{ID: "t", Role: "operator", User: "olga"},
		{ID: "t", Role: "account", User: "olga", Project: "vision"},
		{ID: "t", Role: "account", User: "ada"},
		{ID: "t", Role: "operator", User: "ada"},
		{ID: "t", Role: "user", User: "ada", Project: "speech"},
		{ID: "t", Role: "account", User: "gone"},
		{ID: "t", Role: "account", User: "new"},
		{ID: "t", Role: "account", User: "nobody"},
		{ID: "t", Role: "account"},
		{ID: "t", Role: "user", User: "eve", Project: "speech"},
		{ID: "t", Role: "user", User: "pat", Project: "speech"},
		{ID: "t", Role: "viewer", User: "pat", Project: "speech"},
		{ID: "t", Role: "user", User: "eve", Project: "open"},
		{ID: "t", Role: "user", User: "eve", Project: "unwritten"},
		{ID: "t", Role: "user", Project: "speech"},
		{ID: "t", Role: "admin"},
		{ID: "t", Role: "account", User: "service+vision+ci", Project: "vision", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+vision+ci", Project: "speech", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+vision+ci", Project: "vision"},
		{ID: "t", Role: "project-admin", User: "service+vision+ci", Project: "vision", ExpiresAt: later},
		{ID: "t", Role: "admin", User: "service+vision+ci", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+open+boss", Project: "open", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+vision+off", Project: "vision", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+vision+gone", Project: "vision", ExpiresAt: later},
		{ID: "t", Role: "account", User: "service+wall", ExpiresAt: later},
		{ID: "t", Role: "admin", User: "root"},
		{ID: "t", Role: "guest", Project: "speech", JobID: "j", User: "li"},
	}
	var out strings.Builder
	accounts := group()
	for _, token := range tokens {
		fmt.Fprintf(&out, "token of %s, %s%s\n", orDash(token.User), token.Role, in(token.Project))
		for _, named := range []string{"", "speech", "vision", "open", "elsewhere", "No Name"} {
			standing, refusal := Stand(accounts, &token, named, testNow)
			said := ""
			if refusal != nil {
				said = fmt.Sprintf("%s %s", refusal.ID, refusal.Params["projects"])
			} else {
				p := standing.Principal
				said = fmt.Sprintf("%s %s%s", orDash(string(p.Role)), p.ID, in(p.Project))
				if p.Cluster != "" {
					said += ", and " + string(p.Cluster)
				}
				said += "; acts in " + orDash(standing.Project)
				for _, rest := range standing.Rests {
					said += fmt.Sprintf(" %s:%s@%d", rest.Kind, rest.ID, rest.Index)
				}
			}
			fmt.Fprintf(&out, "  %-11s%s\n", orDash(named), strings.TrimSpace(said))
		}
	}
	golden.Assert(t, "testdata/standing.golden", out.String())
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func in(project string) string {
	if project == "" {
		return ""
	}
	return " in " + project
}

// Whatever a token says, it never gives its user more than the user's records do,
// and never anything in another project than the one that is acted in.
func TestATokenGivesNoMoreThanItsAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		accounts := fakeAccounts{users: map[string]*structs.User{}}
		names := rapid.SampledFrom([]string{"li", "mei"})
		projectNames := []string{"a", "b"}
		for _, name := range []string{"li", "mei"} {
			if rapid.Bool().Draw(t, "account") {
				accounts.users[name] = &structs.User{
					Name: name, Role: rapid.SampledFrom([]string{"", "operator", "admin"}).Draw(t, "role"),
					Disabled: rapid.Bool().Draw(t, "disabled"), Project: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "home"),
				}
			}
		}
		for _, name := range projectNames {
			project := structs.Project{Name: name}
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				project = project.WithRole(names.Draw(t, "member"), rapid.SampledFrom([]string{"", "viewer", "user", "project-admin"}).Draw(t, "membership"))
			}
			accounts.projects = append(accounts.projects, &project)
		}
		token := &structs.Token{
			ID: "t", User: names.Draw(t, "user"), Project: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "project"),
			Role: rapid.SampledFrom([]string{"viewer", "user", "project-admin", "operator", "admin", "account"}).Draw(t, "token role"),
		}
		named := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "named")
		standing, refusal := Stand(accounts, token, named, testNow)
		if refusal != nil {
			return
		}
		p, user := standing.Principal, accounts.users[token.User]
		if !p.wellFormed() {
			t.Fatalf("malformed: %+v", p)
		}
		if named != "" && standing.Project != named || token.Project != "" && standing.Project != token.Project {
			t.Fatalf("acts in %s", standing.Project)
		}
		if user == nil {
			return
		}
		cluster := p.Cluster
		if p.Role.clusterWide() {
			cluster = p.Role
		}
		if user.Disabled || cluster != "" && lower(cluster, UserRole(user.Role)) != cluster || cluster != "" && (user.Role == "" || token.Project != "") {
			t.Fatalf("%+v for %+v", p, user)
		}
		if p.Project != "" {
			project := accounts.Project(p.Project)
			given := UserRole(project.RoleOf(user.Name))
			if p.Project != standing.Project || project.Closed() && (given == "" || lower(p.Role, given) != p.Role) {
				t.Fatalf("%+v, and %s lists %q", p, p.Project, given)
			}
		}
	})
}
