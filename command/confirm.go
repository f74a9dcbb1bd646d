package command

import (
	"bufio"
	"fmt"
	"strings"

	"nomadlike/nomadlike/structs"
)

// confirm asks a person before something that cannot be taken back.
func (env *Env) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s ", question)
	answer, err := bufio.NewReader(env.Stdin).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(env.Stdout)
		return structs.NewError(structs.CodeInvalid, "cli.not_confirmed")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes", "是":
		return nil
	}
	return structs.NewError(structs.CodeInvalid, "cli.not_confirmed")
}
