// Package history writes rows of the cluster's history as columns, reads them back
// column by column, and sums them up for reports.
//
// Flow: Encode makes a segment of rows: a header that says what is in it and where, and
// each column of it apart, packed, with a checksum of its own. A Segment reads the header
// and then only the columns that somebody asks for. A Tally takes rows and columns alike
// and answers how much of what was held by whom, or how long whoever waited.
//
// Limits: it knows no files and no servers, see store below it, and no clock.
package history
