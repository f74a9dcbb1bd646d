package directory

import (
	"fmt"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Fold spells a group so that two spellings of one name are the same: directories tell
// neither capitals nor blanks around the parts of a name apart. What is no name in a
// directory is compared as it is, but for capitals.
func Fold(group string) string {
	dn, err := ldap.ParseDN(group)
	if err != nil || len(dn.RDNs) == 0 {
		return strings.ToLower(group)
	}
	return strings.ToLower(dn.String())
}

// walked is the attribute by which groups are walked.
func (g Groups) walked() string {
	if strings.EqualFold(g.Attribute, TokenGroups) { // nobody walks by it, nor may it be asked for in a search
		return memberOf
	}
	return g.Attribute
}

// groupsOf lists the groups of a person by the names of their entries, those of groups
// too where they count.
func (d *Directory) groupsOf(c *conn, person *ldap.Entry, name string) ([]string, error) {
	if d.config.Active {
		return d.activeGroupsOf(c, person, name)
	}
	return d.walk(c, person, name, nil)
}

// walk follows groups from a person up. first are groups that the person is in beside
// those that the directory lists. A group is looked at once, so that circles end.
func (d *Directory) walk(c *conn, person *ldap.Entry, name string, first []*ldap.Entry) ([]string, error) {
	g := d.config.Groups
	seen := make(map[string]bool)
	var all []string
	level := []*ldap.Entry{person}
	if strings.Contains(g.Filter, inChain) { // which knows nothing of those that come beside
		level = append(level, first...)
	}
	for depth := 0; len(level) > 0 && (depth == 0 || g.Nested && depth < nestingMax); depth++ {
		var next []*ldap.Entry
		for _, entry := range level {
			above, err := d.above(c, entry, name)
			if err != nil {
				return nil, err
			}
			if depth == 0 {
				above = append(above, first...)
			}
			for _, group := range above {
				if key := Fold(group.DN); !seen[key] {
					seen[key] = true
					all = append(all, group.DN)
					next = append(next, group)
				}
			}
			if len(all) > groupsMax {
				return nil, fmt.Errorf("a person is in more than %d groups", groupsMax)
			}
		}
		level = next
	}
	return all, nil
}

// above lists the groups that an entry is in itself.
func (d *Directory) above(c *conn, entry *ldap.Entry, name string) ([]*ldap.Entry, error) {
	g := d.config.Groups
	if g.Base != "" {
		filter := strings.NewReplacer(PlaceDN, ldap.EscapeFilter(entry.DN), PlaceName, ldap.EscapeFilter(name)).Replace(g.Filter)
		groups, err := c.search(g.Base, ldap.ScopeWholeSubtree, filter, groupsMax+1, []string{g.walked()})
		if err != nil {
			return nil, fmt.Errorf("search groups below %s: %w", g.Base, err)
		}
		return groups, nil
	}
	names := entry.GetAttributeValues(g.walked())
	if entry.Attributes == nil && entry.DN != "" { // a group that was only named so far
		read, err := c.search(entry.DN, ldap.ScopeBaseObject, "(objectClass=*)", 1, []string{g.walked()})
		if err != nil && !ldap.IsErrorAnyOf(err, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInsufficientAccessRights, ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultReferral) {
			return nil, fmt.Errorf("read a group: %w", err)
		}
		if len(read) == 1 {
			names = read[0].GetAttributeValues(g.walked())
		}
	}
	groups := make([]*ldap.Entry, len(names))
	for i, dn := range names {
		groups[i] = &ldap.Entry{DN: dn}
	}
	return groups, nil
}
