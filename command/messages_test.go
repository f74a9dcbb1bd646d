package command

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/internal/messages"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// TestMessageIDs reads the source of the whole program: every text that looks
// like the id of a message is one in both languages, and no message lies in
// the catalogue that nothing can say.
func TestMessageIDs(t *testing.T) {
	source := readSource(t)
	catalogue := readCatalogue(t)
	areas := make(map[string]bool)
	for id := range catalogue {
		area, _, _ := strings.Cut(id, ".")
		areas[area] = true
	}
	used := make(map[string]bool)
	for id, at := range source.literals {
		area, _, _ := strings.Cut(id, ".")
		if !areas[area] || catalogue[id] == "" && (source.other[id] || otherNames(id)) {
			continue
		}
		used[id] = true
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, id) {
				t.Errorf("%s: message %s has no text in %s", at, id, language)
			}
		}
	}
	pages, err := jobspec.ReferenceTexts()
	if err != nil {
		t.Fatal(err)
	}
	ofAgents, err := config.ReferenceTexts()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Concat(builtIDs(), pages, ofAgents) {
		used[id] = true
		for _, language := range []messages.Language{messages.English, messages.Chinese} {
			if !messages.Has(language, id) {
				t.Errorf("message %s, an id that is put together when it is needed, has no text in %s", id, language)
			}
		}
	}
	for id := range catalogue {
		if strings.HasPrefix(id, "word.") {
			continue // said in the place of a parameter: TestRefusalsAreInWords of package auth, and the texts with {…:word}
		}
		if !used[id] && !used[strings.TrimSuffix(id, ".hint")] && !source.builds(id) {
			t.Errorf("message %s: nothing says it", id)
		}
	}
}

// builtIDs lists the ids that are not written out in the source: a part of
// them is a state, a verb or the like.
func builtIDs() []string {
	var ids []string
	for _, action := range []device.Action{
		device.ActNone, device.ActNotice, device.ActTask, device.ActCordon,
		device.ActReset, device.ActReboot, device.ActService,
	} {
		ids = append(ids, "device.action_"+string(action))
		if action != device.ActNone {
			ids = append(ids, "cli.health."+string(action), "cli.cure."+string(action))
		}
	}
	ids = append(ids, "event.node.device_"+string(structs.DeviceClear), "event.node.device_"+string(structs.DeviceReset))
	for _, step := range []string{"files", "image", "data", "code", "hooks", "precheck", "barrier"} {
		ids = append(ids, "cli.step."+step)
	}
	for _, order := range topOrders() {
		ids = append(ids, "cli.top.order_"+string(order))
	}
	for _, state := range structs.JobStates() {
		ids = append(ids, "cli.state."+string(state))
	}
	for _, status := range []structs.AllocStatus{
		structs.AllocPending, structs.AllocPreparing, structs.AllocPrepared, structs.AllocRunning,
		structs.AllocComplete, structs.AllocFailed, structs.AllocKilled, structs.AllocLost,
	} {
		ids = append(ids, "cli.alloc."+string(status))
	}
	for _, status := range []structs.NodeStatus{structs.NodeReady, structs.NodeDisconnected, structs.NodeLost, structs.NodeLeft} {
		ids = append(ids, "cli.node_status."+string(status))
	}
	for _, eligibility := range []structs.Eligibility{structs.NodeEligible, structs.NodeCordoned, structs.NodeDraining} {
		ids = append(ids, "cli.eligibility."+string(eligibility))
	}
	for _, outcome := range []structs.Outcome{
		structs.OutcomeSucceeded, structs.OutcomeFailed, structs.OutcomeLost, structs.OutcomePreempted, structs.OutcomeStopped, structs.OutcomeExpired,
	} {
		ids = append(ids, "cli.outcome."+string(outcome))
	}
	ids = append(ids, "cli.available."+api.NodeIdle, "cli.available."+api.NodeTight)
	for _, v := range verbs() {
		if !v.hidden {
			ids = append(ids, "cli."+key(v.path))
		}
	}
	for _, code := range []structs.ErrorCode{structs.CodeInvalid, structs.CodeNotAvailable} {
		ids = append(ids, "job."+string(code))
	}
	ids = append(ids, "event.cluster.jobs_forgotten_both", "event.cluster.jobs_forgotten_for", "event.cluster.jobs_forgotten_of", "event.cluster.jobs_forgotten_both_of", "event.cluster.jobs_forgotten_for_of") // which settings it was
	// The supervisor names kinds of failures; the exec driver makes ids of them.
	ids = append(ids, "driver.command_denied", "driver.start_refused", "driver.mount_failed", "driver.mount_missing", "driver.mount_refused")
	return append(ids, "jobspec.var_unknown", "jobspec.local_unknown")
}

