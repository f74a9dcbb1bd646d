package directory

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/nomadlike/structs"
)

// TokenGroups is the attribute of Active Directory that has the identifiers of all
// security groups of an account: the primary one, and groups of groups. It is computed
// for one entry that is read by itself.
const TokenGroups = "tokenGroups"

// inChain is the rule by which Active Directory searches groups of groups at once
// (LDAP_MATCHING_RULE_IN_CHAIN).
const inChain = ":1.2.840.113556.1.4.1941:="

// Attributes of Active Directory.
const (
	memberOf     = "memberOf"
	objectSID    = "objectSid"
	primaryGroup = "primaryGroupID"
	control      = "userAccountControl"
	computed     = "msDS-User-Account-Control-Computed"
	expires      = "accountExpires"
)

// Flags of control, and of computed (MS-ADTS, sections 2.2.16 and 3.1.1.4.5.17).
const (
	flagDisabled        = 0x2
	flagLocked          = 0x10
	flagPasswordExpired = 0x800000
)

// tokens reports whether groups are read from TokenGroups.
func (g Groups) tokens() bool { return g.Base == "" && strings.EqualFold(g.Attribute, TokenGroups) }

// withoutDomain is the account's part of DOMAIN\NAME, as people type it on Windows.
func withoutDomain(name string) string {
	if _, account, found := strings.Cut(name, `\`); found && account != "" {
		return account
	}
	return name
}

// bindError is in what Active Directory says of a bind that it refuses.
var bindError = regexp.MustCompile(`AcceptSecurityContext error, data ([0-9a-fA-F]{2,8})\b`)

// bar is why a directory keeps an account out whose password is right.
type bar string

const (
	notBarred       bar = ""
	restricted      bar = "restricted" // at this hour, or from this machine
	passwordExpired bar = "password expired"
	passwordReset   bar = "password reset" // before anything else
	disabled        bar = "disabled"
	expired         bar = "expired"
	locked          bar = "locked"
)

// bindRefusal reads why Active Directory refuses a bind. A wrong name or password is
// notBarred, and so is what is not known. But for 775 it says these only to whoever has given the
// right password.
func bindRefusal(answer *ldap.Error) bar {
	if answer.ResultCode != ldap.LDAPResultInvalidCredentials || answer.Err == nil {
		return notBarred
	}
	said := bindError.FindStringSubmatch(answer.Err.Error())
	if said == nil {
		return notBarred
	}
	switch strings.ToLower(said[1]) { // numbers of Windows' errors, hexadecimal
	case "530", "531":
		return restricted
	case "532":
		return passwordExpired
	case "533":
		return disabled
	case "701":
		return expired
	case "773":
		return passwordReset
	case "775":
		return locked
	}
	return notBarred // 525: no such account; 52e: another password
}

// barredBy is why an account that has been let in may not sign in all the same.
// Domain controllers refuse these at the bind; one that is a copy, or a proxy before
// several, may not.
func barredBy(entry *ldap.Entry, now time.Time) bar {
	flags := numberOf(entry, control)
	more := numberOf(entry, computed)
	until := numberOf(entry, expires)
	switch {
	case flags&flagDisabled != 0:
		return disabled
	case more&flagLocked != 0:
		return locked
	case more&flagPasswordExpired != 0:
		return passwordExpired
	case until > 0 && !fileTime(until).IsZero() && !now.Before(fileTime(until)):
		return expired
	}
	return notBarred
}

// barred refuses an account that the directory keeps out.
func (d *Directory) barred(by bar) error {
	switch by {
	case restricted:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_restricted", "provider", d.config.Name)
	case passwordExpired:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_password_expired", "provider", d.config.Name)
	case passwordReset:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_password_reset", "provider", d.config.Name)
	case disabled:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_disabled", "provider", d.config.Name)
	case expired:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_expired", "provider", d.config.Name)
	case locked:
		return structs.NewError(structs.CodeUnauthorized, "auth.directory_locked", "provider", d.config.Name)
	}
	return nil
}

func numberOf(entry *ldap.Entry, attribute string) int64 {
	number, err := strconv.ParseInt(entry.GetAttributeValue(attribute), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// fileTime is a time in tenths of microseconds since 1601; zero for one that never comes.
func fileTime(ticks int64) time.Time {
	const (
		second   = 10_000_000
		from1601 = 11_644_473_600 // seconds until 1970
		year9999 = 265_046_774_399
	)
	if ticks/second > year9999 {
		return time.Time{}
	}
	return time.Unix(ticks/second-from1601, ticks%second*100)
}

// activeGroupsOf lists the groups of a person by the names of their entries, and by
// their identifiers as far as those are known. It refuses accounts that are kept out.
func (d *Directory) activeGroupsOf(c *conn, person *ldap.Entry, name string) ([]string, error) {
	asked := []string{objectSID, primaryGroup, control, computed, expires}
	if d.config.Groups.tokens() {
		asked = append(asked, TokenGroups)
	}
	read, err := c.search(person.DN, ldap.ScopeBaseObject, "(objectClass=*)", 1, asked)
	if err != nil {
		return nil, fmt.Errorf("read the account: %w", err)
	}
	if len(read) != 1 {
		return nil, errors.New("the account cannot be read")
	}
	account := read[0]
	if err := d.barred(barredBy(account, d.now())); err != nil {
		return nil, err
	}
	var ids []sid
	for _, raw := range account.GetRawAttributeValues(TokenGroups) {
		if one := sid(raw); one.valid() {
			ids = append(ids, one)
		}
	}
	if len(ids) > groupsMax {
		return nil, fmt.Errorf("a person is in more than %d groups", groupsMax)
	}
	if len(ids) > 0 {
		groups, err := d.entriesOf(c, person.DN, ids)
		return append(namesOf(groups), textsOf(ids)...), err
	}
	// It is not asked for, or whoever searches may not read it: an account is in its
	// primary group at least.
	if own, last := sid(account.GetRawAttributeValue(objectSID)), numberOf(account, primaryGroup); own.valid() && last > 0 && last == int64(uint32(last)) {
		ids = []sid{own.sibling(uint32(last))}
	}
	first, err := d.entriesOf(c, person.DN, ids)
	if err != nil {
		return nil, err
	}
	groups, err := d.walk(c, person, name, first)
	return append(groups, textsOf(ids)...), err
}

func namesOf(entries []*ldap.Entry) []string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.DN
	}
	return names
}

func textsOf(ids []sid) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}

const sidsAtOnce = 50 // that one search is about

// entriesOf finds the groups that have these identifiers, in the domain of an entry.
// Those of other domains are not found.
func (d *Directory) entriesOf(c *conn, dn string, ids []sid) (all []*ldap.Entry, err error) {
	base := domainOf(dn)
	if base == "" {
		base = d.config.Users.Base
	}
	for len(ids) > 0 {
		some := ids[:min(len(ids), sidsAtOnce)]
		ids = ids[len(some):]
		var filter strings.Builder
		filter.WriteString("(|")
		for _, id := range some {
			filter.WriteString(id.filter())
		}
		filter.WriteString(")")
		found, err := c.search(base, ldap.ScopeWholeSubtree, filter.String(), len(some), []string{objectSID})
		if err != nil {
			return nil, fmt.Errorf("search groups by their identifiers below %s: %w", base, err)
		}
		for _, entry := range found { // without their attributes: those that groups are walked by were not asked for
			all = append(all, &ldap.Entry{DN: entry.DN})
		}
	}
	return all, nil
}

// domainOf is the name of the domain that an entry is in: the end of its own, "" for none.
func domainOf(dn string) string {
	parsed, err := ldap.ParseDN(dn)
	if err != nil {
		return ""
	}
	from := len(parsed.RDNs)
	for from > 0 && len(parsed.RDNs[from-1].Attributes) == 1 && strings.EqualFold(parsed.RDNs[from-1].Attributes[0].Type, "dc") {
		from--
	}
	return (&ldap.DN{RDNs: parsed.RDNs[from:]}).String()
}
