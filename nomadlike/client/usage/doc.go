// Package usage measures a node, its devices and its tasks, and keeps what it measured.
//
// Flow: Figures measures when somebody asks; KeepDiary and KeepRanks write down what
// the machine and its ranks use, Measure takes training metrics out of logs and event
// files; Past, RankPast and Metrics answer from what is kept.
//
// Limits: the last day of a machine; of a rank as long as its directory is kept.
package usage
