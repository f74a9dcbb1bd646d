package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// TokenKind is the middle part of an API token's text. It tells people (and
// scanners of leaked secrets) what they look at; what a token may do stands
// in its stored record alone.
type TokenKind string

// The kinds of secrets that people hold.
const (
	TokenManagement TokenKind = "management" // of an administrator
	TokenUser       TokenKind = "user"       // of everybody else
	TokenSetup      TokenKind = "setup"      // one-time: makes the first management token
	TokenShare      TokenKind = "share"      // of a share link: shows one thing to whoever has it
)

const (
	tokenPrefix   = "nl_"
	secretBytes   = 32 // of randomness in every secret
	checksumBytes = 4  // CRC-32 (IEEE) of everything before it
	tokenIDBytes  = 8  // of randomness in a token's accessor
)

var (
	// ErrBadToken is returned for text that is no API token at all: wrong
	// form or wrong checksum, as after a slip of the mouse.
	ErrBadToken = errors.New("not an API token")
	// ErrBadJoinToken is returned for text that is no join token.
	ErrBadJoinToken = errors.New("not a join token")
)

// base32Text spells random bytes with letters and digits only, so that a
// double click selects a whole secret. It is built at each call because
// package variables are not initialised by function calls here.
func base32Text() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// GenerateToken makes the text of a new API token, nl_<kind>_<secret><crc>,
// with 256 bits from rand. Show it once; store only HashToken of it.
func GenerateToken(kind TokenKind, rand io.Reader) (string, error) {
	if !kind.valid() {
		return "", fmt.Errorf("make token: %q is no kind of token", kind)
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(rand, secret); err != nil {
		return "", fmt.Errorf("draw secret of token: %w", err)
	}
	return tokenText(kind, secret), nil
}

func (k TokenKind) valid() bool {
	return k == TokenManagement || k == TokenUser || k == TokenSetup || k == TokenShare
}

func tokenText(kind TokenKind, secret []byte) string {
	head := tokenPrefix + string(kind) + "_" + base32Text().EncodeToString(secret)
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(head)))
	return head + base32Text().EncodeToString(sum)
}

// ParseToken checks the form and the checksum of an API token and returns
// its kind. It says nothing about whether the token exists. The error never
// contains the text, which may be a secret with a typing error.
func ParseToken(text string) (TokenKind, error) {
	rest, found := strings.CutPrefix(text, tokenPrefix)
	kindText, body, split := strings.Cut(rest, "_")
	kind := TokenKind(kindText)
	secretLength := base32Text().EncodedLen(secretBytes)
	if !found || !split || !kind.valid() || len(body) != secretLength+base32Text().EncodedLen(checksumBytes) {
		return "", ErrBadToken
	}
	secret, err := base32Text().DecodeString(body[:secretLength])
	// Comparing with the only spelling checks the CRC and the unused bits.
	if err != nil || tokenText(kind, secret) != text {
		return "", ErrBadToken
	}
	return kind, nil
}

// HashToken is the stored form of a token or of a join token's secret. A
// plain SHA-256 is enough because the secrets are 256 random bits.
func HashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// TokenMatches compares a presented secret with a stored hash in constant
// time. An empty hash matches nothing.
func TokenMatches(hash []byte, text string) bool {
	return len(hash) == sha256.Size && subtle.ConstantTimeCompare(hash, HashToken(text)) == 1
}

// NewTokenID draws the accessor under which a token is listed and revoked:
// 16 hexadecimal digits, no secret.
func NewTokenID(rand io.Reader) (string, error) {
	id := make([]byte, tokenIDBytes)
	if _, err := io.ReadFull(rand, id); err != nil {
		return "", fmt.Errorf("draw token id: %w", err)
	}
	return hex.EncodeToString(id), nil
}

// TokenPrincipal is whom a stored token speaks for at now, once its secret
// matched. It refuses expired tokens and records that grant nothing clear: a
// token without a role, or whose role and project do not fit, is nobody. What its
// user may is not looked at: Stand does.
func TokenPrincipal(token *structs.Token, now time.Time) (Principal, *structs.Error) {
	if token.ExpiresAt != 0 && structs.At(now) >= token.ExpiresAt {
		return Principal{}, structs.NewError(structs.CodeUnauthorized, "auth.token_expired",
			"expired_at", token.ExpiresAt.Time().Format(time.RFC3339))
	}
	principal := Principal{Kind: KindUser, ID: token.User, Role: UserRole(token.Role), Project: token.Project}
	if principal.ID == "" {
		principal.ID = token.ID
	}
	if token.Role == string(RoleAccount) && token.User != "" && token.JobID == "" {
		return principal, nil // what the account may is for Stand to find
	}
	switch { // the user of a share link made it, and is not whoever carries it
	case token.Role == string(KindGuest):
		principal = Principal{Kind: KindGuest, ID: token.JobID, Project: token.Project}
	case token.Role == string(KindBoard):
		principal = Principal{Kind: KindBoard, ID: token.ID}
	case token.JobID != "":
		return Principal{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	if !principal.wellFormed() {
		return Principal{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	}
	return principal, nil
}
