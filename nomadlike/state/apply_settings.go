package state

import "nomadlike/nomadlike/structs"

func (tx *txn) settings() *structs.Settings {
	settings, _ := get[*structs.Settings](tx, tableSettings, metaKey())
	return settings
}

// applySettingsPut replaces what is set for the whole cluster. Jobs that were admitted
// go on as they were; what others may do with them is another thing at once.
func applySettingsPut(tx *txn, body *structs.SettingsPut) (structs.ApplyResult, *structs.Error) {
	next := body.Settings
	if problems := next.Validate(); len(problems) > 0 {
		return refuse(structs.CodeInvalid, "state.settings_malformed", "field", problems[0].Path)
	}
	var known structs.Settings
	if before := tx.settings(); before != nil {
		known = *before
	}
	next.SharingBy, next.SharingAt, next.CeilingsBy, next.CeilingsAt = known.SharingBy, known.SharingAt, known.CeilingsBy, known.CeilingsAt
	sharing, ceilings := next.NoSharing != known.NoSharing, next.Ceilings != known.Ceilings
	if sharing {
		next.SharingBy, next.SharingAt = tx.by, tx.now
		id := "event.cluster.sharing_on"
		if next.NoSharing {
			id = "event.cluster.sharing_off"
		}
		tx.tell(structs.Event{Topic: topicCluster, ID: id}, "by", tx.by)
	}
	if ceilings {
		next.CeilingsBy, next.CeilingsAt = tx.by, tx.now
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.ceilings"}, "by", tx.by)
	}
	if next.ServiceTokenTTL != known.ServiceTokenTTL {
		most := structs.FormatDuration(structs.Duration(next.ServiceTokenMax()))
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.service_token_ttl"}, "max", most, "by", tx.by)
	} else if !sharing && !ceilings {
		return accepted()
	}
	next.ModifyIndex = tx.index()
	tx.put(tableSettings, metaKey(), &next)
	return accepted()
}
