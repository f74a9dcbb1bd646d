package structs

import "strings"

// secrets checks what secrets a task names: that they have names of secrets, and that
// no variable is set twice or has a meaning of its own in this job.
func (v *validator) secrets(t *Task) {
	if len(t.Secrets) > SecretUsesMax {
		v.add("task.secrets", "job.too_many", "", "what", "secret", "count", len(t.Secrets), "max", SecretUsesMax)
		return
	}
	seen := make(map[SecretUse]bool, len(t.Secrets))
	for _, use := range t.Secrets {
		path := use.Path()
		if use.Name == Hidden {
			v.add(path, "job.hidden_secret", "job.hidden_secret.hint", "name", printable(use.Var))
			continue
		}
		if id := SecretNameProblem(use.Name); id != "" {
			v.add(path, id, "", "name", printable(use.Name), "max", SecretNameMax)
			continue
		}
		key := SecretUse{Name: use.Name}
		switch {
		case use.Image:
			key = SecretUse{Image: true}
		case use.Var != "":
			key = SecretUse{Var: use.Var}
		}
		switch {
		case use.Image && (use.Var != "" || t.Driver != DriverDocker || t.Image == ""):
			v.add(path, "job.image_credentials_unused", "job.image_credentials_unused.hint")
		case seen[key]:
			v.add(path, "job.duplicate", "", "value", use.Name)
		case use.Var == "":
		case len(use.Var) > WordMax || nameEnd(use.Var) != len(use.Var):
			v.add(path, "job.env_name", "", "name", printable(use.Var))
		case v.mode.Reserves(use.Var) || strings.HasPrefix(use.Var, "NOMADLIKE_"):
			v.add(path, "job.env_reserved", reservedHint(use.Var), "name", use.Var, "mode", v.mode)
		}
		if _, twice := t.Env[use.Var]; twice && use.Var != "" {
			v.add(path, "job.duplicate", "", "value", use.Var)
		}
		seen[key] = true
	}
}

// Path is where the job file names the secret.
func (u SecretUse) Path() string {
	switch {
	case u.Image:
		return "task.image_credentials"
	case u.Var != "":
		return KeyedPath("task.env", u.Var)
	}
	return "task.secrets"
}
