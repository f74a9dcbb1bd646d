// Command docs renders the guides into website/site, from where the binary embeds
// them: go run ./scripts/docs [-version VERSION]. Files that are there are replaced.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"nomadlike/website/render"
)

func main() {
	version := flag.String("version", "", "what the pages say they belong to")
	source := flag.String("source", "website", "directory with guide, reference, design and examples")
	flag.Parse()
	if err := run(*source, *version); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(source, version string) error {
	files, err := render.Site(os.DirFS(source), version)
	if err != nil {
		return err
	}
	site := filepath.Join(source, "site")
	entries, err := os.ReadDir(site)
	if err != nil {
		return fmt.Errorf("list %s: %w", site, err)
	}
	for _, entry := range entries { // pages that are no more
		if entry.Name() != "README" {
			if err := os.RemoveAll(filepath.Join(site, entry.Name())); err != nil {
				return fmt.Errorf("remove old page: %w", err)
			}
		}
	}
	packed := 0
	for name, data := range files {
		file := filepath.Join(site, filepath.FromSlash(name)+".gz")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make directory of pages: %w", err)
		}
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
		_, _ = w.Write(data)                                  // a buffer takes everything
		_ = w.Close()
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
		packed += b.Len()
	}
	fmt.Printf("docs: %d files, %d KiB packed, in %s\n", len(files), packed/1024, site)
	return nil
}
