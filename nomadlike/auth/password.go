package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Cost is what hashing a password takes.
type Cost struct {
	Time    uint32 // passes
	Memory  uint32 // KiB
	Threads uint8
}

// PasswordCost is the second recommended choice of RFC 9106, section 4: tens of
// milliseconds and 64 MiB. Only tests take another.
func PasswordCost() Cost { return Cost{Time: 3, Memory: 64 << 10, Threads: 4} }

const (
	hashSalt   = 16 // bytes
	hashLength = 32 // bytes
)

// Bounds of what a stored hash may ask for: it may come from a backup.
const (
	hashTimeMax    = 16
	hashMemoryMax  = 256 << 10 // KiB
	hashThreadsMax = 16
)

var errBadHash = errors.New("not a stored password")

// Hash is the stored form of a password: argon2id (RFC 9106) as a PHC string,
// $argon2id$v=19$m=65536,t=3,p=4$SALT$HASH, with a salt from rand.
func (c Cost) Hash(password string, rand io.Reader) (string, error) {
	salt := make([]byte, hashSalt)
	if _, err := io.ReadFull(rand, salt); err != nil {
		return "", fmt.Errorf("draw salt of password: %w", err)
	}
	key := argon2.IDKey([]byte(password), salt, c.Time, c.Memory, c.Threads, hashLength)
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Time, c.Threads, text(salt), text(key)), nil
}

// Matches compares a password with a stored form, at the cost that this names. With
// none it takes the own cost and matches nothing, so that how long an answer takes does
// not say who has an account. A stored form that is none, or that asks for more than the
// bounds above, is an error.
func (c Cost) Matches(stored, password string) (bool, error) {
	if stored == "" {
		argon2.IDKey([]byte(password), make([]byte, hashSalt), c.Time, c.Memory, c.Threads, hashLength)
		return false, nil
	}
	p, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	key := argon2.IDKey([]byte(password), p.salt, p.time, p.memory, p.threads, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(key, p.key) == 1, nil
}

// phc is a stored password, read.
type phc struct {
	time, memory uint32
	threads      uint8
	salt, key    []byte
}

func parsePHC(text string) (phc, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return phc{}, errBadHash
	}
	cost := strings.Split(parts[3], ",")
	if len(cost) != 3 {
		return phc{}, errBadHash
	}
	var p phc
	var threads uint32
	for i, field := range []struct {
		name string
		most uint32
		to   *uint32
	}{{"m=", hashMemoryMax, &p.memory}, {"t=", hashTimeMax, &p.time}, {"p=", hashThreadsMax, &threads}} {
		digits, found := strings.CutPrefix(cost[i], field.name)
		value, err := strconv.ParseUint(digits, 10, 32)
		if !found || err != nil || value == 0 || value > uint64(field.most) {
			return phc{}, errBadHash
		}
		*field.to = uint32(value)
	}
	p.threads = uint8(threads)
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(p.salt) < 8 || len(p.salt) > 64 {
		return phc{}, errBadHash
	}
	if p.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(p.key) < 16 || len(p.key) > 64 {
		return phc{}, errBadHash
	}
	return p, nil
}

// GeneratePassword draws a password for somebody who will choose another: five groups
// of four letters and digits that are not taken for each other, 100 bits.
func GeneratePassword(rand io.Reader) (string, error) {
	const alphabet = "abcdefghjkmnpqrstuvwxyz23456789x" // 32; x twice costs a hundredth of a bit
	drawn := make([]byte, 20)
	if _, err := io.ReadFull(rand, drawn); err != nil {
		return "", fmt.Errorf("draw first password: %w", err)
	}
	var text strings.Builder
	for i, b := range drawn {
		if i > 0 && i%4 == 0 {
			text.WriteByte('-')
		}
		text.WriteByte(alphabet[b%32])
	}
	return text.String(), nil
}
