// Package metrics finds the figures of a training in what it writes: in lines
// of its logs, and in event files of TensorBoard.
//
// Flow: a Collector belongs to one allocation. ReadLogs and ReadEvents take what
// is new since they were called last, Save puts everything into one small file,
// from which Open goes on after a restart of the agent. Scan and the reader of
// event files are pure: bytes in, observations out.
//
// Limits: a series keeps at most PointsMax observations and a Collector at most
// SeriesMax series, so one allocation costs a megabyte and a half at most; a
// line counts up to LineMax bytes. What is written faster than it is read, and
// rotated away, is missed. Times in the logs are those of the reading. Of event
// files only scalars are taken.
package metrics
