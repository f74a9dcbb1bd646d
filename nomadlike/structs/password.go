package structs

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Password is what the servers know of an account's password. It stands apart from
// the account, which many may read; no answer of the API holds it.
type Password struct {
	User  string   `json:"user"`
	Hash  string   `json:"hash"`            // as auth.HashPassword writes it
	First bool     `json:"first,omitempty"` // drawn for the account's holder, who chooses another with the first sign-in
	Until UnixNano `json:"until,omitempty"` // when one that is drawn ends

	SetAt       UnixNano `json:"set_at"`
	SetBy       string   `json:"set_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index"`
}

// Bounds of passwords and of what a sign-in makes.
const (
	PasswordLengthMin = 12  // characters; length is what makes one strong
	PasswordBytesMax  = 256 // of one, so that nobody has a server hash for long
	PasswordHashMax   = 512 // bytes of Password.Hash
	SignInsMax        = 64  // tokens by signing in that one account has at a time; beyond, the oldest ends
)

// MethodPassword is Token.Method of a token that a password made.
const MethodPassword = "password"

// PasswordProblem reports why a text may not be the password of an account, as the
// message id of the reason, or "" when it may. Rules about the kinds of characters
// are left out on purpose: they make passwords that people write down
// (NIST SP 800-63B, 3.1.1.2).
func PasswordProblem(user, password string) string {
	switch {
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return "password.characters"
	case len(password) > PasswordBytesMax:
		return "password.long"
	case utf8.RuneCountInString(password) < PasswordLengthMin:
		return "password.short"
	case repeats(password):
		return "password.guessable"
	case user != "" && strings.Trim(strings.ReplaceAll(strings.ToLower(password), strings.ToLower(user), ""), "0123456789 !._-") == "":
		return "password.guessable"
	}
	return ""
}

// repeats reports whether a text is a shorter one, of up to four characters, again
// and again.
func repeats(text string) bool {
	runes := []rune(text)
	for period := 1; period <= 4; period++ {
		same := true
		for i := period; i < len(runes) && same; i++ {
			same = runes[i] == runes[i-period]
		}
		if same {
			return true
		}
	}
	return false
}
