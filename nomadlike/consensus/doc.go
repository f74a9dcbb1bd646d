// Package consensus keeps the replicated log: hashicorp/raft behind a small
// contract, with the wraps that its known defects ask for.
//
// Flow: a server proposes bytes on the leader (Propose); raft stores them on a
// quorum of disks; every server hands them, in log order, to its FSM. Reads ask
// the leader for an index that covers everything acknowledged so far
// (ReadIndex) and wait until their own FSM has applied it (WaitApplied).
//
//	Propose ──▶ raft ──▶ guardedLog ──▶ raft-wal          one fsync for a batch
//	              │  ╲──▶ voteStore ──▶ vote.rec          one record for a vote
//	              │  ╲──▶ gate ──▶ peers                  one RPC in flight
//	              ▼
//	           machine ──▶ FSM.Apply                      WaitApplied wakes here
//
// What the wraps add to raft:
//
//   - a vote (term and candidate) is one checksummed, fsynced record, so that
//     no crash pairs an old candidate with a new term (voteStore);
//   - every log entry carries a CRC-32C that each read verifies, and a watermark
//     tells a torn tail, which was never acknowledged, from a lost one, which
//     was (entryCodec, watermark, guardedLog);
//   - entries for a follower that answers nothing wait for its first answer to a
//     heartbeat, instead of in raft's doubling back-off (gate);
//   - files of the log that raft-wal leaves behind and refuses are repaired before
//     it opens them (repair);
//   - a disk that answers nothing for two seconds, an fsync that fails, a
//     replication or leadership transfer that hangs ends the process, after its
//     transport was cut, so that the other servers elect a leader (guard);
//   - snapshots are files of the same format that operators save and restore,
//     with cluster id and SHA-256 (snapshotStore, InspectSnapshot);
//   - a candidate knows no leader, also where raft still names the one that handed
//     over (Node.leader);
//   - followers learn a commit at once instead of up to 100 ms later (hints).
//
// Identity: the server id is made by EnsureIdentity and lives in the same
// directory as vote and log. A server whose directory is wiped gets a new id with it, and
// so a wiped server can never vote under its old id; a directory is refused
// under any other id or cluster.
//
// Limits: Linux; one process per directory (flock); commands up to
// MaxCommandBytes; no reads by leader lease, each ReadIndex costs a round trip
// to a quorum that all waiting readers share.
package consensus
