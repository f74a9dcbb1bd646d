package config

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Redacted is the configuration as operators may see it: all settings, by their names
// in files, with what they come to. Secrets are stars; of the blocks that may stand
// more than once there is what they say.
func (c Config) Redacted() map[string]any {
	shown := make(map[string]any)
	walkSettings(&redactor{into: shown}, &c.said, &c)
	// Names from before all settings were shown.
	shown["hosts"] = c.Hosts
	if client, ok := shown["client"].(map[string]any); ok {
		client["devices"], client["storages"] = len(c.Client.Devices), len(c.Client.Storages)
	}
	return shown
}

// redactor puts what people may see into a table.
type redactor struct {
	into   map[string]any
	asSaid bool
}

func (d *redactor) rule(func(*resolver)) {}

func (d *redactor) label(to *string) { d.into["label"] = *to }

func (d *redactor) setting(name string, v *value) {
	shown := v.shown(d.asSaid)
	if v.secret {
		hidden := ""
		if shown != nil && !reflect.ValueOf(shown).IsZero() {
			hidden = "***"
		}
		shown = hidden
	}
	if !d.asSaid || v.given() {
		d.into[name] = shown
	}
}

func (d *redactor) block(b block) {
	if !b.many {
		inner := make(map[string]any)
		b.look(&redactor{inner, d.asSaid})
		if len(inner) > 0 {
			d.into[b.name] = inner
		}
		return
	}
	all := []map[string]any{}
	for i := range b.count {
		inner := make(map[string]any)
		b.walk(&redactor{inner, true}, i)
		all = append(all, inner)
	}
	d.into[b.name] = all
}

// Changed names the settings that differ between two configurations and that an agent
// takes over only when it is started again, in the order of their names.
func Changed(old, next Config) []string {
	before, after := make(comparison), make(comparison)
	walkSettings(&comparer{into: before}, &old.said, &old)
	walkSettings(&comparer{into: after}, &next.said, &next)
	differ := make(map[string]bool)
	for _, paths := range []iter.Seq[string]{maps.Keys(before), maps.Keys(after)} {
		for path := range paths {
			if !reflect.DeepEqual(before[path], after[path]) {
				differ[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// comparison is what settings come to, by their paths.
type comparison map[string]any

type comparer struct {
	at     string
	into   comparison
	asSaid bool
}

func (c *comparer) rule(func(*resolver)) {}

func (c *comparer) label(to *string) { c.into[c.at] = *to }

func (c *comparer) setting(name string, v *value) {
	if !v.reloadable && (v.given() || !c.asSaid) {
		c.into[below(c.at, name)] = v.shown(c.asSaid)
	}
}

func (c *comparer) block(b block) {
	path := below(c.at, b.name)
	if !b.many {
		b.look(&comparer{path, c.into, c.asSaid})
		return
	}
	for i := range b.count {
		b.walk(&comparer{structs.IndexedPath(path, i), c.into, true}, i)
	}
}
