// Package registrytest starts a real image registry for tests.
package registrytest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"nomadlike/internal/eventually"
)

// Start starts the registry of Docker's own distribution, which lets one account in, and
// returns its address. An engine speaks plain HTTP to loopback addresses. It ends with
// the test, and is skipped where the program is not installed.
func Start(t *testing.T, user, password string) string {
	t.Helper()
	program, err := osexec.LookPath("docker-registry")
	if err != nil {
		t.Skip("no image registry is installed here: apt-get install docker-registry")
	}
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	listener.Close()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: %q}\nauth: {htpasswd: {realm: test, path: %s/users}}\n", dir, host, dir)
	for name, text := range map[string]string{"users": user + ":" + string(hash) + "\n", "config.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := osexec.Command(program, "serve", filepath.Join(dir, "config.yml"))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	eventually.Within(t, 30*time.Second, "the registry answers", func() bool {
		client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get("http://" + host + "/v2/")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusUnauthorized
	})
	return host
}
