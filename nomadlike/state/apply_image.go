package state

import (
	"strconv"

	"nomadlike/nomadlike/structs"
)

// applyImagePut declares an image, or takes that back.
func applyImagePut(tx *txn, body *structs.ImagePut) (structs.ApplyResult, *structs.Error) {
	image := body.Image
	key := idKey(image.Name)
	known, there := get[*structs.ImageRecord](tx, tableImages, key)
	if body.Forget {
		if !there {
			return refuse(structs.CodeNotFound, "state.image_unknown", "image", image.Name)
		}
		tx.remove(tableImages, key, known)
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.image_unset"}, "image", image.Name, "by", tx.by)
		return accepted()
	}
	if problems := image.Validate(); len(problems) > 0 {
		return refuse(structs.CodeInvalid, "state.image_malformed", "image", image.Name, "field", problems[0].Path)
	}
	if !there && len(listRows[*structs.ImageRecord](tx, tableImages, indexID, nil)) >= structs.ImageRecordsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "images", "max", structs.ImageRecordsMax)
	}
	image.SetAt, image.SetBy, image.ModifyIndex = tx.now, tx.by, tx.index()
	tx.put(tableImages, key, &image)
	tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.image_set"}, "image", image.Name, "by", tx.by)
	return accepted()
}

// applyImageTold keeps what somebody has done with an image.
func applyImageTold(tx *txn, body *structs.ImageTold) (structs.ApplyResult, *structs.Error) {
	node, ok := tx.node(body.NodeID)
	switch {
	case !ok:
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	case len(body.Image) > structs.ImageNameMax, len(body.To) > structs.ImageNameMax:
		return refuse(structs.CodeInvalid, "state.malformed")
	}
	params := []string{"node", node.Name, "image", body.Image, "to", body.To, "by", tx.by}
	switch body.Act {
	case structs.ImagePull, structs.ImageRemove, structs.ImageTag, structs.ImagePush:
		if body.JobID == "" {
			tx.tell(nodeEvent("event.node.image_"+string(body.Act), node), params...)
			return accepted()
		}
	case structs.ImageSave:
	default:
		return refuse(structs.CodeInvalid, "state.malformed")
	}
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	tx.tell(jobEvent("event.job.image_"+string(body.Act), job, nil), append(params, "bytes", strconv.FormatInt(body.Bytes, 10))...)
	return accepted()
}
