package prepare

import (
	"io"
	"maps"
	"os"
	"strings"

	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

// envFileMax bounds a file of variables.
const envFileMax = 64 << 10 // bytes

// ReadEnvFile reads the variables that every task of a node has, as CANN's
// set_env.sh sets them: lines [export ]NAME=value, whose values may name variables
// of base and of earlier lines; comments and empty lines. Whatever else a shell
// would do is an error.
func ReadEnvFile(path string, base map[string]string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, envFileMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > envFileMax:
		return nil, structs.NewError(structs.CodeInvalid, "client.env_file_size", "max", envFileMax)
	}
	return parseEnvFile(string(data), base)
}

func parseEnvFile(text string, base map[string]string) (map[string]string, error) {
	values := make(map[string]string)
	known := func(name string) (string, bool) {
		if value, ok := values[name]; ok {
			return value, true
		}
		return base[name], true // nothing, where a shell has nothing
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		name, value, ok := strings.Cut(line, "=")
		value, literal, fine := unquoted(value)
		if !ok || !fine || !variableName(name) {
			return nil, structs.NewError(structs.CodeInvalid, "client.env_file_line", "line", i+1)
		}
		if !literal && structs.NamesVariables(value) {
			expanded, _ := structs.ExpandEnv(map[string]string{name: value}, known)
			// An empty place in a list of directories would be the working directory.
			value = strings.Trim(expanded[name], ":")
		}
		values[name] = value
	}
	return values, nil
}

// unquoted takes the quotes of a shell off a value; literal: in single ones
// nothing is replaced. A value that a shell would read on from, or run, is not fine.
func unquoted(value string) (text string, literal, fine bool) {
	if len(value) >= 2 && (value[0] == '\'' || value[0] == '"') && value[len(value)-1] == value[0] {
		inner := value[1 : len(value)-1]
		return inner, value[0] == '\'', !strings.ContainsAny(inner, string(value[0])+"`") && !strings.Contains(inner, "$(")
	}
	return value, false, !strings.ContainsAny(value, " \t'\"`;&|<>()\\") && !strings.Contains(value, ":+")
}

func variableName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// nodeEnv puts the variables of the node's file under everything that a task sets.
// Containers have their image's own.
func (r *Preparer) nodeEnv(node *launch.NodeFacts) error {
	if r.EnvFile == "" || node.Image {
		return nil
	}
	values, err := ReadEnvFile(r.EnvFile, node.Base)
	if err != nil {
		return err
	}
	base := maps.Clone(node.Base)
	if base == nil {
		base = make(map[string]string, len(values))
	}
	maps.Copy(base, values)
	node.Base = base
	return nil
}
