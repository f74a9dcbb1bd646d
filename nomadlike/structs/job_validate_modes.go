package structs

import "slices"

// Modes lists the distributed modes in the order in which they are offered.
func Modes() []Mode {
	return []Mode{ModeSingle, ModePyTorch, ModeDeepSpeed, ModeHorovod, ModeMPI, ModeTensorFlow, ModeMindSpore, ModeJAX, ModeNone}
}

// UsesMasterPort reports whether ranks of this mode meet at a port of rank 0.
func (m Mode) UsesMasterPort() bool {
	switch m {
	case ModePyTorch, ModeDeepSpeed, ModeTensorFlow, ModeMindSpore, ModeJAX:
		return true
	}
	return false
}

// rendezvous reports whether the system brings the ranks of this mode together,
// so that names of the mode's environment are its own.
func (m Mode) rendezvous() bool { return m != ModeSingle && m != ModeNone }

func (v *validator) distributed(j *Job) {
	d := j.Distributed
	names := make([]string, 0, len(Modes()))
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	if !v.choice("distributed.mode", string(d.Mode), false, names...) {
		return
	}
	if d.Mode == ModeSingle && j.Nodes > 1 {
		v.add("distributed.mode", "job.single", "job.single.hint", "nodes", j.Nodes)
	}
	if v.belongs("world_size", d.WorldSize != "", d.Mode, ModePyTorch, ModeDeepSpeed) {
		v.choice("distributed.world_size", d.WorldSize, true, WorldSizeNodes, WorldSizeProcs)
	}
	switch {
	case d.Mode == ModeMPI: // a script that calls mpirun itself
		v.choice("distributed.rewrite", d.Rewrite, true, RewriteNone)
	case d.Mode == ModeMindSpore || d.Mode == ModeJAX:
		v.choice("distributed.rewrite", d.Rewrite, true, RewriteProcs, RewriteNone)
	case v.belongs("rewrite", d.Rewrite != "", d.Mode, ModePyTorch, ModeMPI, ModeMindSpore, ModeJAX):
		v.choice("distributed.rewrite", d.Rewrite, true, RewriteLaunch, RewriteTorchrun, RewriteNone)
	}
	if v.belongs("launcher", d.Launcher != "", d.Mode, ModeDeepSpeed) {
		v.choice("distributed.launcher", d.Launcher, true, LauncherNoSSH, LauncherPDSH)
	}
	if v.belongs("procs_per_node", d.ProcsPerNode != 0, d.Mode,
		ModePyTorch, ModeDeepSpeed, ModeHorovod, ModeMPI, ModeMindSpore, ModeJAX) {
		v.integer("distributed.procs_per_node", d.ProcsPerNode, 0, ProcsMax)
	}
	if v.belongs("master_port", d.MasterPort != 0, d.Mode, masterPortModes()...) {
		v.integer("distributed.master_port", d.MasterPort, 0, PortMax)
	}
	if v.belongs("parameter_servers", d.ParameterServers != 0, d.Mode, ModeTensorFlow) {
		v.integer("distributed.parameter_servers", d.ParameterServers, 0, serversMax(j.Nodes))
	}
	v.belongs("chief", d.Chief, d.Mode, ModeTensorFlow)
	v.choice("distributed.emulate", d.Emulate, true, EmulateDLWS)
	if v.belongs("rank_table", d.RankTable != "", d.Mode, ModeMindSpore) {
		v.choice("distributed.rank_table", d.RankTable, true, "v1.0", "v1.2", "group_list", "group_list_short")
	}
}

// serversMax bounds the parameter servers of a gang, and those of one node.
func serversMax(nodes int) int {
	const beside = 16
	return max(0, min(NodesMax-nodes, beside*max(nodes, 1)))
}

func masterPortModes() []Mode {
	var modes []Mode
	for _, m := range Modes() {
		if m.UsesMasterPort() {
			modes = append(modes, m)
		}
	}
	return modes
}

// belongs refuses an option that is set though the mode does not have it.
func (v *validator) belongs(option string, set bool, mode Mode, modes ...Mode) bool {
	if !set || slices.Contains(modes, mode) {
		return true
	}
	of := ""
	for i, m := range modes {
		if i > 0 {
			of += ", "
		}
		of += string(m)
	}
	v.add("distributed."+option, "job.mode_option", "", "option", option, "mode", mode, "modes", of)
	return false
}
