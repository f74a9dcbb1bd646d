package command

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

func reportVerbs() []verb {
	return []verb{
		{path: "report usage", setup: reportUsage},
		{path: "report waits", setup: reportWaits},
		{path: "report me", setup: reportMe},
	}
}

// The forms of a report.
const (
	formTable = "table"
	formCSV   = "csv"
	formJSON  = "json"
)

// reportFlags say what a report is about, and how it is printed.
type reportFlags struct {
	query  *api.ReportQuery
	format *string
}

func declareReport(set *flag.FlagSet, connection connectionFlags) reportFlags {
	flags := reportFlags{query: &api.ReportQuery{}, format: set.String("format", formTable, "cli.flag.report_format")}
	set.StringVar(&flags.query.Per, "per", "", "cli.flag.report_per")
	set.StringVar(&flags.query.From, "from", "", "cli.flag.report_from")
	set.StringVar(&flags.query.To, "to", "", "cli.flag.report_to")
	set.StringVar(&flags.query.Zone, "zone", "", "cli.flag.report_zone")
	set.StringVar(&flags.query.Pool, "pool", "", "cli.flag.report_pool")
	set.StringVar(&flags.query.Tag, "tag", "", "cli.flag.report_tag")
	connection.means(set, "cli.flag.report_project")
	return flags
}

// of declares what a report has lines for, and whose use it tells.
func (f reportFlags) of(set *flag.FlagSet) {
	set.StringVar(&f.query.By, "by", string(history.ByProject), "cli.flag.report_by")
	set.StringVar(&f.query.User, "user", "", "cli.flag.report_user")
}

// check refuses what no server would take, before any is asked.
func (f reportFlags) check(connection connectionFlags) error {
	if !slices.Contains([]string{formTable, formCSV, formJSON}, *f.format) {
		return usagef("cli.report.bad_format", "value", safe(*f.format))
	}
	if !slices.Contains(history.Bys(), history.By(f.query.By)) {
		return usagef("cli.report.bad_by", "value", safe(f.query.By))
	}
	if !slices.Contains(history.Pers(), history.Per(f.query.Per)) {
		return usagef("cli.report.bad_per", "value", safe(f.query.Per))
	}
	f.query.Project = *connection.project
	return nil
}

func reportUsage(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	flags := declareReport(set, connection)
	flags.of(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if err := flags.check(connection); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		report, err := client.ReportUsage(env.Context, *flags.query)
		if err != nil {
			return err
		}
		return env.showUsage(*flags.format, report)
	}
}

func reportWaits(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	flags := declareReport(set, connection)
	flags.of(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if err := flags.check(connection); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		report, err := client.ReportWaits(env.Context, *flags.query)
		if err != nil {
			return err
		}
		return env.showWaits(*flags.format, report)
	}
}

// reportMe tells what the caller's own jobs used, and how long they waited.
func reportMe(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	flags := declareReport(set, connection)
	flags.query.By, flags.query.User = string(history.ByProject), "me"
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if err := flags.check(connection); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		usage, err := client.ReportUsage(env.Context, *flags.query)
		if err != nil {
			return err
		}
		if *flags.format == formCSV {
			return env.showUsage(formCSV, usage)
		}
		waits, err := client.ReportWaits(env.Context, *flags.query)
		if err != nil {
			return err
		}
		if *flags.format == formJSON {
			return writeJSON(env.Stdout, struct {
				Usage *api.UsageReport `json:"usage"`
				Waits *api.WaitsReport `json:"waits"`
			}{usage, waits})
		}
		if err := env.showUsage(formTable, usage); err != nil {
			return err
		}
		if len(waits.Lines) == 0 {
			return nil
		}
		fmt.Fprintln(env.Stdout)
		return env.showWaits(formTable, waits)
	}
}

func (env *Env) showUsage(format string, report *api.UsageReport) error {
	switch format {
	case formJSON:
		return writeJSON(env.Stdout, report)
	case formCSV:
		return env.usageCSV(report)
	}
	env.aboutReport(&report.ReportSpan)
	if len(report.Lines) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.report.nothing"))
		return nil
	}
	total := history.Use{Key: env.text("cli.report.total")}
	table := newTable(env.Stdout, env.reportHeader(&report.ReportSpan, "cli.report.col.card_hours", "cli.report.col.good", "cli.report.col.running", "cli.report.col.failed",
		"cli.report.col.lost", "cli.report.col.yielded", "cli.report.col.stopped", "cli.report.col.core_hours")...)
	row := func(use *history.Use) {
		table.row(append(reportKey(&report.ReportSpan, use.Key, use.Period),
			cardHours(use.CardMs), cardHours(use.GoodMs), cardHours(use.Running), cardHours(use.Failed), cardHours(use.Lost), cardHours(use.Yielded), cardHours(use.Stopped), cardHours(use.CoreMs))...)
	}
	for i := range report.Lines {
		use := &report.Lines[i]
		row(use)
		total.CardMs, total.CoreMs, total.GoodMs, total.Running = total.CardMs+use.CardMs, total.CoreMs+use.CoreMs, total.GoodMs+use.GoodMs, total.Running+use.Running
		total.Failed, total.Lost, total.Yielded, total.Stopped = total.Failed+use.Failed, total.Lost+use.Lost, total.Yielded+use.Yielded, total.Stopped+use.Stopped
	}
	if len(report.Lines) > 1 && report.By != history.ByTag { // a job with two tags is in two lines
		row(&total)
	}
	table.print()
	return nil
}

