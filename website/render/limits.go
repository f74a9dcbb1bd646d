package render

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/internal/messages"
)

// limit is a bound that people may meet: a constant of the sources.
type limit struct {
	dir, name string // of the package below the root, and of the constant
	unit      unit
}

// unit is what a bound counts.
type unit int

const (
	count unit = iota
	size       // bytes
	span       // nanoseconds
	hours
)

// limitGroup is a section of the page.
type limitGroup struct {
	title  string
	limits []limit
}

// limitGroups are the bounds in the order of the page. Each has a text in the
// catalogue by its package and name.
var limitGroups = []limitGroup{
	{"jobs", []limit{
		{"nomadlike/structs", "NameLengthMax", count},
		{"nomadlike/structs", "NodesMax", count},
		{"nomadlike/structs", "BatchCountMax", count},
		{"nomadlike/structs", "ArrayIDMax", count},
		{"nomadlike/structs", "SweepParamsMax", count},
		{"nomadlike/structs", "SweepNameMax", size},
		{"nomadlike/structs", "SweepValuesMax", count},
		{"nomadlike/structs", "SweepValueMax", size},
		{"nomadlike/structs", "SweepValuesSizeMax", size},
		{"nomadlike/structs", "JobRanksMax", count},
		{"nomadlike/structs", "RanksMax", count},
		{"nomadlike/structs", "AlternativesMax", count},
		{"nomadlike/structs", "CPUMax", count},
		{"nomadlike/structs", "MemoryMax", size},
		{"nomadlike/structs", "DiskMax", size},
		{"nomadlike/structs", "SKUMax", count},
		{"nomadlike/structs", "DevicesMax", count},
		{"nomadlike/structs", "DeviceCountMax", count},
		{"nomadlike/structs", "PortsMax", count},
		{"nomadlike/structs", "PortMax", count},
		{"nomadlike/structs", "ProcsMax", count},
		{"nomadlike/structs", "NamedNodesMax", count},
		{"nomadlike/structs", "RestartsMax", count},
		{"nomadlike/structs", "SpanMax", span},
		{"nomadlike/structs", "GraceMax", span},
		{"nomadlike/structs", "HoldMax", span},
		{"nomadlike/structs", "HooksMax", count},
		{"nomadlike/structs", "HookTimeoutMax", span},
		{"nomadlike/structs", "DescriptionMax", size},
		{"nomadlike/structs", "CommandMax", size},
		{"nomadlike/structs", "WordMax", size},
		{"nomadlike/structs", "PathMax", size},
		{"nomadlike/structs", "EnvMax", count},
		{"nomadlike/structs", "EnvValueMax", size},
		{"nomadlike/structs", "EnvSizeMax", size},
		{"nomadlike/structs", "MetaMax", count},
		{"nomadlike/structs", "MetaValueMax", size},
		{"nomadlike/structs", "TagsMax", count},
		{"nomadlike/structs", "TagLengthMax", count},
		{"nomadlike/structs", "NoteMax", count},
		{"nomadlike/structs", "OptionsMax", count},
		{"nomadlike/structs", "DataRefsMax", count},
		{"nomadlike/structs", "AfterMax", count},
		{"nomadlike/structs", "LogFileMax", size},
		{"nomadlike/structs", "LogFilesMax", count},
		{"nomadlike/structs", "WatchTimesMax", count},
		{"nomadlike/structs", "HangFactorMax", count},
		{"nomadlike/structs", "HangMax", span},
		{"nomadlike/structs", "MetricPatternsMax", count},
		{"nomadlike/structs", "MetricPatternMax", size},
		{"nomadlike/structs", "ThrottlePartMax", span},
		{"nomadlike/structs", "CommitNameMax", size},
		{"nomadlike/structs", "CommitCommentMax", size},
		{"nomadlike/structs", "ImageNameMax", size},
		{"nomadlike/structs", "ImageRecordsMax", count},
		{"nomadlike/structs", "ImageDevicesMax", count},
		{"nomadlike/structs", "ImageDescriptionMax", size},
		{"nomadlike/structs", "NodeImagesMax", count},
		{"nomadlike/structs", "CheckpointPathMax", size},
		{"nomadlike/structs", "AvoidMax", count},
	}},
	{"files", []limit{
		{"jobspec", "SourceSizeMax", size},
		{"nomadlike/structs", "SourceKeptMax", size},
		{"jobspec", "DepthMax", count},
		{"jobspec", "TokensMax", count},
		{"jobspec", "StepsMax", count},
		{"jobspec", "TextMax", size},
		{"jobspec", "DiagnosticsMax", count},
		{"nomadlike/structs", "ProblemsMax", count},
		{"jobspec", "ChangesMax", count},
	}},
	{"data", []limit{
		{"nomadlike/codestore", "ProjectBytesMax", size},
		{"nomadlike/structs", "CodeMaxDefault", size},
		{"nomadlike/structs", "CodeMaxMost", size},
		{"nomadlike/structs", "CodeTreesPerProject", count},
		{"nomadlike/structs", "CodeTreesMax", count},
		{"nomadlike/structs", "DataObjectsPerProject", count},
		{"nomadlike/structs", "DataObjectsMax", count},
		{"nomadlike/structs", "DataVersionsMax", count},
		{"nomadlike/structs", "DataUploadsMax", count},
		{"nomadlike/structs", "DataFilesMax", count},
		{"nomadlike/structs", "DataBytesMax", size},
		{"nomadlike/structs", "DataLabelsMax", count},
		{"nomadlike/structs", "DataLabelMax", size},
		{"nomadlike/structs", "DataMarksMax", count},
		{"nomadlike/structs", "OriginInputsMax", count},
		{"nomadlike/structs", "OriginTextMax", size},
		{"nomadlike/api", "DataNamesMax", count},
		{"nomadlike/api", "DataJobsMax", count},
		{"nomadlike/api", "DataArchiveMax", count},
		{"nomadlike/preview", "TextMax", size},
		{"nomadlike/preview", "RowsMax", count},
		{"nomadlike/preview", "ColumnsMax", count},
		{"nomadlike/preview", "CellMax", count},
		{"nomadlike/preview", "ImageMax", size},
		{"nomadlike/preview", "PixelsMax", count},
		{"nomadlike/client/data", "FilesMax", count},
		{"nomadlike/client/data", "SourceFilesMax", count},
		{"nomadlike/client/data", "namesMax", size},
		{"nomadlike/client/data/remote", "listBytesMax", size},
		{"nomadlike/structs", "FilePathMax", size},
		{"nomadlike/structs", "FileEntriesMax", count},
		{"nomadlike/structs", "FileDigestMax", size},
	}},
	{"cluster", []limit{
		{"nomadlike/state", "NodesMax", count},
		{"nomadlike/state", "NodeDevicesMax", count},
		{"nomadlike/state", "LiveSubjobsMax", count},
		{"nomadlike/state", "LiveUserMax", count},
		{"nomadlike/state", "LiveProjectMax", count},
		{"nomadlike/state", "PoolsMax", count},
		{"nomadlike/state", "ProjectsMax", count},
		{"nomadlike/state", "UsersMax", count},
		{"nomadlike/structs", "PoolNodesMax", count},
		{"nomadlike/structs", "MaintenanceMax", count},
		{"nomadlike/structs", "MaintenanceReasonMax", size},
		{"nomadlike/structs", "ConsentsMax", count},
		{"nomadlike/structs", "ConsentMessageMax", size},
		{"nomadlike/structs", "ConsentForMax", span},
		{"nomadlike/structs", "MaintenanceAheadMax", span},
		{"nomadlike/structs", "MaintenanceLengthMax", span},
		{"nomadlike/structs", "PoolConstraintsMax", count},
		{"nomadlike/structs", "AgeWeightMax", count},
		{"nomadlike/structs", "AccountsMax", count},
		{"nomadlike/structs", "UserNameLengthMax", size},
		{"nomadlike/structs", "UserTextMax", size},
		{"nomadlike/structs", "SSHKeysMax", count},
		{"nomadlike/structs", "PasswordBytesMax", size},
		{"nomadlike/structs", "NotifyChannelsMax", count},
		{"nomadlike/structs", "NotifyChannelNameMax", size},
		{"nomadlike/structs", "NotifyAddressMax", size},
		{"nomadlike/structs", "NotifyKeptPerUser", count},
		{"nomadlike/structs", "NotifyKeptMax", count},
		{"nomadlike/structs", "SignInsMax", count},
		{"nomadlike/structs", "IdentitiesMax", count},
		{"nomadlike/structs", "SubjectMax", size},
		{"nomadlike/structs", "SignInGrantsMax", count},
		{"nomadlike/structs", "TokenVerbsMax", count},
		{"nomadlike/structs", "TokenAddressesMax", count},
		{"nomadlike/structs", "SSHKeyLengthMax", size},
		{"nomadlike/structs", "ServiceAccountsPerProject", count},
		{"nomadlike/structs", "ServiceTokensMax", count},
		{"nomadlike/structs", "ServiceTokenTTLMax", span},
		{"nomadlike/structs", "ServiceDescriptionMax", size},
		{"nomadlike/structs", "SecretNameMax", size},
		{"nomadlike/structs", "SecretSizeMax", size},
		{"nomadlike/structs", "TemplateSizeMax", size},
		{"nomadlike/structs", "TemplateDescriptionMax", size},
		{"nomadlike/structs", "TemplatesPerScope", count},
		{"nomadlike/structs", "TemplatesMax", count},
		{"nomadlike/structs", "TemplateBytesMax", size},
		{"nomadlike/structs", "SecretsPerScope", count},
		{"nomadlike/structs", "SecretsMax", count},
		{"nomadlike/structs", "SecretUsesMax", count},
		{"nomadlike/structs", "MaskMin", size},
		{"nomadlike/structs", "ProjectMembersMax", count},
		{"nomadlike/structs", "ProjectQuotasMax", count},
		{"nomadlike/structs", "QuotaMax", count},
		{"nomadlike/structs", "WeightMax", count},
		{"nomadlike/structs", "UrgentLimitMax", count},
		{"nomadlike/structs", "RemovedNodesMax", count},
		{"nomadlike/structs", "RemovedServersMax", count},
		{"agent/httpapi", "drainMax", span},
	}},
	{"kept", []limit{
		{"nomadlike/state", "EventsMax", count},
		{"nomadlike/state", "NodeEventsShare", count},
		{"nomadlike/state", "JobEventsMax", count},
		{"nomadlike/state", "NodeEventsMax", count},
		{"nomadlike/state", "PastRunsMax", count},
		{"nomadlike/state", "ForecastsKeptMax", count},
		{"nomadlike/state", "IdempotencyKeysMax", count},
		{"nomadlike/structs", "HistoryPointsMax", count},
	}},
	{"api", []limit{
		{"nomadlike/api", "BodySizeMax", size},
		{"agent/httpapi/front", "bodiesCallerMax", size},
		{"agent/httpapi/front", "bodiesMax", size},
		{"agent/httpapi/front", "bodyOpenMax", size},
		{"agent/httpapi/front", "jsonDepthMax", count},
		{"agent/httpapi/front", "waitMax", span},
		{"agent/httpapi", "idempotencyKeyMax", size},
		{"nomadlike/api", "PageSizeMax", count},
		{"nomadlike/api", "PlanRanksMax", count},
		{"nomadlike/api", "YieldsMax", count},
		{"nomadlike/api", "FollowersMax", count},
		{"nomadlike/api", "UsageRanksMax", count},
		{"nomadlike/api", "UseDaysMax", count},
		{"nomadlike/api", "UseJobsMax", count},
		{"nomadlike/api", "UseIdleMax", count},
		{"nomadlike/api", "MetricPointsMax", count},
		{"nomadlike/structs", "HistoryValuesMax", count},
		{"nomadlike/api", "ResultJobsMax", count},
		{"nomadlike/api", "TrialMetricsMax", count},
		{"nomadlike/api", "ResultMetricsMax", count},
		{"nomadlike/api", "ExecMessageMax", size},
		{"nomadlike/server", "PreviewsUserMax", count},
		{"nomadlike/server", "PreviewsProjectMax", count},
		{"nomadlike/server", "PreviewsMax", count},
		{"nomadlike/structs/outlook", "ChangesMax", count},
		{"nomadlike/structs/outlook", "AddNodesMax", count},
		{"nomadlike/structs/outlook", "ShiftsMax", count},
		{"nomadlike/structs/outlook", "SubjobsMax", count},
		{"agent/httpapi", "timelineHoursMax", hours},
		{"agent/httpapi", "reasonLengthMax", size},
		{"agent/httpapi", "snapshotSizeMax", size},
	}},
	{"access", []limit{
		{"agent/httpapi", "joinTTLMax", span},
		{"agent/httpapi", "joinUsesMax", count},
		{"agent/httpapi", "labelLengthMax", size},
		{"agent/httpapi", "userLengthMax", size},
		{"nomadlike/api", "ShareTTLMax", span},
		{"nomadlike/api", "SharesMax", count},
		{"agent/httpapi/front", "sessionsMax", count},
		{"nomadlike/rpc", "DefaultHandshakesMax", count},
		{"nomadlike/rpc", "DefaultConnsMax", count},
		{"nomadlike/rpc", "DefaultConnsPerIPMax", count},
		{"nomadlike/rpc", "DefaultConnsPerPeerMax", count},
	}},
	{"metrics", []limit{
		{"agent/httpapi", "seriesJobsMax", count}, {"agent/httpapi", "seriesRanksMax", count}, {"agent/httpapi", "seriesDevicesMax", count},
	}},
	{"plugins", []limit{
		{"plugins/device", "DevicesMax", count},
		{"plugins/device", "EventsMax", count},
		{"plugins/device/deviceplugin", "MessageBytesMax", size},
		{"plugins/device", "ProcessesMax", count},
		{"plugins/device", "TextMax", size},
		{"plugins/driver/tasklog", "LineBytesMax", size},
	}},
}

