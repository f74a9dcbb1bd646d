package structs

// NameLengthMax bounds names of jobs, projects, pools and other objects, so
// that "<job>-s<sub>-<attempt>-<rank>" stays a legal host name (63 bytes).
const NameLengthMax = 40

// reservedNames would be confused with paths or with words of the API.
func reservedName(name string) bool {
	switch name {
	case "alloc", "secrets", "tmp", "all", "none", "null", "localhost":
		return true
	}
	return false
}

// NameProblem reports why name may not name an object, as the message id of
// the reason, or "" when it may. One rule serves all objects: lower-case
// ASCII letters, digits and '-', starting with a letter, not ending in '-',
// at most NameLengthMax bytes; so a name is a host name label, a file name
// and a shell word as it stands.
func NameProblem(name string) string {
	switch {
	case name == "":
		return "name.empty"
	case len(name) > NameLengthMax:
		return "name.too_long"
	case reservedName(name):
		return "name.reserved"
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && c != '-' {
			return "name.characters"
		}
		if i == 0 && !letter {
			return "name.first"
		}
	}
	if name[len(name)-1] == '-' {
		return "name.last"
	}
	return ""
}