func (env *Env) showWaits(format string, report *api.WaitsReport) error {
	switch format {
	case formJSON:
		return writeJSON(env.Stdout, report)
	case formCSV:
		return env.waitsCSV(report)
	}
	env.aboutReport(&report.ReportSpan)
	if len(report.Lines) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.report.nothing"))
		return nil
	}
	table := newTable(env.Stdout, env.reportHeader(&report.ReportSpan, "cli.report.col.starts", "cli.report.col.mean", "cli.report.col.p50", "cli.report.col.p90",
		"cli.report.col.longest", "cli.report.col.within_minute", "cli.report.col.held_p50", "cli.report.col.held_p90")...)
	for _, line := range report.Lines {
		table.row(append(reportKey(&report.ReportSpan, line.Key, line.Period), strconv.FormatInt(line.Attempts, 10), waitText(line.MeanMs), waitText(line.P50Ms), waitText(line.P90Ms),
			waitText(line.MaxMs), share(line.Within, line.Attempts), share(line.HeldP50, line.Forecast), share(line.HeldP90, line.Forecast))...)
	}
	table.print()
	return nil
}

// aboutReport says between which times it counts, and what it does not know.
func (env *Env) aboutReport(about *api.ReportSpan) {
	fmt.Fprintln(env.Stderr, env.text("cli.report.about", "from", when(about.From), "to", when(about.To), "zone", safe(about.Zone)))
	if about.Since > about.From && about.Rows > 0 {
		fmt.Fprintln(env.Stderr, env.text("cli.report.since", "since", when(about.Since)))
	}
	if len(about.Gaps) > 0 {
		fmt.Fprintln(env.Stderr, env.text("cli.report.gaps", "count", len(about.Gaps)))
	}
}

func (env *Env) reportHeader(about *api.ReportSpan, columns ...string) []string {
	header := []string{env.text("cli.report.col." + string(about.By))}
	if about.Per != history.PerAll {
		header = append([]string{env.text("cli.report.col." + string(about.Per))}, header...)
	}
	for _, id := range columns {
		header = append(header, env.text(id))
	}
	return header
}

func reportKey(about *api.ReportSpan, key, period string) []string {
	if about.Per != history.PerAll {
		return []string{safe(period), safe(firstOf(key, "-"))}
	}
	return []string{safe(firstOf(key, "-"))}
}

func cardHours(ms int64) string { return strconv.FormatFloat(float64(ms)/3_600_000, 'f', 1, 64) }

func share(of, all int64) string {
	if all == 0 {
		return "-"
	}
	return strconv.FormatInt((of*100+all/2)/all, 10) + "%"
}

func waitText(ms int64) string {
	return structs.FormatDuration(structs.Duration((time.Duration(ms) * time.Millisecond).Round(time.Second)))
}

// usageCSV writes a report for spreadsheets and programs: names of columns stay, hours have
// four decimals.
func (env *Env) usageCSV(report *api.UsageReport) error {
	exact := func(ms int64) string { return strconv.FormatFloat(float64(ms)/3_600_000, 'f', 4, 64) }
	rows := [][]string{{
		"period", string(report.By), "card_hours", "good_card_hours", "running_card_hours", "failed_card_hours", "lost_card_hours", "preempted_card_hours", "stopped_card_hours",
		"core_hours", "ranks",
	}}
	for _, use := range report.Lines {
		rows = append(rows, []string{
			use.Period, use.Key, exact(use.CardMs), exact(use.GoodMs), exact(use.Running), exact(use.Failed), exact(use.Lost), exact(use.Yielded), exact(use.Stopped),
			exact(use.CoreMs), strconv.FormatInt(use.Ranks, 10),
		})
	}
	return writeCSV(env.Stdout, rows)
}

func (env *Env) waitsCSV(report *api.WaitsReport) error {
	seconds := func(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }
	rows := [][]string{{
		"period", string(report.By), "starts", "mean_seconds", "p50_seconds", "p90_seconds", "p95_seconds", "max_seconds", "within_minute", "forecast", "held_p50", "held_p90",
	}}
	for _, line := range report.Lines {
		row := []string{line.Period, line.Key, strconv.FormatInt(line.Attempts, 10), seconds(line.MeanMs), seconds(line.P50Ms), seconds(line.P90Ms), seconds(line.P95Ms), seconds(line.MaxMs)}
		for _, n := range []int64{line.Within, line.Forecast, line.HeldP50, line.HeldP90} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, row)
	}
	return writeCSV(env.Stdout, rows)
}

// writeCSV writes rows in the form of RFC 4180. A cell that a spreadsheet would take for a
// formula begins with an apostrophe, which shows it as text.
func writeCSV(w io.Writer, rows [][]string) error {
	out := csv.NewWriter(w)
	for _, row := range rows {
		safeRow := make([]string, len(row))
		for i, cell := range row {
			safeRow[i] = noFormula(safe(cell))
		}
		if err := out.Write(safeRow); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// noFormula is a cell that no spreadsheet runs.
func noFormula(cell string) string {
	if strings.HasPrefix(cell, "'") || strings.IndexAny(cell, "=+-@\t\r\n|") == 0 {
		return "'" + cell
	}
	return cell
}
