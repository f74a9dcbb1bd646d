package state

import (
	"nomadlike/nomadlike/structs"
)

// applyPoolPut makes or replaces a pool, and moves nodes into it and out of
// it.
func applyPoolPut(tx *txn, body *structs.PoolPut) (structs.ApplyResult, *structs.Error) {
	pool := body.Pool
	if problem := poolProblem(&pool); problem != "" {
		return refuse(structs.CodeInvalid, "state.pool_malformed", "pool", pool.Name, "field", problem)
	}
	id := "event.pool.changed"
	if known, ok := get[*structs.Pool](tx, tablePools, idKey(pool.Name)); ok {
		pool.CreateIndex = known.CreateIndex
	} else {
		if len(tx.pools()) >= PoolsMax {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "pools", "max", PoolsMax)
		}
		id, pool.CreateIndex = "event.pool.created", tx.index()
	}
	pool.ModifyIndex = tx.index()
	tx.put(tablePools, idKey(pool.Name), &pool)
	tx.touch(touchPool, pool.Name, 0)
	tx.dealNodes()
	tx.reviewAll()
	tx.wakeSchedule()
	tx.tell(structs.Event{Topic: topicPool, ID: id}, "pool", pool.Name, "by", tx.by, "nodes", decimal(tx.poolSize(pool.Name)))
	return accepted()
}

// applyPoolDelete forgets a pool, unless a job that has not ended names it.
// Its nodes go to where other pools and their own configuration put them.
func applyPoolDelete(tx *txn, body *structs.PoolDelete) (structs.ApplyResult, *structs.Error) {
	pool, ok := get[*structs.Pool](tx, tablePools, idKey(body.Name))
	if !ok {
		return refuse(structs.CodeNotFound, "state.pool_unknown", "pool", body.Name)
	}
	if job := tx.anyLive(nil, func(job *structs.Job) bool { return job.Placement.Pool == pool.Name }); job != nil {
		return refuse(structs.CodeConflict, "state.pool_in_use", "pool", pool.Name, "job", job.Name, "project", job.Project)
	}
	tx.remove(tablePools, idKey(pool.Name), pool)
	tx.touch(touchPool, pool.Name, 0)
	tx.dealNodes()
	tx.reviewAll()
	tx.wakeSchedule()
	tx.tell(structs.Event{Topic: topicPool, ID: "event.pool.deleted"}, "pool", pool.Name, "by", tx.by)
	return accepted()
}

// pools lists all pools by name.
func (tx *txn) pools() []*structs.Pool { return listRows[*structs.Pool](tx, tablePools, indexID, nil) }

// dealNodes puts every node into the pool that it belongs to now.
func (tx *txn) dealNodes() {
	pools := tx.pools()
	for _, known := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		if pool := structs.PoolOf(known, pools); pool != known.Pool {
			node := *known
			node.Pool = pool
			node.Maintenance = tx.maintenanceOf(&node)
			tx.putNode(&node)
		}
	}
}

// poolSize counts the nodes of a pool.
func (tx *txn) poolSize(pool string) int {
	size := 0
	for _, node := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		if node.Pool == pool {
			size++
		}
	}
	return size
}
