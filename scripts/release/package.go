package main

import (
	_ "embed"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// What a package does at its installation and removal. It never starts or ends an
// agent that runs: tasks outlive it, and servers are replaced one by one.
var (
	//go:embed postinst.sh
	afterInstall string
	//go:embed prerm.sh
	beforeRemove string
)

// writePackage writes a .deb or .rpm of the files of an archive. scratch is a
// directory for what exists as text only.
func writePackage(to io.Writer, kind, version, arch string, at time.Time, archive []entry, scratch string) error {
	keep := func(name, text string) (string, error) {
		path := filepath.Join(scratch, name)
		return path, os.WriteFile(path, []byte(text), 0o644)
	}
	var contents files.Contents
	add := func(source, target string, mode os.FileMode) {
		contents = append(contents, &files.Content{
			Source: source, Destination: target,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: at},
		})
	}
	for _, file := range archive {
		text, err := file.contents()
		if err != nil {
			return err
		}
		source := file.from
		if source == "" {
			if source, err = keep(file.name, string(text)); err != nil {
				return err
			}
		}
		switch file.name {
		case "nomadlike":
			add(source, "/usr/bin/nomadlike", 0o755)
		case unitName:
			unit, err := keep("unit", strings.ReplaceAll(string(text), "/usr/local/bin/", "/usr/bin/"))
			if err != nil {
				return err
			}
			add(unit, "/usr/lib/systemd/system/"+unitName, 0o644)
		case "install.sh", "SHA256SUMS":
		default:
			add(source, "/usr/share/doc/nomadlike/"+file.name, 0o644)
		}
	}
	contents = append(contents, &files.Content{
		Destination: "/etc/nomadlike.d", Type: files.TypeDir,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o750, MTime: at},
	})
	info := &nfpm.Info{
		Name: "nomadlike", Arch: arch, Platform: "linux", Version: version, Release: "1", Section: "net", Priority: "optional",
		Maintainer: "nomadlike developers", License: "MPL-2.0", MTime: at, DisableGlobbing: true,
		Description: "AI training cluster in one binary\nTurns Linux machines into a cluster that queues, places, runs and restarts\ndistributed training jobs. This package holds agent, command line and pages.",
	}
	info.Contents = contents
	info.RPM.BuildHost, info.RPM.Summary = "localhost", "AI training cluster in one binary"
	var err error
	if info.Scripts.PostInstall, err = keep("postinst", afterInstall); err != nil {
		return err
	}
	if info.Scripts.PreRemove, err = keep("prerm", beforeRemove); err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	return packager.Package(info, to)
}
