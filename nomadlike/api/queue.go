package api

import "context"

// QueueFilter narrows the queue; empty fields match all.
type QueueFilter struct {
	Pool     string // of jobs that name it; structs.PoolDefault: those that name none
	Project  string
	Forecast bool // tell for each when it starts
}

// Queue returns one page of what waits, in order.
func (c *Client) Queue(ctx context.Context, query *Query) (*Queue, *Meta, error) {
	return c.QueueOf(ctx, QueueFilter{}, query)
}

// QueueOf returns one page of a part of the queue, in order. Positions count all
// that waits.
func (c *Client) QueueOf(ctx context.Context, filter QueueFilter, query *Query) (*Queue, *Meta, error) {
	values := query.values()
	for name, value := range map[string]string{"pool": filter.Pool, "project": filter.Project} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if filter.Forecast {
		values.Set("forecast", "true")
	}
	return read(ctx, c, QueueRead, "", values)
}

// Machines lists the machines that a VIP job may choose, of one pool or, with
// "", of all: free ones first, and what runs on the others.
func (c *Client) Machines(ctx context.Context, pool string, query *Query) (*MachineList, *Meta, error) {
	values := query.values()
	if pool != "" {
		values.Set("pool", pool)
	}
	return read(ctx, c, MachinesList, "", values)
}
