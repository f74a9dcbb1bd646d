package command

import (
	"context"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// providerFlags say how to sign in through a provider that people sign in with in a
// browser of theirs.
type providerFlags struct {
	device *bool
	port   *int
}

func declareProviderFlags(set *flag.FlagSet) *providerFlags {
	return &providerFlags{device: set.Bool("device", false, "cli.flag.login_device"), port: set.Int("port", 0, "cli.flag.login_port")}
}

func (f *providerFlags) given() bool { return *f.device || *f.port != 0 }

// signInThrough returns the secret of a token that a sign-in at a provider makes. The
// servers do the talking with the provider, whose secret they have; this program shows
// where to go, waits on its own machine for the browser to come back, and hands on what
// that brings.
func (env *Env) signInThrough(remembered *api.Context, provider string, flags *providerFlags) (string, error) {
	stranger := *remembered
	stranger.Token = ""
	client, err := env.remembering(&stranger)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return env.signInBy(client, provider, flags)
}

// signInBy takes the way that fits this machine. client has no token.
func (env *Env) signInBy(client *api.Client, provider string, flags *providerFlags) (string, error) {
	if !*flags.device && (*flags.port != 0 || env.screenHere()) {
		return env.signInByBrowser(client, provider, *flags.port)
	}
	secret, err := env.signInByCode(client, provider)
	var refused *structs.Error
	if !*flags.device && errors.As(err, &refused) && refused.ID == "oidc.no_device" { // then whoever reads this has a way to bring a browser here
		return env.signInByBrowser(client, provider, *flags.port)
	}
	return secret, err
}

// signInByCode shows a code that is typed at the provider, on whatever machine has a
// browser, and waits until that is done.
func (env *Env) signInByCode(client *api.Client, provider string) (string, error) {
	begun, err := client.BeginLogin(env.Context, api.LoginBeginRequest{Provider: provider, Device: true})
	if err != nil {
		return "", err
	}
	fmt.Fprintln(env.Stderr, env.text("cli.login.code", "address", safe(begun.Address), "code", safe(begun.UserCode)))
	every := max(time.Duration(begun.Every), time.Second)
	for {
		select {
		case <-env.Context.Done():
			return "", env.Context.Err()
		case <-time.After(every):
		}
		made, err := client.Login(env.Context, api.LoginRequest{Provider: provider, Pending: begun.Pending})
		if err == nil {
			return made.Secret, nil
		}
		var refused *structs.Error
		waits := errors.As(err, &refused) && refused.ID == "oidc.device_waits" || structs.CodeOf(err) == structs.CodeUnavailable
		if !waits || structs.At(time.Now()) >= begun.ExpiresAt {
			return "", err
		}
	}
}

// loopbackPath is where the provider sends the browser back to on this machine.
const loopbackPath = "/signed-in"

// signInByBrowser opens a browser at the provider, and waits for it to come back.
func (env *Env) signInByBrowser(client *api.Client, provider string, port int) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(env.Context, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", structs.NewError(structs.CodeInvalid, "cli.login.port", "problem", rootCause(err))
	}
	defer func() { _ = listener.Close() }() // the server below may have closed it already
	begun, err := client.BeginLogin(env.Context, api.LoginBeginRequest{Provider: provider, Redirect: "http://" + listener.Addr().String() + loopbackPath})
	if err != nil {
		return "", err
	}
	address, err := url.Parse(begun.Address)
	if err != nil || address.Scheme != "https" {
		return "", structs.NewError(structs.CodeInvalid, "cli.login.address", "address", safe(begun.Address))
	}
	back := &comeBack{state: address.Query().Get("state"), host: listener.Addr().String(), text: env.text("cli.login.back"), answer: make(chan *api.ProviderAnswer, 1)}
	server := &http.Server{Handler: back, ReadTimeout: loopbackPatience, WriteTimeout: loopbackPatience, MaxHeaderBytes: loopbackHeadMax}
	go func() { _ = server.Serve(listener) }() // it ends with this function
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(env.Context), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // the browser gets its page
	}()
	fmt.Fprintln(env.Stderr, env.text("cli.login.open", "address", address.String()))
	env.openBrowser(address.String())
	ctx, cancel := context.WithDeadline(env.Context, begun.ExpiresAt.Time())
	defer cancel()
	select {
	case answer := <-back.answer:
		made, err := client.Login(env.Context, api.LoginRequest{Provider: provider, Pending: begun.Pending, Answer: answer})
		if err != nil {
			return "", err
		}
		return made.Secret, nil
	case <-ctx.Done():
		if err := env.Context.Err(); err != nil {
			return "", err
		}
		return "", structs.NewError(structs.CodeUnauthorized, "oidc.begin_again")
	}
}

// Bounds of what comes to a command line that waits for a browser.
const (
	loopbackPatience = 10 * time.Second
	loopbackHeadMax  = 64 << 10
)

// comeBack waits for a browser. Any page may have one ask this port: only what carries
// the state of the sign-in, and asks for this address by its number, counts.
type comeBack struct {
	state, host, text string
	answer            chan *api.ProviderAnswer
}

func (b *comeBack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.Host != b.host || r.URL.Path != loopbackPath || b.state == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.state)) != 1 {
		http.NotFound(w, r)
		return
	}
	select {
	case b.answer <- &api.ProviderAnswer{Code: query.Get("code"), State: query.Get("state"), Issuer: query.Get("iss"), Error: query.Get("error")}:
	default: // it came before
	}
	_, _ = io.WriteString(w, b.text+"\n") // a browser that went away has nothing to read
}

// screenHere reports whether a browser could be opened on this machine by whoever runs the
// command.
func (env *Env) screenHere() bool {
	if env.Getenv("BROWSER") != "" {
		return true
	}
	if env.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	return runtime.GOOS == "darwin" || env.Getenv("DISPLAY") != "" || env.Getenv("WAYLAND_DISPLAY") != ""
}

// openBrowser opens a browser at an https address, as far as there is one: the address
// stands on the screen as well.
func (env *Env) openBrowser(address string) {
	if !strings.HasPrefix(address, "https://") || !env.screenHere() {
		return
	}
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	program = firstOf(env.Getenv("BROWSER"), program)
	command := exec.CommandContext(env.Context, program, address)
	if command.Start() == nil {
		go func() { _ = command.Wait() }() // what it says matters to nobody here
	}
}
