// Package importer makes job files of the files of other systems: batch scripts
// of Slurm, manifests of Kubernetes, and others. Each source is one file here.
//
// Flow: Import looks at the text (encoding, line ends, which system it is of),
// the source's reader fills a draft with arguments, each of which remembers the
// line that it came from, and with notes on what changed and what could not be
// kept; the draft is printed as HCL with comments, in the reader's language, and
// parsed by package jobspec before anybody gets it. What that refuses is told at
// the line of the source.
//
// Nothing of a source is dropped in silence: each directive or field is an
// argument, or a note, or both.
//
// Limits: pure; sources are bounded as job files are. A file says what its author
// asked of another cluster: whether this one has such pools, projects, nodes and
// images, its user knows.
package importer
