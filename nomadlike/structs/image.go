package structs

import (
	"slices"
	"strings"
)

// What an image may be for.
const (
	ScopeTraining    = "training"
	ScopeDevelopment = "development"
	ScopeInference   = "inference"
)

// ImageScopes lists what an image may be for.
func ImageScopes() []string { return []string{ScopeTraining, ScopeDevelopment, ScopeInference} }

// Bounds of what is known of images.
const (
	ImageRecordsMax     = 2_048 // that administrators declare
	ImageDevicesMax     = 16    // kinds of one image
	ImageDescriptionMax = 500   // bytes
	NodeImagesMax       = 1_000 // that one node tells of
	ImageNamesMax       = 32    // of one image that a node tells of
)

// Labels by which an image says what it is for. Lists stand between commas.
const (
	LabelImageScope   = "nomadlike.scope"
	LabelImageDevices = "nomadlike.devices"
	LabelImageDriver  = "nomadlike.driver_version"
	labelDescription  = "org.opencontainers.image.description"
	labelNvidia       = "com.nvidia.volumes.needed" // of NVIDIA's own images, and of those made of them
)

// ImageTraits are what an image is for, as its labels or an administrator say.
type ImageTraits struct {
	Scope       []string `json:"scope,omitempty"`          // of ImageScopes; none: everything
	Devices     []string `json:"devices,omitempty"`        // kinds, "nvidia" or "huawei/npu", or "cpu" for none; none: any
	Driver      string   `json:"driver_version,omitempty"` // of the devices, as placement.driver_version says it
	Description string   `json:"description,omitempty"`
}

