package agent

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/internal/secretfile"
	"nomadlike/nomadlike/auth/oidc"
	"nomadlike/nomadlike/structs"
)

const (
	authoritiesMax   = 1 << 20
	providerPatience = 5 * time.Second // for a connection, and for TLS
	providerHeadMax  = 64 << 10        // bytes of the head of an answer
)

// relyingOnAll makes the providers of OpenID Connect that people sign in through. Nothing
// is asked of one yet.
func relyingOnAll(all []config.OIDC) (providers []httpapi.Provider, err error) {
	for i := range all {
		of := &all[i]
		relying, err := relyingOn(of)
		if err != nil {
			return nil, err
		}
		providers = append(providers, httpapi.Provider{Name: of.Name, Kind: structs.MethodOIDC, Caption: of.Caption, Rules: of.Rules, Relying: relying})
	}
	return providers, nil
}

// relyingOn reads the files of a provider of OpenID Connect.
func relyingOn(c *config.OIDC) (*oidc.Provider, error) {
	refuse := func(path string, reason error) error {
		return structs.NewError(structs.CodeInvalid, "agent.refuse.oidc_file", "provider", c.Name, "path", path, "reason", reason)
	}
	secret := ""
	if c.ClientSecretFile != "" {
		text, err := secretfile.Read(c.ClientSecretFile)
		if err != nil {
			return nil, refuse(c.ClientSecretFile, err)
		}
		secret = text
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: providerPatience,
		MaxResponseHeaderBytes: providerHeadMax, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	if c.CAFile != "" {
		pem, err := fileUpTo(c.CAFile, authoritiesMax)
		if err != nil {
			return nil, refuse(c.CAFile, err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, refuse(c.CAFile, errors.New("it holds no certificate"))
		}
	}
	of := c.RelyingOn(secret, time.Now)
	of.Transport, of.Rand = transport, rand.Text
	return oidc.New(of), nil
}

func fileUpTo(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was read only
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = errors.New("it is too large")
	}
	return data, err
}
