package auth

import (
	"net/netip"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// ScopeProblem reports what is wrong with the verbs and addresses that a token shall be
// good for, nil for nothing.
func ScopeProblem(verbs, addresses []string) *structs.Error {
	switch {
	case len(verbs) > structs.TokenVerbsMax:
		return structs.NewError(structs.CodeInvalid, "job.too_many", "what", "verbs", "count", len(verbs), "max", structs.TokenVerbsMax)
	case len(addresses) > structs.TokenAddressesMax:
		return structs.NewError(structs.CodeInvalid, "job.too_many", "what", "addresses", "count", len(addresses), "max", structs.TokenAddressesMax)
	}
	for _, verb := range verbs {
		if !slices.ContainsFunc(rules[:], func(r rule) bool { return r.verb == Verb(verb) }) {
			return structs.NewError(structs.CodeInvalid, "auth.scope_verb", "verb", verb, "known", strings.Join(verbNames(), ", "))
		}
	}
	for _, text := range addresses {
		if _, ok := prefixOf(text); !ok {
			return structs.NewError(structs.CodeInvalid, "auth.scope_address", "address", text)
		}
	}
	return nil
}

// verbNames lists the verbs of the policy by name.
func verbNames() (names []string) {
	for _, r := range rules {
		names = append(names, string(r.verb))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prefixOf reads an address or a prefix.
func prefixOf(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err == nil && !prefix.Addr().Is4In6()
}

// ReachesFrom reports whether a token is good for requests from an address. An address
// that is none is good for tokens alone that are good from everywhere.
func ReachesFrom(token *structs.Token, address string) bool {
	if len(token.Addresses) == 0 {
		return true
	}
	addr, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(token.Addresses, func(text string) bool {
		prefix, ok := prefixOf(text)
		return ok && prefix.Contains(addr.Unmap().WithZone(""))
	})
}

// Covers reports whether a token is good for a verb. What it is itself may be asked in
// any case.
func Covers(token *structs.Token, verb Verb) bool {
	return len(token.Verbs) == 0 || verb == VerbSelf || slices.Contains(token.Verbs, string(verb))
}
