package directory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/internal/logkey"
	"nomadlike/internal/secretfile"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// Placeholders of templates.
const (
	PlaceName = "{name}" // that somebody signs in with
	PlaceDN   = "{dn}"   // of the entry, or of a group on the way up
)

// Config says where a directory is and how people and groups stand in it. All of it is
// said: defaults are the configuration's.
type Config struct {
	Name    string   // of the provider
	Servers []string // ldaps://HOST[:PORT] or ldap://HOST[:PORT], tried in turn

	StartTLS bool   // of ldap:// servers
	Insecure bool   // ldap:// without TLS is allowed: passwords pass readably
	CAFile   string // whom certificates go by; "": whom the machine trusts
	Timeout  time.Duration

	BindDN           string // of the account that searches; "": people search as themselves, by UserDN
	BindPasswordFile string
	UserDN           string // template of people's entries, with PlaceName

	Users  Users
	Groups Groups

	// Active has the directory be an Active Directory: its accounts have states, primary
	// groups and security identifiers, and its refusals say why.
	Active bool
}

// Users says how people stand in a directory.
type Users struct {
	Base, Filter                      string // the filter has PlaceName
	Subject, Name, DisplayName, Email string // attributes
}

// Groups says how groups stand in a directory.
type Groups struct {
	Base, Filter string // searched where Base is not ""; the filter has PlaceDN or PlaceName
	Attribute    string // of people's entries and of groups', that names the groups they are in; or TokenGroups
	Nested       bool   // groups of groups count, too
}

// Bounds of what a directory is asked for and answers.
const (
	answerMax  = 16 << 20 // bytes of all answers to one sign-in
	groupsMax  = 2_000    // of one person
	nestingMax = 16       // how deep groups are followed
)

// Directory asks one directory.
type Directory struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
}

// New returns a directory; nothing is asked yet.
func New(config Config, log *slog.Logger) *Directory {
	return &Directory{config: config, log: log, now: time.Now}
}

// Ask returns who signs in with a name, where the password is theirs; see
// httpapi.Directory. Errors of the directory itself are told to the log; whoever signs in
// hears that it cannot be asked.
func (d *Directory) Ask(ctx context.Context, name, password string, found func(subject string) error) (*auth.External, error) {
	if name == "" || password == "" { // a bind without a password is one as nobody, and succeeds
		return nil, d.wrong()
	}
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	c, err := d.dial(ctx)
	if err != nil {
		return nil, d.away(err)
	}
	defer c.close()
	if d.config.Active {
		name = withoutDomain(name)
	}
	who, err := d.ask(c, name, password, found)
	var told *structs.Error
	switch {
	case err == nil:
		return who, nil
	case errors.As(err, &told):
		return nil, err
	}
	return nil, d.away(err)
}

func (d *Directory) ask(c *conn, name, password string, found func(string) error) (*auth.External, error) {
	var person *ldap.Entry
	var err error
	if d.config.UserDN != "" { // as themselves
		dn := strings.ReplaceAll(d.config.UserDN, PlaceName, ldap.EscapeDN(name))
		if err := c.bind(dn, password); err != nil {
			return nil, d.judge(err)
		}
		if person, err = d.entry(c, dn); err != nil {
			return nil, err
		}
		who, err := d.person(person)
		if err != nil {
			return nil, err
		}
		if err := found(who.Subject); err != nil {
			return nil, err
		}
		who.Groups, err = d.groupsOf(c, person, name)
		return who, err
	}
	service, err := secretfile.Read(d.config.BindPasswordFile)
	if err != nil {
		return nil, err
	}
	if err := c.bind(d.config.BindDN, service); err != nil {
		return nil, fmt.Errorf("bind as %s: %w", d.config.BindDN, err)
	}
	person, err = d.find(c, name)
	if err != nil {
		return nil, err
	}
	if person == nil {
		// As long as for somebody who is there: how long an answer takes is one, too.
		_ = c.bind("cn="+rand.Text()+","+d.config.Users.Base, password)
		return nil, d.wrong()
	}
	who, err := d.person(person)
	if err != nil {
		return nil, err
	}
	if err := found(who.Subject); err != nil {
		return nil, err
	}
	if err := c.bind(person.DN, password); err != nil {
		return nil, d.judge(err)
	}
	if err := c.bind(d.config.BindDN, service); err != nil { // people need not see groups
		return nil, fmt.Errorf("bind as %s again: %w", d.config.BindDN, err)
	}
	who.Groups, err = d.groupsOf(c, person, name)
	return who, err
}

