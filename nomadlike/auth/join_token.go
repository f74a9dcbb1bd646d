package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// joinVersion begins every join token and is its version.
const joinVersion = "nl1"

// JoinUsesUnlimited is the value of structs.JoinToken.UsesLeft for a token
// that any number of agents may use until it expires.
const JoinUsesUnlimited = -1

// JoinToken is what an operator gives to a new agent:
//
//	nl1.<SHA-256 of the CA, hex>.<token id>.<secret>@<host:port>
//
// The agent dials the address with PinnedTLS and tells the secret only to a
// server that the pinned CA vouches for.
type JoinToken struct {
	Fingerprint string // of the cluster's CA, see Fingerprint
	ID          string // names the stored record
	Secret      string
	Addr        string // host:port of an agent; may be "" when given elsewhere
}

// GenerateJoinToken makes a new token with 256 secret bits from rand, and
// the record to store. Role is what a joining agent will become, uses how
// many agents may join with it (or JoinUsesUnlimited), ttl how long.
func GenerateJoinToken(fingerprint, addr string, role Role, uses int, ttl time.Duration, rand io.Reader, now time.Time) (JoinToken, *structs.JoinToken, error) {
	switch {
	case !role.Valid():
		return JoinToken{}, nil, fmt.Errorf("make join token: %q is no role", role)
	case uses < 1 && uses != JoinUsesUnlimited:
		return JoinToken{}, nil, fmt.Errorf("make join token: %d is no number of uses", uses)
	case ttl <= 0:
		return JoinToken{}, nil, fmt.Errorf("make join token: it must live longer than %s", ttl)
	}
	id, err := NewTokenID(rand)
	if err != nil {
		return JoinToken{}, nil, err
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(rand, secret); err != nil {
		return JoinToken{}, nil, fmt.Errorf("draw secret of join token: %w", err)
	}
	token := JoinToken{Fingerprint: fingerprint, ID: id, Secret: base32Text().EncodeToString(secret), Addr: addr}
	// Reading it back refuses a bad fingerprint or address here, not at the
	// joiner.
	if _, err := ParseJoinToken(token.String()); err != nil {
		return JoinToken{}, nil, fmt.Errorf("make join token for CA %q at %q: %w", fingerprint, addr, err)
	}
	stored := &structs.JoinToken{
		ID:        id,
		Hash:      HashToken(token.Secret),
		Role:      string(role),
		UsesLeft:  uses,
		CreatedAt: structs.At(now),
		ExpiresAt: structs.At(now.Add(ttl)),
	}
	return token, stored, nil
}

// String is the token's text, secret included: the one way to show it.
// Formatting, logging or marshalling the token hides the secret, so that it
// cannot slip out with the configuration that holds it.
func (t JoinToken) String() string {
	text := strings.Join([]string{joinVersion, t.Fingerprint, t.ID, t.Secret}, ".")
	if t.Addr != "" {
		text += "@" + t.Addr
	}
	return text
}

func (t JoinToken) hidden() string {
	if t == (JoinToken{}) {
		return ""
	}
	t.Secret = "***"
	return t.String()
}

// Format writes the token without its secret, whatever the verb.
func (t JoinToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.hidden()) }

// LogValue is the token without its secret.
func (t JoinToken) LogValue() slog.Value { return slog.StringValue(t.hidden()) }

// MarshalText is the token without its secret; ParseJoinToken refuses it.
func (t JoinToken) MarshalText() ([]byte, error) { return []byte(t.hidden()), nil }

// ParseJoinToken reads what String writes; it accepts one spelling only.
// The error never contains the text.
func ParseJoinToken(text string) (JoinToken, error) {
	head, addr, hasAddr := strings.Cut(text, "@")
	parts := strings.Split(head, ".")
	if len(parts) != 4 || parts[0] != joinVersion {
		return JoinToken{}, ErrBadJoinToken
	}
	token := JoinToken{Fingerprint: parts[1], ID: parts[2], Secret: parts[3], Addr: addr}
	secret, err := base32Text().DecodeString(token.Secret)
	switch {
	case !isHex(token.Fingerprint, 32):
		return JoinToken{}, fmt.Errorf("%w: bad CA fingerprint", ErrBadJoinToken)
	case !isHex(token.ID, tokenIDBytes):
		return JoinToken{}, fmt.Errorf("%w: bad id", ErrBadJoinToken)
	case err != nil || len(secret) != secretBytes || base32Text().EncodeToString(secret) != token.Secret:
		return JoinToken{}, fmt.Errorf("%w: bad secret", ErrBadJoinToken)
	case hasAddr && !validAddr(addr):
		return JoinToken{}, fmt.Errorf("%w: bad address", ErrBadJoinToken)
	}
	return token, nil
}

// isHex reports whether text is exactly n bytes as lower-case hexadecimal.
func isHex(text string, n int) bool {
	bytes, err := hex.DecodeString(text)
	return err == nil && len(bytes) == n && text == hex.EncodeToString(bytes)
}

func validAddr(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || (net.ParseIP(host) == nil && !validDNSName(host)) {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// CheckJoin decides whether a presented join token lets an agent in as role
// at now. Stored is the record with the token's id, nil when there is none.
// It returns nil to let it in; using a token up is the caller's next step.
// Who does not know the secret learns nothing about the record.
func CheckJoin(stored *structs.JoinToken, secret string, role Role, now time.Time) *structs.Error {
	var hash []byte
	if stored != nil {
		hash = stored.Hash
	}
	if !TokenMatches(hash, secret) {
		return structs.NewError(structs.CodeUnauthorized, "auth.join_unknown")
	}
	switch {
	// No expiry is a broken record, not an eternal token.
	case structs.At(now) >= stored.ExpiresAt:
		return structs.NewError(structs.CodeUnauthorized, "auth.join_expired", "id", stored.ID)
	case stored.UsesLeft != JoinUsesUnlimited && stored.UsesLeft < 1:
		return structs.NewError(structs.CodeUnauthorized, "auth.join_used_up", "id", stored.ID)
	case !role.Valid() || stored.Role != string(role):
		return structs.NewError(structs.CodeForbidden, "auth.join_role", "id", stored.ID, "role", string(role))
	}
	return nil
}

// IsSpentJoin reports whether a refusal of CheckJoin is of a token that let
// agents in until it was used up or over: the secret was right.
func IsSpentJoin(refusal *structs.Error) bool {
	return refusal.ID == "auth.join_used_up" || refusal.ID == "auth.join_expired"
}

// JoinUse is the use of a join token by one agent with one key. Who asks again
// with all three is the same agent, which did not get its answer.
type JoinUse struct {
	hash [sha256.Size]byte
}

// NewJoinUse reads the key of a request for a certificate, which proves that
// whoever asks holds it.
func NewJoinUse(tokenID string, role Role, agentID string, csrPEM []byte) (*JoinUse, error) {
	csr, err := ParseCSR(csrPEM)
	if err != nil {
		return nil, err
	}
	use := sha256.New()
	for _, part := range [][]byte{[]byte(tokenID), []byte(role), []byte(agentID), csr.RawSubjectPublicKeyInfo} {
		sum := sha256.Sum256(part) // of one length, so that no two uses look alike
		use.Write(sum[:])
	}
	return &JoinUse{[sha256.Size]byte(use.Sum(nil))}, nil
}

// Name names the use in one span of time, for the log: 64 characters.
func (u *JoinUse) Name(span int64) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(u.hash[:], uint64(span)))
	return hex.EncodeToString(sum[:])
}
