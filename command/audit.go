package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

func auditVerbs() []verb {
	return []verb{
		{path: "audit list", setup: auditList},
		{path: "audit verify", setup: auditVerify},
	}
}

// auditLimit is how many records are listed unless told.
const auditLimit = 100

func auditList(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	lines := set.Bool("json", false, "cli.flag.audit_json")
	query := api.AuditQuery{}
	set.StringVar(&query.User, "user", "", "cli.flag.audit_user")
	set.StringVar(&query.Object, "object", "", "cli.flag.audit_object")
	set.StringVar(&query.Action, "action", "", "cli.flag.audit_action")
	set.StringVar(&query.Since, "since", "", "cli.flag.audit_since")
	set.StringVar(&query.Until, "until", "", "cli.flag.audit_until")
	set.BoolVar(&query.Refused, "refused", false, "cli.flag.audit_refused")
	limit := set.Int("limit", auditLimit, "cli.flag.audit_limit")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		return env.listAudit(client, query, *limit, *lines)
	}
}

// listAudit shows records page by page, so that an export of millions needs no
// memory; so many, 0: all.
func (env *Env) listAudit(client *api.Client, query api.AuditQuery, limit int, lines bool) error {
	var table *table
	for shown := 0; ; {
		query.Limit = api.PageSizeMax
		if limit > 0 {
			query.Limit = min(query.Limit, limit-shown)
		}
		page, err := client.Audit(env.Context, query)
		if err != nil {
			return err
		}
		if query.After == "" {
			env.tellCopies(page.Servers)
		}
		for i := range page.Records {
			if lines {
				data, err := json.Marshal(&page.Records[i])
				if err != nil {
					return err
				}
				fmt.Fprintf(env.Stdout, "%s\n", data)
				continue
			}
			if table == nil {
				table = newTable(env.Stdout, env.text("cli.col.time"), env.text("cli.col.user"), env.text("cli.col.address"), env.text("cli.col.action"),
					env.text("cli.col.object"), env.text("cli.col.outcome"), env.text("cli.col.request"))
			}
			env.auditRow(table, &page.Records[i])
		}
		shown += len(page.Records)
		if query.After = page.Next; query.After == "" || limit > 0 && shown >= limit {
			break
		}
	}
	if table != nil {
		table.print()
	}
	return nil
}

// tellCopies says whose records are those of a copy.
func (env *Env) tellCopies(servers []api.AuditServer) {
	for _, one := range servers {
		name := safe(firstOf(one.Name, one.ID))
		switch {
		case one.Answered:
		case one.Last == 0:
			fmt.Fprintln(env.Stderr, env.text("cli.audit.no_copy", "server", name))
		default:
			fmt.Fprintln(env.Stderr, env.text("cli.audit.copy", "server", name, "at", when(one.LastAt)))
		}
	}
}

func (env *Env) auditRow(table *table, r *audit.Record) {
	object := r.Object.Kind
	if r.Object.ID != "" {
		object += "/" + r.Object.ID
	}
	if r.Object.Owner != "" && r.Object.Owner != r.Actor.User {
		object += " (" + r.Object.Owner + ")"
	}
	outcome := env.text("cli.audit." + string(r.Outcome))
	if r.Reason != "" {
		outcome += ": " + r.Reason
	}
	if r.Count > 1 {
		outcome += " ×" + strconv.Itoa(r.Count)
	}
	who := firstOf(r.Actor.User, r.Actor.Kind, "-")
	table.row(when(r.Time), safe(who), safe(r.Address), safe(r.Action), safe(object), safe(outcome), safe(r.Request))
}

func auditVerify(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		check, err := client.VerifyAudit(env.Context)
		if err != nil {
			return err
		}
		if err := env.show(output, check, func() { env.printAuditCheck(check) }); err != nil {
			return err
		}
		if !check.Whole {
			return &exitError{code: ExitError}
		}
		return nil
	}
}

func (env *Env) printAuditCheck(check *api.AuditCheck) {
	name := func(id string) string { return safe(firstOf(check.Names[id], id)) }
	table := newTable(env.Stdout, env.text("cli.col.records_of"), env.text("cli.col.disk_of"), env.text("cli.col.lines"), env.text("cli.col.newest"), env.text("cli.col.state"))
	for _, chain := range check.Chains {
		lines := "-"
		if chain.First > 0 {
			lines = fmt.Sprintf("%d–%d", chain.First, chain.Last)
		}
		table.row(name(chain.Server), name(chain.Holder), lines, when(chain.At), env.auditState(chain))
	}
	table.print()
	for _, id := range check.Away {
		fmt.Fprintln(env.Stderr, env.text("cli.audit.away", "server", name(id)))
	}
}

func (env *Env) auditState(chain structs.AuditChain) string {
	if chain.Broken == "" {
		return env.text("cli.audit.whole")
	}
	how := env.text("cli.audit.broken."+safe(chain.Broken), "seq", chain.Seq)
	if chain.File != "" {
		how += " (" + strings.TrimSpace(safe(chain.File)+":"+strconv.Itoa(chain.Line)) + ")"
	}
	return how
}