// wrong is the one refusal of names and passwords.
func (d *Directory) wrong() error {
	return structs.NewError(structs.CodeUnauthorized, "auth.directory_wrong", "provider", d.config.Name)
}

// judge tells wrong passwords, and accounts that the directory keeps out, from a
// directory that does not work. Why it keeps somebody out is nobody's business here, unless
// it is an Active Directory, which tells that to whoever knows the password.
func (d *Directory) judge(err error) error {
	var answer *ldap.Error
	if !errors.As(err, &answer) {
		return err
	}
	if d.config.Active {
		if err := d.barred(bindRefusal(answer)); err != nil {
			return err
		}
	}
	switch answer.ResultCode {
	case ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInsufficientAccessRights,
		ldap.LDAPResultConstraintViolation, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultReferral:
		return d.wrong()
	}
	return err
}

// away says that the directory cannot be asked; the cause is for operators.
func (d *Directory) away(err error) error {
	d.log.Warn("a directory cannot be asked", logkey.Provider, d.config.Name, logkey.Error, err)
	return structs.NewError(structs.CodeUnavailable, "auth.directory_away", "provider", d.config.Name).Because(err)
}

// attributes are what is asked of a person's entry.
func (d *Directory) attributes() []string {
	u := d.config.Users
	return []string{u.Subject, u.Name, u.DisplayName, u.Email, d.config.Groups.walked()}
}

// find returns the one entry of a name, nil where there is none, or more than one.
func (d *Directory) find(c *conn, name string) (*ldap.Entry, error) {
	filter := strings.ReplaceAll(d.config.Users.Filter, PlaceName, ldap.EscapeFilter(name))
	entries, err := c.search(d.config.Users.Base, ldap.ScopeWholeSubtree, filter, 2, d.attributes())
	if err != nil {
		return nil, fmt.Errorf("search below %s: %w", d.config.Users.Base, err)
	}
	if len(entries) > 1 {
		d.log.Warn("a name is that of more than one entry", logkey.Provider, d.config.Name, logkey.Count, len(entries))
	}
	if len(entries) != 1 {
		return nil, nil
	}
	return entries[0], nil
}

// entry reads the entry of somebody who has proved the password already.
func (d *Directory) entry(c *conn, dn string) (*ldap.Entry, error) {
	entries, err := c.search(dn, ldap.ScopeBaseObject, "(objectClass=*)", 1, d.attributes())
	if err != nil {
		return nil, fmt.Errorf("read the entry: %w", err)
	}
	if len(entries) != 1 {
		return nil, errors.New("people cannot read their own entries")
	}
	return entries[0], nil
}

// person is what an entry says of whoever it is about.
func (d *Directory) person(entry *ldap.Entry) (*auth.External, error) {
	u := d.config.Users
	subject := subjectOf(entry.GetRawAttributeValue(u.Subject))
	if subject == "" {
		return nil, fmt.Errorf("the attribute %s of %q cannot be read", u.Subject, entry.DN)
	}
	return &auth.External{
		Subject: subject, Name: entry.GetAttributeValue(u.Name), DisplayName: entry.GetAttributeValue(u.DisplayName), Email: entry.GetAttributeValue(u.Email),
	}, nil
}

// subjectOf spells what a person is known by for good. Sixteen bytes that are no text
// are an objectGUID, of which the first three parts are little-endian.
func subjectOf(raw []byte) string {
	if len(raw) != 16 || structs.PlainText(string(raw), 16) && isASCII(raw) {
		return string(raw)
	}
	return fmt.Sprintf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%x-%x", raw[3], raw[2], raw[1], raw[0], raw[5], raw[4], raw[7], raw[6], raw[8:10], raw[10:])
}

func isASCII(raw []byte) bool {
	for _, b := range raw {
		if b >= 0x80 {
			return false
		}
	}
	return true
}
