//go:build linux && !cli

package command

import (
	"errors"
	"fmt"
	"time"

	"nomadlike/agent"
	"nomadlike/agent/config"
	"nomadlike/internal/messages"
)

// checked is what -check-config -json prints.
type checked struct {
	Valid    bool            `json:"valid"`              // the agent would start
	Problems []string        `json:"problems,omitempty"` // of the configuration itself
	Findings []agent.Finding `json:"findings,omitempty"` // on this machine
}

// checkConfig reports everything that is wrong with a configuration and with the
// machine that it is for. It fails when the agent would not start. err is what
// reading the configuration came to.
func (env *Env) checkConfig(loaded config.Config, err error, asJSON bool) error {
	var told checked
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong):
		told.Problems, loaded = wrong.Problems(), wrong.Config()
	case err != nil:
		return err
	}
	told.Findings = agent.Preflight(loaded, time.Now())
	refused := 0
	for i := range told.Findings {
		finding := &told.Findings[i]
		// Programs get the English text, as from the API.
		finding.Problem.Message = messages.Text(messages.English, finding.Problem.ID, finding.Problem.Params)
		if !finding.Warning {
			refused++
		}
	}
	told.Valid = refused == 0 && len(told.Problems) == 0
	if asJSON {
		err = writeJSON(env.Stdout, told)
	} else {
		err = env.printChecked(&told, wrong)
	}
	if err == nil && !told.Valid {
		return &exitError{code: ExitError}
	}
	return err
}

func (env *Env) printChecked(told *checked, wrong *config.Error) error {
	if wrong != nil {
		if err := wrong.Render(env.Stderr, 0, env.Stderr.Colour); err != nil {
			return err
		}
	}
	for _, finding := range told.Findings {
		if !finding.Warning {
			env.printError(env.errorText(finding.Problem), env.hintText(finding.Problem))
			continue
		}
		fmt.Fprintf(env.Stderr, "%s %s\n", env.Stderr.paint(colourYellow, env.text("cli.warning")), env.errorText(finding.Problem))
		if hint := env.hintText(finding.Problem); hint != "" {
			fmt.Fprintf(env.Stderr, "  %s\n", hint)
		}
	}
	if told.Valid {
		fmt.Fprintln(env.Stdout, env.text("cli.config.valid"))
	}
	return nil
}
