package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// Available is what a job could get now: the nodes on which a rank of it could
// stand if they held nothing, and the models of accelerators with how many
// everybody waits for.
type Available struct {
	Nodes  []AvailableNode `json:"nodes"` // by name
	Specs  []AvailableSpec `json:"specs"` // of the job, in their order
	Models []DeviceDemand  `json:"models"`
}

// The states of an available node. UI words: 空闲 紧张.
const (
	NodeIdle  = "idle"  // what one of the specs asks for is free now
	NodeTight = "tight" // of each spec something is not free now
)

// AvailableNode is one node of the table of available resources.
type AvailableNode struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Pool       string             `json:"pool"`
	State      string             `json:"state"` // idle | tight
	Status     structs.NodeStatus `json:"status"`
	OS         string             `json:"os,omitempty"`
	Kernel     string             `json:"kernel,omitempty"`
	Drivers    []string           `json:"driver_versions,omitempty"` // of its devices, each once
	CPU        float64            `json:"cpu"`                       // cores
	CPUUsed    float64            `json:"cpu_used"`
	Memory     int64              `json:"memory"` // bytes
	MemoryUsed int64              `json:"memory_used"`
	Devices    []DeviceShare      `json:"devices,omitempty"`
	Specs      []int              `json:"specs"` // which of the specs could stand here, as indexes
	Now        []int              `json:"now"`   // which of them have room now
	Cards      []CardUse          `json:"cards,omitempty"`
}

// CardUse is one device of a node, or a slice of one. Text is how people read
// it: 3:digits for a whole card, 1(2):digits for the second slice of card 1.
// A job that the caller may not read has no name.
type CardUse struct {
	Device  string `json:"device"` // id
	Index   int    `json:"index"`  // number of the physical card
	Slice   int    `json:"slice,omitempty"`
	Healthy bool   `json:"healthy"`
	Used    bool   `json:"used"`
	Job     string `json:"job,omitempty"` // name
	JobID   string `json:"job_id,omitempty"`
	Text    string `json:"text"`
}

// AvailableSpec is how many nodes one spec of the job could use.
type AvailableSpec struct {
	Spec  int    `json:"spec"`
	Label string `json:"label,omitempty"`
	Nodes int    `json:"nodes"` // that could hold a rank if they held nothing
	Idle  int    `json:"idle"`  // that have room now
	Need  int    `json:"need"`  // that the job asks for
}

// DeviceDemand is one model of accelerators with how many of them all queued
// jobs together ask for; a job that takes any of several models counts for
// each.
type DeviceDemand struct {
	DeviceShare
	Wanted int `json:"wanted"` // cards
	Jobs   int `json:"jobs"`   // queued subjobs that ask for them
}

// Available lists what a job could get now. The job need not be complete: its
// resources, placement and driver count.
func (c *Client) Available(ctx context.Context, request JobRequest) (*Available, error) {
	return ask(ctx, c, NodesAvailable, "", request)
}
