package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

const (
	// progressEvery is how often a pull reports how far it is.
	progressEvery = 250 * time.Millisecond
	authBytesMax  = 1 << 20
)

// imageRef is an image's name, completed: "ubuntu" is
// "docker.io/library/ubuntu:latest".
type imageRef struct {
	domain, path, tag, digest string
	id                        string // of an image named by its content alone
}

func parseRef(text string) (imageRef, error) {
	if hex, ok := strings.CutPrefix(text, "sha256:"); ok && hexadecimal(hex) && hex != "" {
		return imageRef{id: text}, nil
	}
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return imageRef{}, structs.NewError(structs.CodeInvalid, "docker.image_name", "image", text).Because(err)
	}
	ref := imageRef{domain: reference.Domain(named), path: reference.Path(named)}
	if digested, ok := named.(reference.Digested); ok {
		ref.digest = digested.Digest().String()
	}
	if tagged, ok := named.(reference.Tagged); ok {
		ref.tag = tagged.Tag()
	} else if ref.digest == "" {
		ref.tag = "latest"
	}
	return ref, nil
}

// String is the name as the engine takes it.
func (r imageRef) String() string {
	switch {
	case r.id != "":
		return r.id
	case r.digest != "":
		return r.domain + "/" + r.path + "@" + r.digest
	default:
		return r.domain + "/" + r.path + ":" + r.tag
	}
}

// digestOf finds under which digest the registry of ref has an image.
func digestOf(ref imageRef, digests []string) string {
	for _, entry := range digests {
		named, err := reference.ParseNormalizedNamed(entry)
		if err != nil {
			continue
		}
		digested, ok := named.(reference.Digested)
		if ok && reference.Domain(named) == ref.domain && reference.Path(named) == ref.path {
			return digested.Digest().String()
		}
	}
	return ""
}

// Prepare fetches the task's image.
func (d *Driver) Prepare(ctx context.Context, spec driver.TaskSpec, report func(driver.Progress)) (driver.Prepared, error) {
	if err := d.startable(&spec); err != nil {
		return driver.Prepared{}, err
	}
	if err := d.host.learn(ctx); err != nil {
		return driver.Prepared{}, engineError(err)
	}
	_, prepared, err := d.images.prepare(ctx, spec.Container, spec.ImageCredentials, report)
	return prepared, err
}

// CollectImages looks at all images once and removes those that the rules
// let go at the given time.
func (d *Driver) CollectImages(ctx context.Context, now time.Time) error {
	return d.images.collect(ctx, now)
}

// pullRefusal finds what an engine means by an error of pulling.
func pullRefusal(err error, name, registry string) error {
	text := strings.ToLower(err.Error())
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case errors.Is(err, driver.ErrUnavailable):
		return engineError(err)
	case says("unauthorized", "authentication required", "no basic auth", "denied"):
		return structs.NewError(structs.CodeForbidden, "docker.image_denied", "image", name, "registry", registry).Because(err)
	case says("manifest unknown", "not found", "does not exist"):
		return structs.NewError(structs.CodeInvalid, "docker.image_unknown", "image", name, "registry", registry).Because(err)
	case says("no space left"):
		return structs.NewError(structs.CodeUnavailable, "docker.disk_full", "image", name).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "docker.pull_failed", "image", name, "cause", lastClause(err.Error())).Because(err)
}

// pullProgress adds up what an engine says of single layers.
type pullProgress struct {
	name   string
	step   string // of what is sent; "" of what comes
	layers map[string]layerProgress
}

func newPullProgress(name string) *pullProgress {
	return &pullProgress{name: name, layers: make(map[string]layerProgress)}
}

// add takes a line. Download and extraction of a layer are told one after the
// other with the same numbers; a layer counts as fetched from then on.
func (p *pullProgress) add(line layerProgress) {
	if line.Layer == "" {
		return
	}
	known := p.layers[line.Layer]
	switch line.Status {
	case "Downloading":
		known.Done, known.Total = line.Done, max(line.Total, known.Total)
	case "Download complete", "Verifying Checksum", "Extracting", "Pull complete", "Already exists":
		known.Total = max(known.Total, line.Total)
		known.Done = known.Total
	case "Pulling fs layer", "Waiting":
	default:
		return // the line about the whole image has its tag as its layer
	}
	known.Status = line.Status
	p.layers[line.Layer] = known
}

func (p *pullProgress) sum() driver.Progress {
	sum := driver.Progress{Step: "extract", Item: p.name}
	if p.step != "" {
		sum.Step = p.step
	}
	for _, layer := range p.layers {
		sum.Done += layer.Done
		sum.Total += layer.Total
		if p.step == "" && (layer.Status == "Downloading" || layer.Status == "Pulling fs layer" || layer.Status == "Waiting") {
			sum.Step = "pull"
		}
	}
	return sum
}

// pulls lets one caller at a time pull an image.
type pulls struct {
	mu struct {
		sync.Mutex
		busy map[string]chan struct{}
	}
}

// enter waits for others who pull the same; the caller calls release.
func (p *pulls) enter(ctx context.Context, ref string) (release func(), err error) {
	for {
		p.mu.Lock()
		if p.mu.busy == nil {
			p.mu.busy = make(map[string]chan struct{})
		}
		other, busy := p.mu.busy[ref]
		if !busy {
			done := make(chan struct{})
			p.mu.busy[ref] = done
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				delete(p.mu.busy, ref)
				p.mu.Unlock()
				close(done)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// credentials returns what logs in to a registry, nil for none. Files are read
// each time, so that a changed password counts at once.
func (c *Config) credentials(domain string) (*credentials, error) {
	for _, r := range c.Registries {
		if r.Host != domain {
			continue
		}
		password, err := os.ReadFile(r.PasswordFile)
		if err != nil {
			return nil, err
		}
		return &credentials{username: r.Username, password: strings.TrimRight(string(password), "\r\n")}, nil
	}
	if c.AuthFile == "" {
		return nil, nil
	}
	body, err := os.ReadFile(c.AuthFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(body) > authBytesMax {
		return nil, fmt.Errorf("read %s: too long", c.AuthFile)
	}
	return parseAuth(body, domain)
}

// parseAuth reads a file made by docker login. Errors do not repeat any of
// it. Pure.
func parseAuth(body []byte, domain string) (*credentials, error) {
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
	}
	if json.Unmarshal(body, &file) != nil {
		return nil, errors.New("the file of credentials is not JSON of the expected form")
	}
	keys := []string{domain, "https://" + domain, "https://" + domain + "/v1/", "https://" + domain + "/v2/", "http://" + domain}
	if domain == "docker.io" {
		keys = append(keys, "https://index.docker.io/v1/", "index.docker.io")
	}
	for _, key := range keys {
		entry, ok := file.Auths[key]
		if !ok {
			continue
		}
		login := &credentials{username: entry.Username, password: entry.Password, token: entry.IdentityToken}
		if entry.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(entry.Auth)
			if err != nil {
				return nil, errors.New("the credentials of the registry are not base64")
			}
			var ok bool
			if login.username, login.password, ok = strings.Cut(string(plain), ":"); !ok {
				return nil, errors.New("the credentials of the registry have no password")
			}
			login.password = strings.TrimRight(login.password, "\x00")
		}
		return login, nil
	}
	return nil, nil
}
