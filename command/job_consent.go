package command

import (
	"flag"
	"fmt"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobConsent shows what VIP jobs ask the owner of a job, or answers one of them.
func jobConsent(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	to := set.String("to", "", "cli.flag.consent_to")
	reason := set.String("reason", "", "cli.flag.reason")
	return func(env *Env, args []string) error {
		if len(args) == 0 || len(args) > 2 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		var list *api.AskedList
		if len(args) == 2 {
			list, err = client.Consent(env.Context, args[0], api.ConsentRequest{To: *to, Answer: structs.ConsentAnswer(args[1]), Reason: *reason})
		} else {
			list, err = askedAbout(env, client, args[0])
		}
		if err != nil {
			return err
		}
		return env.show(output, list, func() { env.printAsked(list.Asked) })
	}
}

// askedAbout reads what is asked about a job.
func askedAbout(env *Env, client *api.Client, id string) (*api.AskedList, error) {
	detail, _, err := client.Job(env.Context, id, nil)
	if err != nil {
		return nil, err
	}
	return &api.AskedList{JobID: detail.Job.ID, Asked: append([]api.Asked{}, detail.Asked...)}, nil
}

func (env *Env) printAsked(list []api.Asked) {
	if len(list) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.consent.none"))
	}
	for i := range list {
		fmt.Fprintln(env.Stdout, env.askedText(&list[i]))
	}
}

// askedText says in one line who asks, until when, and what was answered.
func (env *Env) askedText(a *api.Asked) string {
	text := env.text("cli.consent.asks", "user", safe(a.To.User), "job", safe(a.To.Name), "until", when(a.Until))
	switch {
	case a.Answer == structs.ConsentYes:
		text = env.text("cli.consent.agreed", "user", safe(a.To.User), "job", safe(a.To.Name), "by", safe(a.By))
	case a.Answer == structs.ConsentNo:
		text = env.text("cli.consent.declined", "user", safe(a.To.User), "job", safe(a.To.Name), "by", safe(a.By))
	case a.Silence == structs.BusyKill:
		text += "; " + env.text("cli.consent.silence_kill")
	default:
		text += "; " + env.text("cli.consent.silence_wait")
	}
	if a.Message != "" {
		text += ": " + safe(a.Message)
	}
	return text
}

// answeredText says in one line what an owner was asked, and said.
func (env *Env) answeredText(a *api.Answered) string {
	name := safe(firstOf(a.Of.Name, env.text("cli.machine.hidden")))
	switch a.Answer {
	case structs.ConsentYes:
		return env.text("cli.consent.yes", "job", name, "by", safe(a.By))
	case structs.ConsentNo:
		return env.text("cli.consent.no", "job", name, "by", safe(a.By))
	}
	if a.Over {
		return env.text("cli.consent.over", "job", name)
	}
	return env.text("cli.consent.open", "job", name, "user", safe(a.Of.User), "until", when(a.Until))
}
