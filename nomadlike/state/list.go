package state

import (
	"encoding/base64"

	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// Page asks for a part of a list: what comes after a cursor, at most Limit
// items. The zero page is the whole list.
type Page struct {
	After string // Next of the page before; "" for the first
	Limit int    // 0: no limit
}

// ListJobs returns a page of the jobs that keep wants, newest first, and the
// cursor of the following page, "" on the last. A nil keep wants all.
func (s *Snapshot) ListJobs(page Page, keep func(JobView) bool) ([]JobView, string, *structs.Error) {
	wanted := func(r *jobStatusRow) bool { return keep == nil || keep(s.viewOf(r)) }
	rows, next, err := list(s.db, listing[*jobStatusRow]{
		table: tableJobStatuses, index: indexID, reverse: true, keep: wanted,
		key: func(r *jobStatusRow) []byte { return indexKey(r.Status.CreateIndex) },
	}, page)
	views := make([]JobView, len(rows))
	for i, row := range rows {
		views[i] = s.viewOf(row)
	}
	return views, next, err
}

// ListSubjobs returns a page of the subjobs of a job by index.
func (s *Snapshot) ListSubjobs(jobID string, page Page) ([]*structs.Subjob, string, *structs.Error) {
	rows, next, err := list(s.db, listing[*subjobRow]{
		table: tableSubjobs, index: indexID, prefix: idKey(jobID),
		key: func(r *subjobRow) []byte { return subjobKey(r.Subjob.JobID, r.Subjob.Index) },
	}, page)
	subjobs := make([]*structs.Subjob, len(rows))
	for i, row := range rows {
		subjobs[i] = row.Subjob
	}
	return subjobs, next, err
}

// ListQueue returns a page of the queued subjobs that keep wants, in the order
// of the queue. A nil keep wants all.
func (s *Snapshot) ListQueue(page Page, keep func(*structs.Subjob) bool) ([]*structs.Subjob, string, *structs.Error) {
	rows, next, err := list(s.db, listing[*subjobRow]{
		table: tableSubjobs, index: indexQueue,
		keep: func(r *subjobRow) bool { return keep == nil || keep(r.Subjob) },
		key:  (*subjobRow).queueKey,
	}, page)
	subjobs := make([]*structs.Subjob, len(rows))
	for i, row := range rows {
		subjobs[i] = row.Subjob
	}
	return subjobs, next, err
}

// ListNodes returns a page of the nodes that keep wants, by name. A nil keep
// wants all.
func (s *Snapshot) ListNodes(page Page, keep func(*structs.Node) bool) ([]*structs.Node, string, *structs.Error) {
	return list(s.db, listing[*structs.Node]{
		table: tableNodes, index: indexName, keep: keep,
		key: func(n *structs.Node) []byte { return nameKey(n.Name, n.ID) },
	}, page)
}

// ListTokens returns a page of the tokens by id.
func (s *Snapshot) ListTokens(page Page) ([]*structs.Token, string, *structs.Error) {
	return list(s.db, listing[*structs.Token]{
		table: tableTokens, index: indexID,
		key: func(t *structs.Token) []byte { return idKey(t.ID) },
	}, page)
}

// listing says how to walk a table.
type listing[T any] struct {
	table, index string
	prefix       []byte
	reverse      bool
	keep         func(T) bool // nil: all
	key          func(T) []byte
}

// list walks a table from the cursor of a page on.
func list[T any](db *memdb.Txn, l listing[T], page Page) ([]T, string, *structs.Error) {
	after, err := base64.RawURLEncoding.DecodeString(page.After)
	if err != nil {
		return nil, "", structs.NewError(structs.CodeInvalid, "state.bad_cursor")
	}
	iterator, err := l.open(db, after)
	if err != nil {
		panic("read state table " + l.table + ": " + err.Error())
	}
	var rows []T
	for row := iterator.Next(); row != nil; row = iterator.Next() {
		typed := row.(T)
		key := l.key(typed)
		if len(key) < len(l.prefix) || string(key[:len(l.prefix)]) != string(l.prefix) {
			break
		}
		if page.After != "" && string(key) == string(after) || l.keep != nil && !l.keep(typed) {
			continue
		}
		if page.Limit > 0 && len(rows) == page.Limit {
			return rows, base64.RawURLEncoding.EncodeToString(l.key(rows[len(rows)-1])), nil
		}
		rows = append(rows, typed)
	}
	return rows, "", nil
}

// open begins the walk at a cursor, or at the begin of the listing.
func (l listing[T]) open(db *memdb.Txn, after []byte) (memdb.ResultIterator, error) {
	switch {
	case len(after) == 0 && l.reverse:
		return db.GetReverse(l.table, l.index+"_prefix", l.prefix)
	case len(after) == 0:
		return db.Get(l.table, l.index+"_prefix", l.prefix)
	case l.reverse:
		return db.ReverseLowerBound(l.table, l.index, after)
	default:
		return db.LowerBound(l.table, l.index, after)
	}
}