// otherNames reports whether a text with the form of an id is known to name
// something else.
func otherNames(text string) bool {
	if looksLikeFile.MatchString(text) || strings.HasPrefix(text, "driver.exec.") || strings.HasPrefix(text, "driver.docker.") {
		return true // a file, or an attribute of a node
	}
	switch text {
	case "server.bootstrap_expect", "server.join", "server.backup.path", "server.backup.interval", "server.backup.keep", "server.renew_grace", "server.forget_nodes", "server.keep_jobs", "server.keep_jobs_for", "server.jobs_size_max",
		"server.audit.file", "server.audit.syslog.address", "server.audit.syslog.ca", "server.sign_in.ldap", "server.sign_in.oidc",
		"server.notify.url", "server.notify.allow", "server.notify.smtp.address", "server.notify.smtp.from", "server.notify.smtp.password_file",
		"client.disk.space_min", "client.disk.space_back", "client.disk.inodes_min", "client.disk.inodes_back", "client.servers", "client.pool", "client.port_min", "client.reserved.cpu", "client.reserved.memory",
		"client.topology", "client.nccl_debug", "client.device", "client.storage", "client.data.path", "client.data.retention", "client.data.free_min", "client.exec.isolation", "client.exec.view", "client.exec.pids_max", "client.exec.ulimits", "client.exec.ulimits_max", "client.exec.root",
		"client.exec", "client.exec.mount_roots", "client.exec.cgroups", "client.exec.uid_min",
		"client.task.disk_max", "client.task.files_max", "client.task.logs_max",
		"client.docker.image_gc", "client.docker.image_gc.keep_for", "client.docker.image_gc.unused_max", "client.docker.image_gc.pinned":
		return true // settings of the agent's configuration
	case "docker.io":
		return true // a registry
	case "server.nomadlike":
		return true // a name in certificates
	case "driver.exec.arch", "driver.exec.namespaces", "driver.exec.users", "driver.exec.cgroup", "driver.exec.limits":
		return true // attributes of nodes
	}
	return strings.HasPrefix(text, "driver.docker.") // attributes of nodes
}

// program is what the source says about message ids.
type program struct {
	literals map[string]token.Position // texts that look like ids, with one place each
	other    map[string]bool           // those that are names of something else
	prefixes map[string]bool           // texts to which the rest of an id is added
}

// builds reports whether the source may put id together.
func (p *program) builds(id string) bool {
	for prefix := range p.prefixes {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return false
}

// readSource parses every file of the program itself.
func readSource(t *testing.T) *program {
	t.Helper()
	p := &program{literals: make(map[string]token.Position), other: make(map[string]bool), prefixes: make(map[string]bool)}
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "scripts" || strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || entry.Name() == "fake.go":
			return nil
		case filepath.Dir(path) == filepath.Join("..", "nomadlike", "sim"): // what it invents nobody reads
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool { return p.inspect(files, node) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.literals) < 100 {
		t.Fatalf("only %d ids found: the source is elsewhere", len(p.literals))
	}
	return p
}

var (
	looksLikeID     = regexp.MustCompile(`^[a-z]+(\.[a-z0-9_]+)+$`)
	looksLikePrefix = regexp.MustCompile(`^[a-z]+(\.[a-z0-9_]+)*\.[a-z0-9_]*$`)
	looksLikeFile   = regexp.MustCompile(`\.(hcl|pem|key|json|go|db|snap|sock|log|txt|partial|conf|toml|proto|lock)$`)
)

func (p *program) inspect(files *token.FileSet, node ast.Node) bool {
	switch node := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BasicLit:
		text, err := strconv.Unquote(node.Value)
		if node.Kind != token.STRING || err != nil {
			return true
		}
		if looksLikeID.MatchString(text) && !strings.HasSuffix(text, "_") {
			if _, seen := p.literals[text]; !seen {
				p.literals[text] = files.Position(node.Pos())
			}
		}
	case *ast.BinaryExpr:
		if left, ok := node.X.(*ast.BasicLit); ok && node.Op == token.ADD && left.Kind == token.STRING {
			if text, err := strconv.Unquote(left.Value); err == nil && looksLikePrefix.MatchString(text) &&
				(strings.Count(text, ".") > 1 || strings.HasSuffix(text, "_")) {
				p.prefixes[text] = true
			}
		}
	case *ast.KeyValueExpr: // names of the API's routes have the form of ids
		name, isName := node.Key.(*ast.Ident)
		value, isText := node.Value.(*ast.BasicLit)
		if isName && isText && name.Name == "Name" {
			if text, err := strconv.Unquote(value.Value); err == nil {
				p.other[text] = true
			}
		}
	}
	return true
}

// readCatalogue returns the ids of the English catalogue; that both languages
// have the same is tested in package messages.
func readCatalogue(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	paths, err := filepath.Glob("../internal/messages/en/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("catalogue: %v, %d files", err, len(paths))
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		area := make(map[string]string)
		if err := json.Unmarshal(data, &area); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for id := range area {
			all[id] = path
		}
	}
	return all
}

// TestLogsGetErrorsWhole: an error goes into the log as it is, so that the agent's
// logger can say it in words; as a text it would show the id of its message. So
// would an id that is logged by itself.
func TestLogsGetErrorsWhole(t *testing.T) {
	files := token.NewFileSet()
	lines := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || !logs(call) {
				return true
			}
			lines++
			for _, arg := range call.Args[1:] {
				ast.Inspect(arg, func(node ast.Node) bool {
					switch inner := node.(type) {
					case *ast.CallExpr:
						if of, ok := inner.Fun.(*ast.SelectorExpr); ok {
							if name, ok := of.X.(*ast.Ident); ok && name.Name == "messages" {
								return false // the text itself
							}
						}
						if method, ok := inner.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Error" && len(inner.Args) == 0 {
							t.Errorf("%s: an error is logged as a text: log the error itself", files.Position(inner.Pos()))
						}
					case *ast.BasicLit:
						if text, err := strconv.Unquote(inner.Value); inner.Kind == token.STRING && err == nil && messages.Has(messages.English, text) {
							t.Errorf("%s: the message id %q is logged", files.Position(inner.Pos()), text)
						}
					}
					return true
				})
			}
			return true
		})
		return nil
	})
	if err != nil || lines < 100 {
		t.Fatalf("%d lines of logs, %v", lines, err)
	}
}

// logs reports whether a call is one of a logger.
func logs(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) {
		return false
	}
	var of string
	switch x := method.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	return strings.HasSuffix(strings.ToLower(of), "log") || strings.HasSuffix(strings.ToLower(of), "logger")
}
