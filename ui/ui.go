// Package ui holds the web pages that the binary serves.
//
// Flow: scripts/ui.sh builds the pages from src with Vite into dist/app, this
// package embeds them, and package agent serves them beside the API.
//
// Limits: it holds files and nothing else. Without a build, which needs Node,
// there are none, and the agent says how to make them.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are the built pages: index.html and what belongs to it. In a build
// without them it is empty, or holds nothing at all.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist/app")
	if err != nil {
		panic(err) // the name is valid: it stands above
	}
	return files
}
