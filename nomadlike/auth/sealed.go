package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"nomadlike/nomadlike/structs"
)

// Values of secrets are sealed with a data key before they enter the log, and data
// keys with a key of the servers, which lies on their disks alone:
//
//	server key (file) ── seals ──▶ data key (log) ── seals ──▶ value (log)
//
// All three are AES-256-GCM with a nonce of its own for each sealing.

// SealKeySize is the size of a data key, and of a key of the servers, in bytes.
const SealKeySize = 32

// ErrSealed is returned by Open of what was sealed with another key, is bound to
// something else, or was changed.
var ErrSealed = errors.New("not sealed with this key, or for this place")

// SealKey seals and opens. It prints as nothing.
type SealKey struct{ bytes [SealKeySize]byte }

// NewSealKey draws a key.
func NewSealKey() *SealKey {
	key := new(SealKey)
	rand.Read(key.bytes[:]) // never fails
	return key
}

// ParseSealKey takes the bytes of a key.
func ParseSealKey(bytes []byte) (*SealKey, error) {
	if len(bytes) != SealKeySize {
		return nil, errors.New("parse key: it has a wrong size")
	}
	return &SealKey{[SealKeySize]byte(bytes)}, nil
}

// Bytes is the key itself, for the disk and for other servers.
func (k *SealKey) Bytes() []byte { return append([]byte(nil), k.bytes[:]...) }

// Fingerprint names the key without telling it.
func (k *SealKey) Fingerprint() string {
	sum := sha256.Sum256(append([]byte("nomadlike server key\x00"), k.bytes[:]...))
	return hex.EncodeToString(sum[:16])
}

// String hides the key.
func (*SealKey) String() string { return "***" }

// GoString hides the key.
func (*SealKey) GoString() string { return "***" }

func (k *SealKey) cipher() cipher.AEAD {
	block, err := aes.NewCipher(k.bytes[:])
	if err != nil {
		panic("make cipher: " + err.Error()) // only a wrong size of the key errs
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("make cipher: " + err.Error()) // AES has the right block size
	}
	return sealer
}

// Seal seals a value for one place, which Open must be told again.
func (k *SealKey) Seal(value, binding []byte) []byte {
	return k.cipher().Seal(nil, nil, value, binding)
}

// Open returns a value that Seal has sealed for the same place.
func (k *SealKey) Open(sealed, binding []byte) ([]byte, error) {
	value, err := k.cipher().Open(nil, nil, sealed, binding)
	if err != nil {
		return nil, ErrSealed
	}
	return value, nil
}

// SealDataKey makes the record of a data key, sealed with a key of the servers.
func SealDataKey(serverKey, dataKey *SealKey, id string) structs.SecretKey {
	record := structs.SecretKey{ID: id, ServerKey: serverKey.Fingerprint()}
	record.Sealed = serverKey.Seal(dataKey.bytes[:], record.Binding())
	return record
}

// OpenDataKey returns the data key of a record.
func OpenDataKey(serverKey *SealKey, record *structs.SecretKey) (*SealKey, error) {
	bytes, err := serverKey.Open(record.Sealed, record.Binding())
	if err != nil {
		return nil, err
	}
	return ParseSealKey(bytes)
}