// ImageRecord is what administrators declare of an image. Without a tag it is about
// every tag of the repository that has no record of its own. It goes before the image's
// labels. Apply fixes by whom and when.
type ImageRecord struct {
	Name string `json:"name"` // as ImageName spells it
	ImageTraits
	SetAt       UnixNano `json:"set_at,omitempty"`
	SetBy       string   `json:"set_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// ImagePut declares an image, or takes that back.
type ImagePut struct {
	Image  ImageRecord `json:"image"`
	Forget bool        `json:"forget,omitempty"` // only the name counts
}

// ImageTold puts into the events what somebody has done with an image on a node. It
// changes nothing else.
type ImageTold struct {
	Act    ImageAct `json:"act"`
	NodeID string   `json:"node_id"`
	JobID  string   `json:"job_id,omitempty"` // of the container that was saved
	Image  string   `json:"image"`
	To     string   `json:"to,omitempty"`
	Bytes  int64    `json:"bytes,omitempty"`
}

// Validate lists everything that is wrong with the record; an empty list means that it
// may be stored. Pure.
func (i *ImageRecord) Validate() []Problem {
	v := &validator{}
	if name, ok := ParseImageName(i.Name); !ok || name.String() != i.Name {
		v.add("name", "job.image_name", "job.image_name.hint", "image", i.Name)
	}
	if len(i.Scope) > len(ImageScopes()) {
		v.add("scope", "job.too_many", "", "what", "scope", "count", len(i.Scope), "max", len(ImageScopes()))
	} else {
		for _, scope := range i.Scope {
			v.choice("scope", scope, false, ImageScopes()...)
		}
	}
	if len(i.Devices) > ImageDevicesMax {
		v.add("devices", "job.too_many", "", "what", "devices", "count", len(i.Devices), "max", ImageDevicesMax)
	}
	for _, kind := range i.Devices {
		if !plainKind(kind) {
			v.add("devices", "job.image_kind", "job.image_kind.hint", "value", kind)
			break
		}
	}
	if _, ok := ParseVersionConstraint(i.Driver); !ok || len(i.Driver) > WordMax {
		v.add("driver_version", "job.driver_version", "job.driver_version.hint", "value", i.Driver)
	}
	v.plain("description", i.Description, ImageDescriptionMax)
	return v.problems
}

// plainKind reports whether a text may be a kind of device, or its vendor alone.
func plainKind(kind string) bool {
	vendor, of, found := strings.Cut(kind, "/")
	plain := func(word string) bool {
		return word != "" && len(word) <= 32 && strings.Trim(word, letters+digits+"-_") == ""
	}
	return plain(vendor) && (!found || plain(of))
}

// TraitsOfLabels reads what the labels of an image say. They are whoever's made the
// image: what is not as it should be is left out. Pure.
func TraitsOfLabels(labels map[string]string) ImageTraits {
	var t ImageTraits
	for _, scope := range listOf(labels[LabelImageScope], len(ImageScopes())) {
		if slices.Contains(ImageScopes(), scope) {
			t.Scope = append(t.Scope, scope)
		}
	}
	for _, kind := range listOf(labels[LabelImageDevices], ImageDevicesMax) {
		if plainKind(kind) {
			t.Devices = append(t.Devices, kind)
		}
	}
	if len(t.Devices) == 0 && labels[labelNvidia] == "nvidia_driver" {
		t.Devices = []string{"nvidia"}
	}
	if driver := labels[LabelImageDriver]; len(driver) <= WordMax {
		if _, ok := ParseVersionConstraint(driver); ok {
			t.Driver = driver
		}
	}
	if text := labels[labelDescription]; PlainText(text, ImageDescriptionMax) {
		t.Description = text
	}
	return t
}

// listOf splits a list at its commas; what is over a bound is left out.
func listOf(text string, limit int) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" && len(list) < limit && !slices.Contains(list, part) {
			list = append(list, part)
		}
	}
	return list
}

// Says reports whether the traits say anything that jobs are judged by.
func (t *ImageTraits) Says() bool { return len(t.Scope)+len(t.Devices) > 0 || t.Driver != "" }

// scopeOf is what an image has to be for so that a job may run in it.
func scopeOf(j *Job) string {
	if j.Type == JobTypeDev {
		return ScopeDevelopment
	}
	return ScopeTraining // a sweep trains, too
}

// Admit lists what an image says against a job that runs in it, with whose word that
// is: an administrator's name, or "" for the image's own labels. Pure.
func (t *ImageTraits) Admit(j *Job, by string) []Problem {
	v := &validator{}
	const path = "task.image"
	wrongScope, wrongDevices := "job.image_scope", "job.image_devices"
	if by == "" {
		wrongScope, wrongDevices = "job.image_scope_label", "job.image_devices_label"
	}
	if scope := scopeOf(j); len(t.Scope) > 0 && !slices.Contains(t.Scope, scope) {
		v.add(path, wrongScope, "job.image_scope.hint", "image", j.Task.Image, "scope", strings.Join(t.Scope, ", "), "type", scope, "by", by)
	}
	for _, kind := range j.deviceKinds() {
		if len(t.Devices) > 0 && !slices.ContainsFunc(t.Devices, func(known string) bool { return kindMatches(known, kind) }) {
			v.add(path, wrongDevices, "job.image_devices.hint", "image", j.Task.Image, "devices", strings.Join(t.Devices, ", "), "kind", kind, "by", by)
		}
	}
	return v.problems
}

// deviceKinds lists the kinds of devices that a job asks for, each once.
func (j *Job) deviceKinds() []string {
	var kinds []string
	for i := range j.Resources {
		for _, device := range j.Resources[i].Devices {
			if !slices.Contains(kinds, device.Kind) {
				kinds = append(kinds, device.Kind)
			}
		}
	}
	return kinds
}

// kindMatches reports whether a kind of device is one that an image names: the whole
// kind, or its vendor. What people call Ascend is huawei here.
func kindMatches(known, kind string) bool {
	if known == "ascend" {
		known = DeviceKindAscend
	}
	return known == kind || strings.HasPrefix(kind, known+"/")
}

// SetDefaults has a job whose image works with some drivers only run on nodes that have
// one, unless the job says which itself. It changes j in place.
func (i *ImageRecord) SetDefaults(j *Job) []Default {
	without := func(spec Resources) bool { return len(spec.Devices) == 0 }
	if i == nil || i.Driver == "" || len(j.Resources) == 0 || slices.ContainsFunc(j.Resources, without) || len(j.Placement.Nodes) > 0 || j.VIP != nil {
		return nil
	}
	d := defaulter{from: FromImage}
	fill(&d, "placement.driver_version", &j.Placement.DriverVersion, i.Driver)
	return d.chosen
}
