package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// HTTPBlock says where data lies on a web server. Placeholders stand in the
// path of the URL, not in the host.
type StorageHTTPBlock struct {
	URL               string   `hcl:"url"`
	List              *string  `hcl:"list,optional"`               // name of the list of files with their digests; SHA256SUMS unless told
	CAFile            *string  `hcl:"ca_file,optional"`            // instead of the authorities that the machine trusts
	RedirectHosts     []string `hcl:"redirect_hosts,optional"`     // which redirects may lead to, beside its own
	AuthorizationFile *string  `hcl:"authorization_file,optional"` // value of the header, for its own host
	SizeMax           *string  `hcl:"size_max,optional"`           // of one dataset
}

// S3Block says where data lies in an object store.
type StorageS3Block struct {
	URL             string  `hcl:"url"` // scheme and host
	Bucket          string  `hcl:"bucket"`
	Prefix          *string `hcl:"prefix,optional"` // template of what keys begin with
	Region          *string `hcl:"region,optional"`
	PathStyle       *bool   `hcl:"path_style,optional"` // the bucket in the path; true unless told
	CredentialsFile *string `hcl:"credentials_file,optional"`
	Profile         *string `hcl:"profile,optional"` // of the file
	List            *string `hcl:"list,optional"`
	CAFile          *string `hcl:"ca_file,optional"`
	SizeMax         *string `hcl:"size_max,optional"`
}

// remote checks the server of a storage, and gives the template of what lies
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
		server = remote.Server{URL: s3.URL, List: get(s3.List, ""), SizeMax: r.sizeMax(path, s3.SizeMax), S3: &remote.S3{
			Bucket: s3.Bucket, Region: get(s3.Region, ""), PathStyle: get(s3.PathStyle, true), Profile: get(s3.Profile, ""),
		}}
		server.CAFile, server.S3.CredentialsFile = r.file(path+".ca_file", s3.CAFile), r.file(path+".credentials_file", s3.CredentialsFile)
	} else {
		path += ".http"
		base := r.serverURL(path+".url", block.HTTP.URL)
		template = "/" + strings.Trim(base.Path, "/")
		base.Path, base.RawPath = "", ""
		server = remote.Server{URL: base.String(), List: get(block.HTTP.List, ""), SizeMax: r.sizeMax(path, block.HTTP.SizeMax), RedirectHosts: block.HTTP.RedirectHosts}
		server.CAFile, server.AuthorizationFile = r.file(path+".ca_file", block.HTTP.CAFile), r.file(path+".authorization_file", block.HTTP.AuthorizationFile)
		if server.AuthorizationFile != "" && base.Scheme != "https" {
			r.refuse(path+".authorization_file", "agent.config.storage_plain")
		}
	}
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
func (r *resolver) file(path string, name *string) string {
	text := get(name, "")
	if text != "" && !filepath.IsAbs(text) {
		r.refuse(path, "agent.config.storage_file", "value", text)
	}
	return text
}

func (r *resolver) sizeMax(path string, size *string) int64 {
	if size == nil {
		return 0
	}
	bytes, err := structs.ParseSize(*size)
	if err == nil && bytes <= 0 {
		err = errors.New("it must be positive")
	}
	if err != nil {
		r.refuse(path+".size_max", "agent.config.size", "value", *size, "reason", err)
	}
	return bytes
}
