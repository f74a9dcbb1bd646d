package structs

// DataLook asks a node whether the data of a job is in its storages.
type DataLook struct {
	Job *Job `json:"job"`
}

// DataSeen is what a node found of a job's data. Data on servers is not looked for.
type DataSeen struct {
	Lacks   []DataLack `json:"lacks,omitempty"`
	Kept    []DataKept `json:"kept,omitempty"`    // outputs in which something lies already
	Unknown bool       `json:"unknown,omitempty"` // a storage did not answer, or is not the node's
}

// DataLack is something that a job reads and a storage does not have.
type DataLack struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"` // as the job has it
	Storage string `json:"storage"`
	Path    string `json:"path"` // of the node
	Cause   Reason `json:"cause"`
}

// DataKept is an output in which something lies before the job begins.
type DataKept struct {
	Name    string `json:"name"` // as the job has it
	Storage string `json:"storage"`
	Path    string `json:"path"` // of the node
}
