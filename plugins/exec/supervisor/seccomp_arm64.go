package supervisor

const archNumber = 0xc00000b7 // AUDIT_ARCH_AARCH64

// archRefused are calls with numbers of this architecture.
func archRefused() []int {
	const (
		openByHandle, setNS, finitModule, kexecFileLoad, bpf, userfaultfd = 265, 268, 273, 294, 280, 282
	)
	return []int{openByHandle, setNS, finitModule, kexecFileLoad, bpf, userfaultfd}
}