// Limits is the page about bounds. root is the directory of the sources, whose
// constants it reads.
func Limits(root fs.FS, language messages.Language) (string, error) {
	say := func(id string) string { return messages.Text(language, "reference.limits."+id, nil) }
	sources := &constants{root: root, packages: make(map[string]map[string]ast.Expr)}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", say("title"), say("intro"))
	for _, group := range limitGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| %s | %s |\n|---|---|\n", say("group_"+group.title), say("what"), say("most"))
		for _, one := range group.limits {
			value, err := sources.value(one.dir, one.name)
			if err != nil {
				return "", err
			}
			id := limitText(one)
			if !messages.Has(language, id) {
				return "", fmt.Errorf("the catalogue has no text %s", id)
			}
			fmt.Fprintf(&b, "| %s | %s |\n", messages.Text(language, id, nil), one.unit.written(value))
		}
	}
	return b.String(), nil
}

// limitText is the id of what a bound is on.
func limitText(one limit) string {
	return "reference.limit." + path.Base(one.dir) + "." + strings.ToLower(one.name)
}

// written is a bound as people write it.
func (u unit) written(value constant.Value) string {
	n, exact := constant.Int64Val(constant.ToInt(value))
	if !exact {
		return value.String()
	}
	switch u {
	case size:
		for _, one := range []struct {
			bytes int64
			name  string
		}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= one.bytes && n%one.bytes == 0 {
				return grouped(n/one.bytes) + " " + one.name
			}
		}
		return grouped(n) + " B"
	case span:
		switch d := time.Duration(n); {
		case d%(24*time.Hour) == 0:
			return grouped(int64(d/(24*time.Hour))) + " d"
		case d%time.Hour == 0:
			return grouped(int64(d/time.Hour)) + " h"
		case d%time.Minute == 0:
			return grouped(int64(d/time.Minute)) + " min"
		default:
			return d.String()
		}
	case hours:
		return grouped(n) + " h"
	case count:
	}
	return grouped(n)
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// constants evaluates constants of the sources. It knows what stands in bounds:
// numbers, + - * / <<, other constants, and conversions.
type constants struct {
	root     fs.FS
	packages map[string]map[string]ast.Expr
}

