package importer

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// slurmVariables are the variables of Slurm that have another name here.
var slurmVariables = map[string]string{
	"SLURM_JOB_ID": "NOMADLIKE_JOB_NUMBER", "SLURM_JOBID": "NOMADLIKE_JOB_NUMBER", "SLURM_ARRAY_JOB_ID": "NOMADLIKE_JOB_NUMBER",
	"SLURM_JOB_NAME": "NOMADLIKE_JOB_NAME", "SLURM_JOB_ACCOUNT": "NOMADLIKE_PROJECT",
	"SLURM_NNODES": "NOMADLIKE_NODES", "SLURM_JOB_NUM_NODES": "NOMADLIKE_NODES", "SLURM_STEP_NUM_NODES": "NOMADLIKE_NODES",
	"SLURM_NODEID": "NOMADLIKE_RANK", "SLURM_PROCID": "NOMADLIKE_RANK",
	"SLURM_JOB_NODELIST": "NOMADLIKE_RANK_NAMES", "SLURM_NODELIST": "NOMADLIKE_RANK_NAMES", "SLURM_STEP_NODELIST": "NOMADLIKE_RANK_NAMES",
	"SLURMD_NODENAME": "NOMADLIKE_NODE_NAME", "SLURM_RESTART_COUNT": "NOMADLIKE_RESTARTS", "SLURM_TMPDIR": "NOMADLIKE_LOCAL_DIR",
	"SLURM_ARRAY_TASK_COUNT": "NOMADLIKE_SUBJOB_COUNT", "SLURM_JOB_USER": "USER", "SLURM_SUBMIT_DIR": "NOMADLIKE_CODE_DIR",
}

// slurmUses finds variables of Slurm; the first part is what stands in front of
// their names.
var slurmUses = regexp.MustCompile(`(\\?\$\{?[!#]?)?\b(SLURMD?_[A-Z0-9_]+)\b`)

// values are the variables that the script itself can work out; they are set in
// front of it and not exported, so that no program takes this for Slurm.
func (b *slurmBody) values() map[string]string {
	a := &b.ask
	values := map[string]string{
		"SLURM_NTASKS": number(a.nodes * a.tasks), "SLURM_NPROCS": number(a.nodes * a.tasks), "SLURM_STEP_NUM_TASKS": number(a.nodes * a.tasks),
		"SLURM_NTASKS_PER_NODE": number(a.tasks), "SLURM_TASKS_PER_NODE": number(a.tasks), "SLURM_STEP_TASKS_PER_NODE": number(a.tasks),
		"SLURM_CPUS_PER_TASK": number(a.cpus), "SLURM_CPUS_ON_NODE": number(a.cpu), "SLURM_JOB_CPUS_PER_NODE": number(a.cpu),
		"SLURM_GPUS_ON_NODE": number(a.cards.count), "SLURM_GPUS_PER_NODE": number(a.cards.count), "SLURM_GPUS": number(a.cards.count * a.nodes),
		"SLURM_MEM_PER_NODE": number(int(a.memory >> 20)), "SLURM_LOCALID": "0",
	}
	if given, ok := b.given["partition"]; ok {
		values["SLURM_JOB_PARTITION"] = quoteShell(given.value)
	}
	if a.dir != "" {
		values["SLURM_SUBMIT_DIR"] = quoteShell(a.dir)
	}
	if x := a.array; x != nil {
		values["SLURM_ARRAY_TASK_MIN"], values["SLURM_ARRAY_TASK_MAX"] = number(x.IDs[0]), number(x.IDs[len(x.IDs)-1])
		values["SLURM_ARRAY_TASK_STEP"] = number(max(apart(x.IDs), 1))
	}
	return values
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// variables replaces the names of Slurm's variables in the script by those of here.
func (b *slurmBody) variables() {
	text := b.script.text
	values := b.values()
	sets := make(map[string]bool) // by the script itself
	if b.script.file != nil {
		for _, at := range assigns(b.script.file) {
			sets[at.Name.Value] = true
		}
	}
	if b.ask.dir == "" && (b.given["container-workdir"].name != "") {
		values["SLURM_SUBMIT_DIR"] = "$PWD"
	}
	var own []string
	for _, at := range slurmUses.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[4]:at[5]]
		line := 1 + strings.Count(text[:at[4]], "\n")
		if trimmed := strings.TrimSpace(b.lineOf(line)); strings.HasPrefix(trimmed, "#") || sets[name] || name == "SLURM_ARRAY_TASK_ID" && b.ask.array != nil {
			continue
		}
		from := origin{line, "$" + name}
		value, worked := values[name]
		ours, named := slurmVariables[name]
		if (name == "SLURM_PROCID" || name == "SLURM_LOCALID") && b.ask.tasks > 1 {
			b.say(check, from, "import.slurm.variable_rank")
		}
		switch {
		case at[2] < 0 && !counted(text[:at[4]]):
			b.say(check, origin{line, name}, "import.slurm.variable_inside")
		case worked && shells[b.script.program]:
			if !slices.Contains(own, name) {
				own = append(own, name)
				b.script.preamble = append(b.script.preamble, name+"="+value)
				b.say(changed, from, "import.slurm.variable_value", "value", value)
			}
		case named:
			b.script.replace(at[4], at[5], ours)
			b.say(changed, from, "import.slurm.variable_name", "name", "$"+ours)
		default:
			b.say(check, from, "import.slurm.variable_unset")
		}
	}
}

// assigns lists the assignments of a script.
func assigns(file *syntax.File) []*syntax.Assign {
	var all []*syntax.Assign
	syntax.Walk(file, func(node syntax.Node) bool {
		if at, ok := node.(*syntax.Assign); ok && at.Name != nil {
			all = append(all, at)
		}
		return true
	})
	return all
}

// counted reports whether a name behind this text stands in arithmetic, where
// variables need no sign.
func counted(before string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return strings.LastIndex(line, "((") > strings.LastIndex(line, "))")
}
