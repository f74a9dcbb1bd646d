package codestore

import (
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Home is the name under which the code of a project is kept: its own, and behind it when
// one of the name was last deleted, so that another begins with nothing. since is the
// place in the log, 0 for never. Servers name homes to each other, so that one that has
// not heard of a deletion lacks what another asks for.
func Home(project string, since uint64) string {
	if since == 0 {
		return project
	}
	return project + homeMark + strconv.FormatUint(since, 10)
}

const homeMark = "@" // stands in no name of a project

// OfHome is the project of a home, and since when it is that project's. A text from
// anybody else that is none has a problem: the id of its message.
func OfHome(home string) (project string, since uint64, problem string) {
	project, place, marked := strings.Cut(home, homeMark)
	if id := structs.NameProblem(project); id != "" {
		return "", 0, id
	}
	if marked {
		var err error
		if since, err = strconv.ParseUint(place, 10, 64); err != nil || Home(project, since) != home {
			return "", 0, "name.characters"
		}
	}
	return project, since, ""
}
