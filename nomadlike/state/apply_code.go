package state

import "nomadlike/nomadlike/structs"

// applyCodePut records code that the servers have, or that somebody would have sent
// again.
func applyCodePut(tx *txn, body *structs.CodePut) (structs.ApplyResult, *structs.Error) {
	tree := body.Tree
	if problem := codeProblem(&tree); problem != "" {
		return refuse(structs.CodeInvalid, "state.code_malformed", "field", problem)
	}
	if project := tx.project(tree.Project); project != nil && project.Archived {
		return refuse(structs.CodeConflict, "state.project_archived", "project", project.Name, "by", project.ArchivedBy)
	}
	if body.Since != tx.codeSince(tree.Project) {
		return refuse(structs.CodeConflict, "state.code_project_gone", "project", tree.Project)
	}
	key := nameKey(tree.Project, tree.Digest)
	known, there := get[*structs.CodeTree](tx, tableCode, key)
	if there {
		tree = *known
	} else {
		if refusal := tx.roomForCode(tree.Project); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
		tree.MadeAt, tree.MadeBy = tx.now, tx.by
	}
	tree.SentAt, tree.ModifyIndex = max(tree.SentAt, tx.now), tx.index()
	tx.put(tableCode, key, &tree)
	return accepted()
}

// roomForCode refuses what would be one record too many.
func (tx *txn) roomForCode(project string) *structs.Error {
	if len(listRows[*structs.CodeTree](tx, tableCode, indexID, idKey(project))) >= structs.CodeTreesPerProject {
		return structs.NewError(structs.CodeTooLarge, "state.code_full", "max", structs.CodeTreesPerProject, "scope", project)
	}
	if len(listRows[*structs.CodeTree](tx, tableCode, indexID, nil)) >= structs.CodeTreesMax {
		return structs.NewError(structs.CodeTooLarge, "state.code_full", "max", structs.CodeTreesMax, "scope", "cluster")
	}
	return nil
}

// applyCodeForget removes records, but for those that are needed by now.
func applyCodeForget(tx *txn, body *structs.CodeForget) (structs.ApplyResult, *structs.Error) {
	if len(body.Trees) > structs.CodeForgetMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "trees", "max", structs.CodeForgetMax)
	}
	for _, ref := range body.Trees {
		key := nameKey(ref.Project, ref.Digest)
		known, there := get[*structs.CodeTree](tx, tableCode, key)
		if !there || known.SentAt.Add(structs.CodeGrace.Std()) > tx.now || tx.jobOfCode(ref) {
			continue
		}
		tx.remove(tableCode, key, known)
	}
	return accepted()
}

// removeCodeOf removes the records of a project that goes.
func (tx *txn) removeCodeOf(project string) {
	for _, tree := range listRows[*structs.CodeTree](tx, tableCode, indexID, idKey(project)) {
		tx.remove(tableCode, nameKey(tree.Project, tree.Digest), tree)
	}
}

// jobOfCode reports whether a job names code.
func (tx *txn) jobOfCode(ref structs.CodeRef) bool {
	_, found := lookup[*jobRow](tx, tableJobs, indexTree+"_prefix", nameKey(ref.Project, ref.Digest))
	return found
}

// codeProblem refuses a job whose code is not there, or not any more.
func (tx *txn) codeProblem(job *structs.Job) *structs.Error {
	if job.Tree() == "" {
		return nil
	}
	if _, there := get[*structs.CodeTree](tx, tableCode, nameKey(job.Project, job.Tree())); !there {
		return structs.NewError(structs.CodeConflict, "state.code_unknown", "tree", job.Tree(), "project", job.Project)
	}
	return nil
}

// codeProblem reports what keeps a record out of the tables, "" for nothing.
func codeProblem(tree *structs.CodeTree) string {
	switch {
	case !validKey(tree.Project):
		return "project"
	case !structs.IsTreeDigest(tree.Digest):
		return "digest"
	case tree.Files < 0 || tree.Bytes < 0:
		return "bytes"
	}
	return ""
}
