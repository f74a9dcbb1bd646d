package structs

import (
	"slices"
	"strings"
)

// User is a person's account. Its rights are its role in the whole cluster
// (ClusterRole) and its membership in projects, which stands in these
// (Project.RoleOf); a token that speaks for it may do no more. Written by administrators
// and by sign-ins through providers.
type User struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"display_name,omitempty"`
	Email       string   `json:"email,omitempty"`
	Language    string   `json:"language,omitempty"` // en | zh; "": whatever the reader's locale says
	SSHKeys     []string `json:"ssh_keys,omitempty"` // public ones, as lines of authorized_keys
	Role        string   `json:"role,omitempty"`     // operator | admin, of the whole cluster; "": none
	Project     string   `json:"project,omitempty"`  // that they act in where a request names none; "": the first of theirs by name

	// Identities are who the account is to providers of sign-ins. Set by sign-ins and
	// by CommandUserIdentity alone.
	Identities []Identity `json:"identities,omitempty" since:"28"`

	// Disabled accounts may do nothing, and have no tokens.
	Disabled   bool     `json:"disabled,omitempty"`
	DisabledAt UnixNano `json:"disabled_at,omitempty"`
	DisabledBy string   `json:"disabled_by,omitempty"`

	CreatedAt   UnixNano `json:"created_at,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"`
	CreateIndex uint64   `json:"create_index,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// Limits of a user.
const (
	UserNameLengthMax = 64
	UserTextMax       = 200 // bytes of a display name and of an address
	SSHKeysMax        = 64
	SSHKeyLengthMax   = 16 << 10 // bytes of one line
)

// Roles, as records spell them. A project's are those of Project.RoleOf.
const (
	RoleViewer       = "viewer"
	RoleUser         = "user"
	RoleProjectAdmin = "project-admin"
	RoleOperator     = "operator"
	RoleAdmin        = "admin"
	RoleAccount      = "account" // of tokens: whatever their user may
)

// UserNameProblem reports why name may not name an account, as the message id of
// the reason, or "" when it may: ASCII letters, digits, and . _ - @ within, as
// directories spell them, beginning with a letter or a digit.
func UserNameProblem(name string) string {
	switch {
	case name == "":
		return "name.empty"
	case len(name) > UserNameLengthMax:
		return "user.name_too_long"
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || !strings.ContainsRune("._-@", rune(c))) {
			return "user.name_characters"
		}
	}
	return ""
}

// Validate lists everything that is wrong with a user's record, in the order of
// its fields; an empty list means that it may be stored. Pure.
func (u *User) Validate() []Problem {
	v := &validator{}
	if id := UserNameProblem(u.Name); id != "" {
		v.add("name", id, "", "name", u.Name, "max", UserNameLengthMax)
	}
	v.plain("display_name", u.DisplayName, UserTextMax)
	if v.plain("email", u.Email, UserTextMax) && u.Email != "" && !looksLikeAddress(u.Email) {
		v.add("email", "user.email", "user.email.hint", "value", u.Email)
	}
	v.choice("language", u.Language, true, "en", "zh")
	v.sshKeys(u.SSHKeys)
	v.choice("role", u.Role, true, RoleOperator, RoleAdmin)
	if u.Project != "" {
		v.name("project", u.Project)
	}
	return v.problems
}

// plain checks a text that is shown in one line.
func (v *validator) plain(path, value string, limit int) bool {
	if !v.text(path, value, limit) {
		return false
	}
	if !PlainText(value, limit) {
		v.add(path, "user.text", "")
		return false
	}
	return true
}

// looksLikeAddress reports whether a message could be sent there: one @ with
// something on both sides, and nothing that a header of a mail gives a meaning.
func looksLikeAddress(text string) bool {
	local, host, found := strings.Cut(text, "@")
	return found && local != "" && host != "" && !strings.ContainsAny(host, "@") && !strings.ContainsAny(text, " \t<>(),;:\\\"[]")
}

func (v *validator) sshKeys(keys []string) {
	if len(keys) > SSHKeysMax {
		v.add("ssh_keys", "job.too_many", "", "what", "ssh_keys", "count", len(keys), "max", SSHKeysMax)
		return
	}
	for i, key := range keys {
		path := IndexedPath("ssh_keys", i)
		switch {
		case !v.plain(path, key, SSHKeyLengthMax):
		case !looksLikeSSHKey(key):
			v.add(path, "user.ssh_key", "user.ssh_key.hint")
		case slices.Contains(keys[:i], key):
			v.add(path, "job.duplicate", "", "value", key)
		}
	}
}

// looksLikeSSHKey reports whether a line has the form TYPE BASE64 [COMMENT] of a
// public key, without the options that a line of authorized_keys may begin with:
// these would be the account holder's word on what the server does.
func looksLikeSSHKey(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return false
	}
	kind := fields[0]
	known := strings.HasPrefix(kind, "ssh-") || strings.HasPrefix(kind, "ecdsa-sha2-") || strings.HasPrefix(kind, "sk-")
	return known && len(fields[1]) >= 16 && strings.Trim(fields[1], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == ""
}

// Membership is a user's role in one project.
type Membership struct {
	Project string `json:"project"`
	Role    string `json:"role"` // viewer | user | project-admin
}

// What becomes of a user's jobs when the account is disabled.
const (
	JobsRunOn    = "run_on"    // those that wait too
	JobsStop     = "stop"      // they end
	JobsHandOver = "hand_over" // they are another's from now on
)
