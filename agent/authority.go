package agent

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// authority is what an agent holds of the cluster's CAs. It is immutable: a
// rotation stores another one in the identity, while it holds the lock of the
// identity's files.
type authority struct {
	caPEM  []byte      // the certificates that are trusted, that which signs first
	trust  *auth.Trust // of them
	ca     *auth.CA    // that which signs; nil on nodes
	stored storedCA
}

// storedCA is the content of caStateFile.
type storedCA struct {
	// Past are the CAs of before that are followed to the present one.
	Past []structs.PastCA `json:"past,omitempty"`
	// Offered, on servers, is the newest CA with its key that the log does not use yet.
	// Earlier are those before it, the newer first: which of them the log names is
	// not known before it does, since a request that seemed to fail may take effect.
	Offered *offeredCA  `json:"offered,omitempty"`
	Earlier []offeredCA `json:"earlier_offers,omitempty"`
	// Of the cluster's record that named them.
	Index     uint64           `json:"index,omitempty"`
	RevivedAt structs.UnixNano `json:"revived_at,omitempty"`
}

// offersMax bounds the keys and CAs that are kept for the log to name one of them.
const offersMax = 16

type offeredCA struct {
	Certificate []byte `json:"certificate"` // PEM
	Key         []byte `json:"key"`         // PEM
}

