package structs

import "strings"

// VersionConstraint is what placement.driver_version asks of the driver of
// devices: terms such as ">= 535" or "< 560", all of which must hold.
type VersionConstraint []VersionTerm

// VersionTerm compares with one version.
type VersionTerm struct {
	Operator string // >= | <= | != | > | < | =
	Version  string // numbers with points between them
}

// versionOperators lists the longer operators before their beginnings.
func versionOperators() [6]string { return [...]string{">=", "<=", "!=", ">", "<", "="} }

// ParseVersionConstraint reads terms that commas separate; one without an
// operator means equality. False: the text is no constraint. "" asks nothing.
func ParseVersionConstraint(text string) (VersionConstraint, bool) {
	if text == "" {
		return nil, true
	}
	parts := strings.Split(text, ",")
	constraint := make(VersionConstraint, len(parts))
	for i, part := range parts {
		term := VersionTerm{Operator: "=", Version: strings.TrimSpace(part)}
		for _, operator := range versionOperators() {
			if rest, found := strings.CutPrefix(term.Version, operator); found {
				term = VersionTerm{Operator: operator, Version: strings.TrimSpace(rest)}
				break
			}
		}
		if !plainVersion(term.Version) {
			return nil, false
		}
		constraint[i] = term
	}
	return constraint, true
}

// plainVersion reports whether text is numbers with single points between them.
func plainVersion(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" &&
		text[0] != '.' && text[len(text)-1] != '.' && !strings.Contains(text, "..")
}

// Allows reports whether a version meets every term. A version is compared in as
// many numbers as the term has, so "= 535" and "<= 535" hold for "535.104.05"
// and "> 535" does not; numbers that the version lacks count as 0. A part that
// does not begin with a digit, such as rc3, comes before every number. An
// unknown version meets no term.
func (c VersionConstraint) Allows(version string) bool {
	for _, term := range c {
		if version == "" || !term.allows(compareVersion(version, term.Version)) {
			return false
		}
	}
	return true
}

func (t VersionTerm) allows(order int) bool {
	switch t.Operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case "!=":
		return order != 0
	case ">":
		return order > 0
	case "<":
		return order < 0
	}
	return order == 0
}

// compareVersion orders version against the numbers of want, as far as want
// goes: negative when version comes first.
func compareVersion(version, want string) int {
	for want != "" {
		var a, b string
		a, version, _ = strings.Cut(version, ".")
		b, want, _ = strings.Cut(want, ".")
		if a == "" {
			a = "0"
		}
		if order := compareDigits(a, b); order != 0 {
			return order
		}
	}
	return 0
}

// compareDigits compares the number at the start of a with the number b, of
// any length.
func compareDigits(a, b string) int {
	end := 0
	for end < len(a) && a[end] >= '0' && a[end] <= '9' {
		end++
	}
	if end == 0 {
		return -1
	}
	a, b = strings.TrimLeft(a[:end], "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
