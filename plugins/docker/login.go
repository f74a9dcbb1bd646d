package docker

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
)

// loginOf reads what a job brings for the registry of its image: USER:PASSWORD, or a
// file that docker login writes, which must name the registry. nil of nothing. Errors do
// not repeat any of it. Pure.
func loginOf(secret []byte, domain string) (*credentials, error) {
	text := bytes.TrimSpace(secret)
	switch {
	case len(text) == 0:
		return nil, nil
	case text[0] == '{':
		login, err := parseAuth(text, domain)
		if err == nil && login == nil {
			err = errors.New("the file of credentials does not name the registry")
		}
		return login, err
	}
	user, password, ok := strings.Cut(string(text), ":")
	if !ok || user == "" || password == "" || strings.ContainsAny(string(text), "\r\n") {
		return nil, errors.New("the credentials are neither USER:PASSWORD nor a file of docker login")
	}
	return &credentials{username: user, password: password}, nil
}

// proofsMax bounds the credentials that are remembered for one image; beyond it they are
// proved anew.
const proofsMax = 256

// proofs remembers, as long as the agent runs, with which credentials the registry let
// somebody have a private image. It keeps no credentials, but hashes with a salt of its
// own. Any goroutine may use it; its zero value is empty.
type proofs struct {
	mu   sync.Mutex
	salt []byte
	seen map[string]map[[sha256.Size]byte]bool // by the image's id
}

func (p *proofs) add(id string, login *credentials) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen, p.salt = make(map[string]map[[sha256.Size]byte]bool), make([]byte, sha256.Size)
		rand.Read(p.salt) // never fails
	}
	if p.seen[id] == nil || len(p.seen[id]) >= proofsMax {
		p.seen[id] = make(map[[sha256.Size]byte]bool)
	}
	p.seen[id][p.hash(login)] = true
}

func (p *proofs) has(id string, login *credentials) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[id] != nil && p.seen[id][p.hash(login)]
}

// hash is of each part with its length, so that no two logins have the same bytes.
func (p *proofs) hash(login *credentials) [sha256.Size]byte {
	text := bytes.Clone(p.salt)
	for _, part := range []string{login.username, login.password, login.token} {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}
