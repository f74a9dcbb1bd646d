package structs

import "strings"

// Bounds of names of images, in bytes.
const (
	ImageNameMax = 512
	imageTagMax  = 128
)

// ImageName is the name of an image as the engine shows it: without the public
// registry and its library, which need not be written.
type ImageName struct {
	Repository string // "pytorch/pytorch", "registry.lab:5000/team/train"
	Tag        string // "" where none is written
	Digest     string // "sha256:…", "" where none is written
}

// ParseImageName reads a name as people and job files write it; false for what is none,
// and for the id of an image's content. Pure.
func ParseImageName(text string) (ImageName, bool) {
	if text == "" || len(text) > ImageNameMax || strings.HasPrefix(text, "sha256:") {
		return ImageName{}, false
	}
	var n ImageName
	rest, digest, digested := strings.Cut(text, "@")
	if digested {
		hex, ok := strings.CutPrefix(digest, "sha256:")
		if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
			return ImageName{}, false
		}
		n.Digest = digest
	}
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, '/') {
		rest, n.Tag = rest[:at], rest[at+1:]
		if !plainTag(n.Tag) {
			return ImageName{}, false
		}
	}
	domain, path, remote := strings.Cut(rest, "/")
	if !remote || !isRegistry(domain) {
		domain, path = "", rest
	}
	if domain == "docker.io" || domain == "index.docker.io" {
		domain = ""
	}
	if domain == "" {
		if first, _, nested := strings.Cut(path, "/"); remote && nested && isRegistry(first) {
			return ImageName{}, false // without its registry it would be another one's
		}
		if short, found := strings.CutPrefix(path, "library/"); found && !strings.Contains(short, "/") {
			path = short
		}
	}
	if !plainPath(path) || domain != "" && strings.Trim(domain, letters+capitals+digits+".-:") != "" {
		return ImageName{}, false
	}
	if n.Repository = path; domain != "" {
		n.Repository = domain + "/" + path
	}
	return n, true
}

// String is the name with what was written of tag and digest.
func (n ImageName) String() string {
	text := n.Repository
	if n.Tag != "" {
		text += ":" + n.Tag
	}
	if n.Digest != "" {
		text += "@" + n.Digest
	}
	return text
}

// Completed is the name with the tag that is meant where neither tag nor digest is
// written.
func (n ImageName) Completed() ImageName {
	if n.Tag == "" && n.Digest == "" {
		n.Tag = "latest"
	}
	return n
}

// Project is the project whose job's container the image was made of, by its name; ""
// for any other image.
func (n ImageName) Project() string {
	below, ok := strings.CutPrefix(n.Repository, CommitPrefix+"/")
	if !ok {
		return ""
	}
	project, _, _ := strings.Cut(below, "/")
	return project
}

const (
	letters  = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
)

// isRegistry reports whether the first part of a name is a registry, as engines judge
// it: it looks like a host.
func isRegistry(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost" || strings.ContainsAny(part, capitals)
}

func plainTag(tag string) bool {
	return tag != "" && len(tag) <= imageTagMax && tag[0] != '.' && tag[0] != '-' && strings.Trim(tag, letters+capitals+digits+"_.-") == ""
}

// plainPath reports whether a path is small letters, digits and separators inside of its
// parts.
func plainPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || strings.Trim(part, letters+digits+"._-") != "" || strings.ContainsAny(part[:1]+part[len(part)-1:], "._-") {
			return false
		}
	}
	return true
}