// readAuthority reads the CAs of an identity directory, with the key on servers.
func readAuthority(base, cluster string, caPEM []byte, server bool) (*authority, error) {
	held := &authority{caPEM: caPEM}
	data, err := os.ReadFile(filepath.Join(base, caStateFile))
	if err == nil {
		if err := json.Unmarshal(data, &held.stored); err != nil {
			return nil, fmt.Errorf("parse %s: %w", caStateFile, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if held.trust, err = auth.NewTrust(cluster, caPEM); err != nil || !server {
		return held, err
	}
	key, err := os.ReadFile(filepath.Join(base, caKeyFile))
	if err != nil {
		return nil, err
	}
	held.ca, err = auth.ParseCA(caPEM, key, cluster)
	return held, err
}

// ca signs certificates; nil on nodes.
func (i *identity) ca() *auth.CA { return i.held.Load().ca }

// caPEM are the certificates of the CAs that the agent trusts, that which signs
// first.
func (i *identity) caPEM() []byte { return i.held.Load().caPEM }

// trust is what the agent's connections trust.
func (i *identity) trust() *auth.Trust { return i.held.Load().trust }

// knows reports whether a CA is trusted, or was the cluster's before.
func (h *authority) knows(fingerprint string) bool {
	return slices.ContainsFunc(h.trust.Certificates(), func(cert *x509.Certificate) bool { return auth.Fingerprint(cert) == fingerprint }) ||
		slices.ContainsFunc(h.stored.Past, func(past structs.PastCA) bool { return past.Certificate.Fingerprint == fingerprint })
}

// proofs is what the renewal door believes as proof of who somebody was: nodes
// that were away while the CA was replaced bring a certificate of the one before.
func (h *authority) proofs(now structs.UnixNano) (*auth.Trust, error) {
	text := slices.Clone(h.caPEM)
	for _, past := range h.stored.Past {
		if now < past.Until {
			text = append(text, past.Certificate.PEM...)
		}
	}
	return auth.NewTrust(h.trust.Cluster, text)
}

// shown is what a server's chain has besides its certificate and the CA's: the
// way from CAs of before.
func (h *authority) shown(now structs.UnixNano) (pem []byte) {
	for _, past := range slices.Backward(h.stored.Past) {
		if now < past.Until && past.Certificate.Fingerprint != h.ca.Fingerprint() {
			pem = append(append(pem, past.Cross...), past.Certificate.PEM...)
		}
	}
	return pem
}

// key is the CA with a fingerprint whose key is here; nil when it is not.
func (h *authority) key(fingerprint string) *auth.CA {
	if h.ca != nil && h.ca.Fingerprint() == fingerprint {
		return h.ca
	}
	for _, offered := range h.stored.offers() {
		if ca, err := auth.ParseCA(offered.Certificate, offered.Key, h.trust.Cluster); err == nil && ca.Fingerprint() == fingerprint {
			return ca
		}
	}
	return nil
}

// offers are the CAs that the log may name, the newest first.
func (s *storedCA) offers() []offeredCA {
	if s.Offered == nil {
		return nil
	}
	return append([]offeredCA{*s.Offered}, s.Earlier...)
}

// offerCA keeps a CA with its key that the log may name soon.
func (i *identity) offerCA(offered offeredCA) error {
	ca, err := auth.ParseCA(offered.Certificate, offered.Key, i.trust().Cluster)
	if err != nil {
		return fmt.Errorf("keep offered CA: %w", err)
	}
	i.gossip.mu.Lock()
	defer i.gossip.mu.Unlock()
	held := *i.held.Load()
	if held.key(ca.Fingerprint()) != nil {
		return nil
	}
	before := held.stored.offers()
	held.stored.Offered, held.stored.Earlier = &offered, before[:min(len(before), offersMax-1)]
	return i.saveCA(&held, nil)
}

// caNews is what the cluster's record says of CAs.
type caNews struct {
	trusted   []structs.CACertificate // that which signs first
	past      []structs.PastCA
	index     uint64
	revivedAt structs.UnixNano
}

// takeCA makes certificates the ones that the agent trusts, as a record of the
// cluster says that is no older than the last. It refuses what would shut the
// agent out: own are its certificates, which must be of a CA that stays. Older
// news change nothing.
func (i *identity) takeCA(news caNews, own []*auth.Credentials) (changed bool, err error) {
	var text strings.Builder
	for _, cert := range news.trusted {
		text.WriteString(cert.PEM)
	}
	i.gossip.mu.Lock()
	defer i.gossip.mu.Unlock()
	before := i.held.Load()
	kept := before.stored
	if len(news.trusted) == 0 || news.revivedAt < kept.RevivedAt || news.revivedAt == kept.RevivedAt && news.index < kept.Index {
		return false, nil
	}
	after := &authority{caPEM: []byte(text.String()), stored: kept}
	after.stored.Past, after.stored.Index, after.stored.RevivedAt = news.past, news.index, news.revivedAt
	if string(before.caPEM) == text.String() && slices.Equal(kept.Past, news.past) {
		return false, nil
	}
	if after.trust, err = auth.NewTrust(before.trust.Cluster, after.caPEM); err != nil {
		return false, fmt.Errorf("keep CA: %w", err)
	}
	for _, credentials := range own {
		if after.trust.Issuer(credentials.Certificate.Leaf) == nil {
			return false, errors.New("keep CA: the agent's own certificate is not renewed yet")
		}
	}
	files := identityFiles{caFile: after.caPEM}
	if before.ca != nil {
		for n, cert := range news.trusted {
			ca := before.key(cert.Fingerprint)
			switch {
			case n == 0 && ca == nil:
				return false, errors.New("keep CA: its key is not here")
			case n == 0:
				after.ca = ca
			}
		}
		if after.ca.Fingerprint() != before.ca.Fingerprint() {
			if files[caKeyFile], err = after.ca.KeyPEM(); err != nil {
				return false, fmt.Errorf("keep CA: %w", err)
			}
			after.stored.Offered, after.stored.Earlier = nil, nil
		}
	}
	return true, i.saveCA(after, files)
}

// saveCA writes an authority to the identity directory, with other files of it,
// and then takes it. The caller holds the lock of the files.
func (i *identity) saveCA(held *authority, changed identityFiles) error {
	data, err := json.Marshal(held.stored)
	if err != nil {
		return fmt.Errorf("keep CA: %w", err)
	}
	if changed == nil {
		err = replaceFile(filepath.Join(i.dir, identityDir, caStateFile), data)
	} else {
		var files identityFiles
		if files, err = i.files(); err == nil {
			files[caStateFile] = data
			for name, content := range changed {
				files[name] = content
			}
			err = files.exchange(i.dir)
		}
	}
	if err != nil {
		return fmt.Errorf("keep CA: %w", err)
	}
	i.held.Store(held)
	return nil
}