// read lists the constants of a package.
func (c *constants) read(dir string) (map[string]ast.Expr, error) {
	if found, ok := c.packages[dir]; ok {
		return found, nil
	}
	names, err := fs.Glob(c.root, dir+"/*.go")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	found := make(map[string]ast.Expr)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(c.root, name)
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse source: %w", err)
		}
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, ident := range spec.Names {
					if i < len(spec.Values) {
						found[ident.Name] = spec.Values[i]
					}
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no constants", dir)
	}
	c.packages[dir] = found
	return found, nil
}

// value returns a constant of a package.
func (c *constants) value(dir, name string) (constant.Value, error) {
	found, err := c.read(dir)
	if err != nil {
		return nil, err
	}
	expr, ok := found[name]
	if !ok {
		return nil, fmt.Errorf("%s has no constant %s", dir, name)
	}
	value, err := c.evaluate(dir, expr)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s.%s: %w", dir, name, err)
	}
	return value, nil
}

var errExpression = errors.New("an expression that constants of bounds do not have")

// elsewhere are the packages that bounds refer to, and units of time.
var (
	elsewhere = map[string]string{"structs": "nomadlike/structs", "api": "nomadlike/api", "state": "nomadlike/state", "driver": "plugins/driver"}
	spans     = map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Millisecond": time.Millisecond}
)

