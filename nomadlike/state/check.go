package state

import (
	"math"
	"slices"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Everything here guards the tables against bodies that are well-formed and
// yet make no sense. Admission has told the user about such things long
// before; a refusal here means that somebody bypassed it.

// validKey reports whether text may be part of a key: ids and names, which hold
// no zero byte and have a bounded length.
func validKey(text string) bool {
	if text == "" || len(text) > idLengthMax {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] < '!' || text[i] > '~' {
			return false
		}
	}
	return true
}

// validText bounds free text that becomes part of a row.
func validText(text string) bool { return len(text) <= keyLengthMax }

// jobProblem reports what keeps a job out of the tables, "" for nothing.
func jobProblem(job *structs.Job) string {
	switch {
	case job == nil:
		return "job"
	case !validKey(job.ID):
		return "id"
	case !validKey(job.Name):
		return "name"
	case !validKey(job.Project):
		return "project"
	case !validText(job.User):
		return "user"
	case !validText(job.IdempotencyKey):
		return "idempotency_key"
	case job.Nodes < 1 || job.Nodes > structs.NodesMax:
		return "nodes"
	case job.Batch != nil && (job.Batch.Count < 0 || job.Batch.Parallel < 0), job.Sweep != nil && (job.Sweep.Parallel < 0 || job.Sweep.MaxTrials < 0), job.SubjobCount() < 1, job.SubjobCount() > structs.BatchCountMax:
		return "batch"
	case len(job.Resources) == 0:
		return "resources"
	}
	for _, spec := range job.Resources {
		if badCores(spec.CPU) || spec.Memory < 0 {
			return "resources"
		}
	}
	return ""
}

// annotationProblem reports what keeps tags and a note out of the tables, "" for
// nothing. Which characters they may have is checked before the log: what a letter is
// changes with the tables of Unicode, and replicas may not differ.
func annotationProblem(body *structs.JobAnnotate) string {
	for _, tag := range body.Add {
		if tag == "" || len(tag) > structs.TagLengthMax*utf8.UTFMax || !utf8.ValidString(tag) {
			return "tags"
		}
	}
	if len(body.Add) > structs.TagsMax || len(body.Remove) > structs.TagsMax {
		return "tags"
	}
	if body.Note != nil && (len(*body.Note) > structs.NoteMax*utf8.UTFMax || !utf8.ValidString(*body.Note)) {
		return "note"
	}
	return ""
}

func badCores(cores float64) bool { return !(cores >= 0 && cores <= coresMax) }

// nodeProblem reports what keeps a node out of the tables, "" for nothing.
func nodeProblem(node *structs.Node) string {
	capacity := node.Capacity
	switch {
	case !validKey(node.ID):
		return "id"
	case !validKey(node.Name):
		return "name"
	case badCores(capacity.CPU):
		return "capacity.cpu"
	case capacity.Memory < 0:
		return "capacity.memory"
	case capacity.PortMin < 0 || capacity.PortMax > 65535 || capacity.PortMin > capacity.PortMax:
		return "capacity.ports"
	case len(node.Devices) > NodeDevicesMax:
		return "devices"
	case !validFaults(node.Faults):
		return "faults"
	}
	seen := make(map[string]bool, len(node.Devices))
	for _, device := range node.Devices {
		if !validKey(device.ID) || seen[device.ID] {
			return "devices"
		}
		seen[device.ID] = true
	}
	return ""
}

// validFaults reports whether faults have names, each once, and reasons.
func validFaults(faults []structs.NodeFault) bool {
	seen := make(map[string]bool, len(faults))
	for i := range faults {
		if f := &faults[i]; !validKey(f.Name) || seen[f.Name] || f.Reason == nil {
			return false
		}
		seen[faults[i].Name] = true
	}
	return len(faults) <= structs.NodeFaultsMax
}

// poolProblem reports what keeps a pool out of the tables, "" for nothing.
func poolProblem(pool *structs.Pool) string {
	switch {
	case !validKey(pool.Name):
		return "name"
	case len(pool.Description) > descriptionLengthMax:
		return "description"
	case len(pool.Nodes) > structs.PoolNodesMax || slices.ContainsFunc(pool.Nodes, func(name string) bool { return !validText(name) }):
		return "nodes"
	case len(pool.Constraints) > structs.PoolConstraintsMax:
		return "constraints"
	case badWeight(pool.AgeWeight):
		return "age_weight"
	case pool.HalfLife < 0:
		return "half_life"
	case pool.Order != "" && pool.Order != structs.OrderSubmission && pool.Order != structs.OrderFair:
		return "order"
	}
	for attribute, values := range pool.Constraints { // the answer is the same for all
		if attribute == "" || !validText(attribute) || len(values) > descriptionLengthMax {
			return "constraints"
		}
	}
	return ""
}

// projectProblem reports what keeps a project out of the tables, "" for nothing.
func projectProblem(project *structs.Project) string {
	switch {
	case !validKey(project.Name):
		return "name"
	case len(project.Description) > descriptionLengthMax:
		return "description"
	case len(project.Members)+len(project.Admins)+len(project.Viewers) > structs.ProjectMembersMax:
		return "members"
	case len(project.Granted) > structs.ProjectMembersMax:
		return "granted"
	case slices.ContainsFunc(slices.Concat(project.Members, project.Admins, project.Viewers), func(name string) bool { return !validText(name) }):
		return "members"
	case badWeight(project.Weight):
		return "weight"
	case len(project.Quotas) > structs.ProjectQuotasMax || slices.ContainsFunc(project.Quotas, badQuota):
		return "quotas"
	case project.UrgentLimit != nil && *project.UrgentLimit < 0:
		return "urgent_limit"
	}
	return ""
}

// userProblem reports what keeps an account out of the tables, "" for nothing.
func userProblem(user *structs.User) string {
	switch {
	case !validKey(user.Name):
		return "name"
	case !validText(user.DisplayName):
		return "display_name"
	case !validText(user.Email):
		return "email"
	case len(user.SSHKeys) > structs.SSHKeysMax || slices.ContainsFunc(user.SSHKeys, func(key string) bool { return len(key) > structs.SSHKeyLengthMax }):
		return "ssh_keys"
	case user.Role != "" && user.Role != structs.RoleOperator && user.Role != structs.RoleAdmin:
		return "role"
	case user.Project != "" && !validKey(user.Project):
		return "project"
	}
	return ""
}

func badQuota(quota structs.Quota) bool {
	return quota.Kind == "" || !validText(quota.Kind) || !validText(quota.Model) || quota.Guaranteed < 0 ||
		quota.Guaranteed > quotaMax || quota.Maximum != nil && (*quota.Maximum < 0 || *quota.Maximum > quotaMax)
}

func badWeight(weight float64) bool {
	return math.IsNaN(weight) || math.IsInf(weight, 0) || weight < 0
}

// refuse is short for a refusal in the words of the catalogue.
func refuse(code structs.ErrorCode, id string, params ...any) (structs.ApplyResult, *structs.Error) {
	return structs.ApplyResult{}, structs.NewError(code, id, params...)
}

// accepted is the empty result of a command that was taken.
func accepted() (structs.ApplyResult, *structs.Error) { return structs.ApplyResult{}, nil }
