package structs

import "strconv"

// AttrProtocol is the attribute with the wire.ProtocolVersion that the agent of a node
// speaks: the node tells it, or the server that registers it. Without it a node may be
// of any age.
const AttrProtocol = "nomadlike.protocol"

// AttrMasks is the attribute with which a driver says that it lets no texts into logs
// that it is told to mask, and takes them anew for a task that it has recovered. What
// a driver without it writes into logs nobody masks, so that it is given no secrets.
func AttrMasks(driver string) string { return "driver." + driver + ".masks" }

// MasksYes is the value of AttrMasks.
const MasksYes = "true"

// The first versions of wire.ProtocolVersion whose agents give tasks their secrets, and
// sign in to the registries of images.
const (
	SecretsProtocol      = 26
	ImageSecretsProtocol = 29
)

// CodeProtocol is the first version of wire.ProtocolVersion whose agents bring the code
// that travels with a job; those of before start its task in an empty directory.
const CodeProtocol = 35

// Speaks is the wire.ProtocolVersion of a node's agent; 0: it is not known.
func (n *Node) Speaks() int {
	version, err := strconv.Atoi(n.Attributes[AttrProtocol])
	if err != nil {
		return 0
	}
	return version
}

// Masks reports whether a driver of the node masks in logs what it is told to.
func (n *Node) Masks(driver string) bool {
	switch driver {
	case DriverExec, DriverDocker:
		return true
	}
	return n.Attributes[AttrMasks(driver)] == MasksYes
}

// SecretsProtocol is the wire.ProtocolVersion that an agent must speak so that it gives
// the task its secrets, 0 for a task without any.
func (t *Task) SecretsProtocol() int {
	needs := 0
	for i := range t.Secrets {
		if needs = max(needs, SecretsProtocol); t.Secrets[i].Image {
			return ImageSecretsProtocol
		}
	}
	return needs
}

// HoldsSecrets reports whether the task itself is given a secret: what only its image
// is pulled with is none.
func (t *Task) HoldsSecrets() bool {
	for i := range t.Secrets {
		if !t.Secrets[i].Image {
			return true
		}
	}
	return false
}
