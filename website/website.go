// Package website holds the guides that the binary serves and prints.
//
// Flow: scripts/docs renders guide, reference and design into site with package
// website/render; this package embeds the result. Handler serves it at /docs
// beside the web pages, and the command line prints its Markdown.
//
// Limits: it holds files and serves them. Nothing here is secret, so that nobody
// signs in for it. Without a build of the site there is none, and both say how to
// make it.
package website

import (
	"embed"
	"io/fs"
)

//go:embed all:site
var site embed.FS

// Files are the rendered guides: LANGUAGE/NAME.html.gz and LANGUAGE/NAME.md.gz,
// LANGUAGE/search.json.gz, and what the pages load. In a build without them there
// is nothing but a README.
func Files() fs.FS {
	files, err := fs.Sub(site, "site")
	if err != nil {
		panic(err) // the name is valid: it stands above
	}
	return files
}
