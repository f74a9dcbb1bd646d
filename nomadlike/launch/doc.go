// Package launch says what runs on a node for one rank of an attempt: the
// final command, environment, files, host name and hosts lines. All
// distributed modes live here.
//
// Flow: client/alloc has an allocation with its job and its peers, adds what
// it knows of its own node (NodeFacts), calls Build, writes the files, and
// hands the rest to a driver. Admission calls Check, so that a command that
// cannot be launched is refused before it queues. The agent's hidden command
// mpi-rsh reads its arguments with ParseRemoteShell.
//
// The modes:
//
//	none, single  the command runs on every node, as typed
//	pytorch       as typed, or `python X` put under torch.distributed; PET_*,
//	              MASTER_*, RANK and WORLD_SIZE on every node; with min_nodes
//	              torchrun's own range and its store on rank 0
//	mpi           rank 0 runs the command; the other ranks hold their place,
//	              and mpirun reaches them through the agents: a file in the
//	              task directory is its remote shell, so no sshd and no keys
//	              are needed. Variables of Open MPI 4 and 5, MPICH and Intel
//	              MPI are all set at once; they do not disturb each other.
//
//	horovod       mpi with the prefix and the host file paths that its users know
//	deepspeed     as pytorch, with the host file; deepspeed starts each node by
//	              itself, or pdsh reaches them through the agents
//	tensorflow    as typed on every node, with TF_CONFIG (AllReduce, or a chief);
//	              parameter servers are ranks after those of the nodes
//	mindspore     as typed on every node, with msrun's variables and the rank table
//	jax           as typed on every node, with the coordinator's address
//
// What launch sets wins over the user's environment, and a note says so.
// $NAME and ${NAME} in a command are replaced by that environment, as a shell
// would; names that it does not hold stay as typed and are noted.
//
// What all ranks of a gang are told alike (hosts, rank table, host files, the
// cluster of TF_CONFIG) is worked out once for a Gang, and is the same bytes for all.
//
// Limits: nothing here touches disk, network, clock or chance.
package launch
