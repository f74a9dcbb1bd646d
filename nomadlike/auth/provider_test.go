package auth

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestGrants(t *testing.T) {
	rules := []Rule{
		{Group: "cn=ml,dc=x", Project: "vision", Role: structs.RoleUser},
		{Group: "cn=leads,dc=x", Project: "vision", Role: structs.RoleProjectAdmin},
		{Group: "cn=guests,dc=x", Project: "vision", Role: structs.RoleViewer},
		{Group: "cn=guests,dc=x", Project: "audio", Role: structs.RoleViewer},
		{Group: "cn=ops,dc=x", Role: structs.RoleOperator},
		{Group: "cn=root,dc=x", Role: structs.RoleAdmin},
	}
	vision := func(role string) []structs.Membership { return []structs.Membership{{Project: "vision", Role: role}} }
	for _, c := range []struct {
		groups   string
		fold     func(string) string
		role     string
		projects []structs.Membership
	}{
		{"", nil, "", nil},
		{"cn=ml,dc=x", nil, "", vision(structs.RoleUser)},
		{"cn=leads,dc=x cn=ml,dc=x", nil, "", vision(structs.RoleProjectAdmin)},
		{"cn=guests,dc=x cn=ml,dc=x", nil, "", []structs.Membership{{Project: "audio", Role: structs.RoleViewer}, {Project: "vision", Role: structs.RoleUser}}},
		{"cn=root,dc=x cn=ops,dc=x", nil, structs.RoleAdmin, nil},
		{"cn=ops,dc=x", nil, structs.RoleOperator, nil},
		{"CN=ML,dc=x", nil, "", nil},
		{"CN=ML,dc=x", strings.ToLower, "", vision(structs.RoleUser)},
		{"cn=m cn=ml,dc=xx ml cn=ml,dc=x,dc=y *", nil, "", nil}, // a part, more, a pattern
	} {
		role, projects := Grants(rules, strings.Fields(c.groups), c.fold)
		if role != c.role || !reflect.DeepEqual(projects, c.projects) {
			t.Errorf("%s gives %q and %v, want %q and %v", c.groups, role, projects, c.role, c.projects)
		}
	}
}

func TestAccountName(t *testing.T) {
	for outside, want := range map[string]string{
		"ann": "ann", " Ann ": "ann", "ANN.Lee@Corp.Example": "ann.lee@corp.example", "a_1": "a_1",
		"": "!name.empty", "  ": "!name.empty", "ann lee": "!user.name_characters", "张伟": "!user.name_characters", "аnn": "!user.name_characters", // the first is Cyrillic
		"Kelvin\u212A": "!user.name_characters", // a sign that lower case makes a k
		`CORP\ann`:     "!user.name_characters", "../ann": "!user.name_characters", "ann\x00": "!user.name_characters", "-ann": "!user.name_characters",
		strings.Repeat("a", 65): "!user.name_too_long",
	} {
		name, problem := AccountName(outside)
		if problem != "" {
			name = "!" + problem
		}
		if name != want {
			t.Errorf("%q becomes %q, want %q", outside, name, want)
		}
	}
}

// What a provider says of a person is shown only where it may be.
func TestSignInOf(t *testing.T) {
	rules := []Rule{{Group: "ml", Project: "vision", Role: structs.RoleUser}}
	in, refusal := SignInOf("company", rules, &External{Subject: "u-1", Name: "Ann", DisplayName: " Ann Lee ", Email: "ann@corp.example", Groups: []string{"ml"}}, nil)
	if want := (&structs.SignIn{
		Provider: "company", Subject: "u-1", Name: "ann", DisplayName: "Ann Lee", Email: "ann@corp.example", Projects: []structs.Membership{{Project: "vision", Role: structs.RoleUser}},
	}); refusal != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("%+v, %v, want %+v", in, refusal, want)
	}
	in, refusal = SignInOf("company", rules, &External{Subject: "u-1", Name: "ann", DisplayName: "Ann\r\nBcc: all", Email: "ann@corp.example>\r\nBcc: all"}, nil)
	if refusal != nil || in.DisplayName != "" || in.Email != "" {
		t.Errorf("lines of a header stay: %+v, %v", in, refusal)
	}
	many := make([]string, GroupsMax+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for want, who := range map[string]External{
		"auth.identity_name":    {Subject: "u-1", Name: "ann\u202elee"},
		"auth.identity_subject": {Name: "ann", Subject: ""},
		"auth.identity_groups":  {Subject: "u-1", Name: "ann", Groups: many},
	} {
		if _, refusal := SignInOf("company", rules, &who, nil); refusal == nil || refusal.ID != want {
			t.Errorf("%+v: %v, want %s", who.Name, refusal, want)
		}
	}
	for _, subject := range []string{"a\x00b", "a\nb", strings.Repeat("a", structs.SubjectMax+1)} {
		if _, refusal := SignInOf("company", rules, &External{Subject: subject, Name: "ann"}, nil); refusal == nil {
			t.Errorf("the subject %.20q is let in", subject)
		}
	}
}
