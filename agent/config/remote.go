package config

import (
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/client/workspace"
)

// StorageHTTPBlock says where data lies on a web server. Placeholders stand in the
// path of the URL, not in the host.
type StorageHTTPBlock struct {
	URL               string
	List              *string  // name of the list of files with their digests; SHA256SUMS unless told
	CAFile            *string  // instead of the authorities that the machine trusts
	RedirectHosts     []string // which redirects may lead to, beside its own
	AuthorizationFile *string  // value of the header, for its own host
	SizeMax           *string  // of one dataset
}

// StorageS3Block says where data lies in an object store.
type StorageS3Block struct {
	URL             string // scheme and host
	Bucket          string
	Prefix          *string // template of what keys begin with
	Region          *string
	PathStyle       *bool // the bucket in the path; true unless told
	CredentialsFile *string
	Profile         *string // of the file
	List            *string
	CAFile          *string
	SizeMax         *string
}

func walkStorageHTTP(v visitor, b *StorageHTTPBlock, s *remote.Server) {
	v.setting("url", plain(&b.URL).needed())
	walkFar(v, s, &b.List, &b.CAFile, &b.SizeMax)
	v.setting("redirect_hosts", list(&b.RedirectHosts, &s.RedirectHosts))
	v.setting("authorization_file", text(&b.AuthorizationFile, &s.AuthorizationFile, "").unset())
}

func walkStorageS3(v visitor, b *StorageS3Block, s *remote.Server) {
	v.setting("url", plain(&b.URL).needed())
	v.setting("bucket", plain(&b.Bucket).needed())
	v.setting("prefix", text(&b.Prefix, new(string), "").unset())
	walkFar(v, s, &b.List, &b.CAFile, &b.SizeMax)
	v.setting("region", text(&b.Region, &s.S3.Region, "").knownAs(remote.RegionDefault))
	v.setting("path_style", toggle(&b.PathStyle, &s.S3.PathStyle, true))
	v.setting("credentials_file", text(&b.CredentialsFile, &s.S3.CredentialsFile, "").unset())
	v.setting("profile", text(&b.Profile, &s.S3.Profile, "").unset())
}

// walkFar goes over what servers of both sorts have.
func walkFar(v visitor, s *remote.Server, list, caFile, sizeMax **string) {
	v.setting("size_max", size(sizeMax, &s.SizeMax, 0).from(1, math.Inf(1)).refused("agent.config.size").because("it must be positive").unset())
	v.setting("list", text(list, &s.List, "").knownAs(remote.ListDefault))
	v.setting("ca_file", text(caFile, &s.CAFile, "").unset())
}

// remote checks the server of a storage, and returns the template of what lies
// below it.
func (r *resolver) remote(path string, block *StorageBlock) (template string) {
	if block.Path != "" || block.HTTP != nil && block.S3 != nil {
		r.refuse(path, "agent.config.storage_where")
		return "/"
	}
	var server remote.Server
	if s3 := block.S3; s3 != nil {
		path += ".s3"
		base := r.serverURL(path+".url", s3.URL)
		if base.Path != "" && base.Path != "/" {
			r.refuse(path+".url", "agent.config.storage_url", "value", s3.URL)
		}
		if !bucketName(s3.Bucket) {
			r.refuse(path+".bucket", "agent.config.storage_bucket", "value", s3.Bucket)
		}
		template = "/" + strings.Trim(get(s3.Prefix, ""), "/")
		server = remote.Server{URL: s3.URL, S3: &remote.S3{Bucket: s3.Bucket}}
		r.settle(path, func(v visitor) { walkStorageS3(v, s3, &server) })
		r.file(path+".credentials_file", server.S3.CredentialsFile)
	} else {
		path += ".http"
		base := r.serverURL(path+".url", block.HTTP.URL)
		template = "/" + strings.Trim(base.Path, "/")
		base.Path, base.RawPath = "", ""
		server = remote.Server{URL: base.String()}
		r.settle(path, func(v visitor) { walkStorageHTTP(v, block.HTTP, &server) })
		r.file(path+".authorization_file", server.AuthorizationFile)
		if server.AuthorizationFile != "" && base.Scheme != "https" {
			r.refuse(path+".authorization_file", "agent.config.storage_plain")
		}
	}
	r.file(path+".ca_file", server.CAFile)
	if strings.Contains(server.List, "/") {
		r.refuse(path+".list", "agent.config.storage_prefix", "value", server.List)
	}
	if id, part := workspace.RemoteProblem(template); id != "" {
		r.refuse(path, id, "value", part)
	}
	if r.remotes == nil {
		r.remotes = make(map[string]remote.Server)
	}
	r.remotes[block.Name] = server
	return template
}

// serverURL reads the address of a server: what is in it is what is asked for.
func (r *resolver) serverURL(path, text string) url.URL {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"https", "http"}, u.Scheme) || u.Hostname() == "" || strings.ContainsAny(u.Host, "{}") ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		r.refuse(path, "agent.config.storage_url", "value", text)
		return url.URL{}
	}
	return *u
}

// bucketName reports whether a bucket can have this name, and stands for itself
// in an address.
func bucketName(name string) bool {
	const least, most = 3, 63
	return len(name) >= least && len(name) <= most && !strings.Contains(name, "..") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

// file checks the name of a file that is read when it is needed.
func (r *resolver) file(path, name string) {
	if name != "" && !filepath.IsAbs(name) {
		r.refuse(path, "agent.config.storage_file", "value", name)
	}
}