func (c *constants) evaluate(dir string, expr ast.Expr) (constant.Value, error) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(expr.Value, expr.Kind, 0), nil
	case *ast.ParenExpr:
		return c.evaluate(dir, expr.X)
	case *ast.Ident:
		return c.value(dir, expr.Name)
	case *ast.CallExpr: // a conversion
		if len(expr.Args) == 1 {
			return c.evaluate(dir, expr.Args[0])
		}
	case *ast.SelectorExpr:
		from, ok := expr.X.(*ast.Ident)
		if !ok {
			break
		}
		if unit, ok := spans[expr.Sel.Name]; ok && from.Name == "time" {
			return constant.MakeInt64(int64(unit)), nil
		}
		if place, ok := elsewhere[from.Name]; ok {
			return c.value(place, expr.Sel.Name)
		}
	case *ast.BinaryExpr:
		left, err := c.evaluate(dir, expr.X)
		if err != nil {
			return nil, err
		}
		right, err := c.evaluate(dir, expr.Y)
		if err != nil {
			return nil, err
		}
		switch expr.Op {
		case token.SHL:
			by, _ := constant.Uint64Val(right)
			return constant.Shift(constant.ToInt(left), token.SHL, uint(by)), nil
		case token.ADD, token.SUB, token.MUL:
			return constant.BinaryOp(left, expr.Op, right), nil
		case token.QUO:
			return constant.BinaryOp(left, token.QUO_ASSIGN, right), nil // of whole numbers
		}
	}
	return nil, errExpression
}

// exported lists the exported constants of a package whose names end in Max.
func (c *constants) exported(dir string) ([]string, error) {
	found, err := c.read(dir)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(found))
	return slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) || !strings.HasSuffix(name, "Max") }), nil
}
