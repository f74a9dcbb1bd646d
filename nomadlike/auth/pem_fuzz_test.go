package auth

import "testing"

// FuzzPEM: whatever a file or a joiner sends for certificates and keys, reading
// it ends with an error or with something usable.
func FuzzPEM(f *testing.F) {
	for _, text := range []string{
		"", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
	} {
		f.Add([]byte(text), []byte(text))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if csr, err := ParseCSR(first); err == nil && csr == nil {
			t.Error("no request and no error")
		}
		if chain, err := ParseCertificates(first); err == nil && len(chain) == 0 {
			t.Error("no certificate and no error")
		}
		if ca, err := ParseCA(first, second, "lab"); err == nil && ca == nil {
			t.Error("no CA and no error")
		}
		if own, err := ParseCredentials(first, second, first); err == nil && own == nil {
			t.Error("no credentials and no error")
		}
	})
}
