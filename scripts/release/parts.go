package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// part is a library that a program holds.
type part struct {
	url      string // package URL: pkg:golang/… or pkg:npm/…
	name     string
	version  string
	licences []entry // their texts
}

// goParts are the modules that the linker wrote into a program. dirOf knows where
// the source of each lies.
func goParts(info *debug.BuildInfo, dirOf map[string]string) ([]part, error) {
	var parts []part
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		texts, err := licencesIn(dirOf[module.Path])
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", module.Path, err)
		}
		parts = append(parts, part{url: "pkg:golang/" + module.Path + "@" + module.Version, name: module.Path, version: module.Version, licences: texts})
	}
	return parts, nil
}

// pageParts are the packages that the web pages are made of, as the lock file of
// npm names them.
func pageParts(lock []byte, modules string) ([]part, error) {
	var locked struct {
		Packages map[string]struct {
			Version  string `json:"version"`
			Dev      bool   `json:"dev"`
			DevOpt   bool   `json:"devOptional"`
			Optional bool   `json:"optional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &locked); err != nil {
		return nil, err
	}
	var parts []part
	for path, each := range locked.Packages {
		below, ok := strings.CutPrefix(path, "node_modules/")
		if !ok || each.Dev || each.DevOpt || each.Optional {
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):] // one may lie in another
		texts, err := licencesIn(filepath.Join(modules, below))
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", name, err)
		}
		url := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + each.Version
		parts = append(parts, part{url: url, name: name, version: each.Version, licences: texts})
	}
	return parts, nil
}

var errNoLicence = errors.New("no licence is found")

// licencesIn reads the licence and notice files of a source directory. A package
// of npm without one names its licence in package.json, which stands for it.
func licencesIn(dir string) ([]entry, error) {
	if dir == "" {
		return nil, errors.New("its source is not there")
	}
	listed, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []entry
	for _, file := range listed {
		name := strings.ToUpper(file.Name())
		if file.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, entry{name: file.Name(), text: text})
	}
	if len(texts) > 0 {
		return texts, nil
	}
	var about struct{ License, Author any }
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil || json.Unmarshal(text, &about) != nil || about.License == nil {
		return nil, errNoLicence
	}
	return []entry{{name: "package.json", text: fmt.Appendf(nil, "Licence: %v\nAuthor: %v\n", about.License, about.Author)}}, nil
}

// byURL brings parts into an order that hangs on nothing else, each once.
func byURL(parts []part) []part {
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.url, b.url) })
	return slices.CompactFunc(parts, func(a, b part) bool { return a.url == b.url })
}

// licenceText is one text with the licences of all parts.
func licenceText(parts []part) []byte {
	var b bytes.Buffer
	b.WriteString("nomadlike holds the following libraries.\n")
	for _, p := range parts {
		for _, text := range p.licences {
			fmt.Fprintf(&b, "\n%s\n%s %s, %s\n%[1]s\n\n%[5]s\n", strings.Repeat("=", 78), p.name, p.version, text.name, bytes.TrimSpace(text.text))
		}
	}
	return b.Bytes()
}

// billOfMaterials lists parts in the form of CycloneDX 1.6
// (https://cyclonedx.org/docs/1.6/json/).
func billOfMaterials(version, platform string, at time.Time, parts []part) ([]byte, error) {
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		URL     string `json:"purl,omitempty"`
	}
	type metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	bill := struct {
		Format      string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []component{},
		Metadata: metadata{at.UTC().Format(time.RFC3339), component{Type: "application", Name: "nomadlike-" + platform, Version: version}},
	}
	for _, p := range parts {
		bill.Components = append(bill.Components, component{Type: "library", Name: p.name, Version: p.version, URL: p.url})
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	return append(text, '\n'), err
}
