package structs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseImageName(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"ubuntu":                          "ubuntu:latest",
		"docker.io/library/ubuntu:22.04":  "ubuntu:22.04",
		"index.docker.io/pytorch/pytorch": "pytorch/pytorch:latest",
		"registry.lab:5000/team/train:1":  "registry.lab:5000/team/train:1",
		"registry.lab:5000/train":         "registry.lab:5000/train:latest",
		"localhost/train":                 "localhost/train:latest",
		"team/library/ubuntu":             "team/library/ubuntu:latest",
		"quay.io/library/ubuntu":          "quay.io/library/ubuntu:latest",
		"train@sha256:" + hex:             "train@sha256:" + hex,
		"train:1@sha256:" + hex:           "train:1@sha256:" + hex,
		"Registry/train:V_1.2-a":          "Registry/train:V_1.2-a",
		"a.b/c":                           "a.b/c:latest",
		"":                                "",
		"sha256:" + hex:                   "",
		"train@sha256:12":                 "",
		"train@sha512:" + hex:             "",
		"UPPER":                           "",
		"team/UPPER":                      "",
		"a b":                             "",
		"a\nb":                            "",
		"a\x1b[2Jb":                       "",
		"-a":                              "",
		"a/":                              "",
		"/a":                              "",
		"a//b":                            "",
		"a/../b":                          "",
		"a:":                              "",
		"a:.b":                            "",
		"a:" + strings.Repeat("x", 129):   "",
		"http://registry.lab/train":       "",
		"registry.lab:5000/" + strings.Repeat("a", ImageNameMax): "",
		"reg istry.lab/train": "",
		"镜像":                  "",
	} {
		name, ok := ParseImageName(text)
		if got := name.Completed().String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, ok, want)
		}
	}
	if name, _ := ParseImageName("docker.io/nomadlike/lab/trained:1"); name.Project() != "lab" {
		t.Errorf("the project of %s is %q", name, name.Project())
	}
	for _, other := range []string{"nomadlike", "registry.lab/nomadlike/lab/trained", "nomadlike-held:x"} {
		if name, ok := ParseImageName(other); !ok || name.Project() != "" {
			t.Errorf("the project of %s is %q", other, name.Project())
		}
	}
}

// What is read once is read again as the same.
func FuzzParseImageName(f *testing.F) {
	for _, text := range []string{"ubuntu", "docker.io/library/a/b:1", "docker.io/docker.io/a", "library/library/a", "a.b:1/c:2@sha256:" + strings.Repeat("0", 64), "docker.io/a.b/c", "index.docker.io/localhost/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := ParseImageName(text)
		if !ok {
			return
		}
		again, ok := ParseImageName(name.String())
		if !ok || again != name {
			t.Errorf("%q is read as %+v, and that as %+v, %v", text, name, again, ok)
		}
		for _, r := range name.String() {
			if r <= ' ' || r > '~' {
				t.Errorf("%q is let through as %q", text, name)
			}
		}
	})
}

// Labels are whoever's made the image: only what is as it should be counts.
func TestTraitsOfLabels(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, "{[] []  }"},
		{map[string]string{LabelImageScope: " inference, training,training ,x\x1b[2J"}, "{[inference training] []  }"},
		{map[string]string{LabelImageDevices: "nvidia, huawei/npu,../x, A, " + strings.Repeat("v", 40)}, "{[] [nvidia huawei/npu]  }"},
		{map[string]string{LabelImageDriver: ">= 535, < 560"}, "{[] [] >= 535, < 560 }"},
		{map[string]string{LabelImageDriver: "newest"}, "{[] []  }"},
		{map[string]string{labelNvidia: "nvidia_driver"}, "{[] [nvidia]  }"},
		{map[string]string{labelNvidia: "nvidia_driver", LabelImageDevices: "cpu"}, "{[] [cpu]  }"},
		{map[string]string{labelDescription: "two\nlines"}, "{[] []  }"},
		{map[string]string{labelDescription: strings.Repeat("x", ImageDescriptionMax+1)}, "{[] []  }"},
		{map[string]string{labelDescription: "训练镜像"}, "{[] []  训练镜像}"},
	} {
		if got := fmt.Sprint(TraitsOfLabels(c.labels)); got != c.want {
			t.Errorf("%q say %s, want %s", c.labels, got, c.want)
		}
	}
	many := strings.Repeat("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,", 1000)
	if got := TraitsOfLabels(map[string]string{LabelImageDevices: many}).Devices; len(got) != ImageDevicesMax {
		t.Errorf("%d kinds are taken", len(got))
	}
}

// Rows 17 and 18 of what is wanted: the scope of an image has the job's kind of work in
// it, and its devices are the job's.
func TestImageAdmit(t *testing.T) {
	job := func(of JobType, kinds ...string) *Job {
		j := &Job{Type: of, Task: Task{Driver: DriverDocker, Image: "lab/train:1"}, Resources: []Resources{{}}}
		for _, kind := range kinds {
			j.Resources[0].Devices = append(j.Resources[0].Devices, DeviceRequest{Kind: kind, Count: 1})
		}
		return j
	}
	for _, c := range []struct {
		traits ImageTraits
		job    *Job
		want   string
	}{
		{ImageTraits{}, job(JobTypeTraining, "nvidia/gpu"), ""},
		{ImageTraits{Scope: []string{"training", "inference"}}, job(JobTypeTraining), ""},
		{ImageTraits{Scope: []string{"inference"}}, job(JobTypeTraining), "job.image_scope training"},
		{ImageTraits{Scope: []string{"inference"}}, job(JobTypeBatch), "job.image_scope training"},
		{ImageTraits{Scope: []string{"training"}}, job(JobTypeDev), "job.image_scope development"},
		{ImageTraits{Devices: []string{"nvidia"}}, job(JobTypeTraining, "nvidia/gpu"), ""},
		{ImageTraits{Devices: []string{"nvidia/gpu"}}, job(JobTypeTraining, "nvidia/mig"), "job.image_devices nvidia/mig"},
		{ImageTraits{Devices: []string{"nvid"}}, job(JobTypeTraining, "nvidia/gpu"), "job.image_devices nvidia/gpu"},
		{ImageTraits{Devices: []string{"ascend"}}, job(JobTypeTraining, DeviceKindAscend), ""},
		{ImageTraits{Devices: []string{"ascend"}}, job(JobTypeTraining, "nvidia/gpu"), "job.image_devices nvidia/gpu"},
		{ImageTraits{Devices: []string{"nvidia"}}, job(JobTypeTraining), ""}, // whoever tries it without cards may
		{ImageTraits{Devices: []string{"cpu"}}, job(JobTypeTraining, "nvidia/gpu"), "job.image_devices nvidia/gpu"},
		{ImageTraits{Devices: []string{"cpu"}}, job(JobTypeTraining), ""},
		{ImageTraits{Scope: []string{"inference"}, Devices: []string{"ascend"}}, job(JobTypeTraining, "amd/gpu", "amd/gpu"), "job.image_scope training job.image_devices amd/gpu"},
	} {
		var got []string
		for _, problem := range c.traits.Admit(c.job, "ada") {
			got = append(got, strings.TrimSpace(problem.ID+" "+problem.Params["type"]+problem.Params["kind"]))
			if problem.Path != "task.image" || problem.Params["by"] != "ada" || problem.HintID == "" {
				t.Errorf("the problem is %+v", problem)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%+v against %s %+v: %q, want %q", c.traits, c.job.Type, c.job.Resources, text, c.want)
		}
	}
	if problems := (&ImageTraits{Scope: []string{"inference"}}).Admit(job(JobTypeTraining), ""); len(problems) != 1 || problems[0].ID != "job.image_scope_label" {
		t.Errorf("by the labels: %+v", problems)
	}
}

// A job of an image that works with some drivers only goes to nodes that have one.
func TestImageDriverIsADefault(t *testing.T) {
	record := &ImageRecord{Name: "lab/train", ImageTraits: ImageTraits{Driver: ">= 535"}}
	cards := Resources{Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 1}}}
	for name, c := range map[string]struct {
		job  Job
		want string
	}{
		"cards":               {Job{Resources: []Resources{cards}}, ">= 535"},
		"its own":             {Job{Resources: []Resources{cards}, Placement: Placement{DriverVersion: "= 550"}}, "= 550"},
		"no cards":            {Job{Resources: []Resources{{CPU: 1}}}, ""},
		"one of two has none": {Job{Resources: []Resources{cards, {CPU: 1}}}, ""},
		"named nodes":         {Job{Resources: []Resources{cards}, Placement: Placement{Nodes: []string{"n1"}}}, ""},
	} {
		chosen := record.SetDefaults(&c.job)
		if c.job.Placement.DriverVersion != c.want || (len(chosen) == 1) != (name == "cards") {
			t.Errorf("%s: %q, chosen %+v", name, c.job.Placement.DriverVersion, chosen)
		}
	}
	if chosen := (*ImageRecord)(nil).SetDefaults(&Job{Resources: []Resources{cards}}); chosen != nil {
		t.Errorf("nothing declared: %+v", chosen)
	}
}

func TestImageRecordValidate(t *testing.T) {
	whole := ImageRecord{Name: "lab/train", ImageTraits: ImageTraits{Scope: ImageScopes(), Devices: []string{"nvidia", "huawei/npu"}, Driver: ">= 535", Description: "ours"}}
	if problems := whole.Validate(); len(problems) > 0 {
		t.Errorf("a whole one: %+v", problems)
	}
	for want, change := range map[string]func(*ImageRecord){
		"name":           func(r *ImageRecord) { r.Name = "docker.io/library/train" }, // not as it is spelt
		"scope":          func(r *ImageRecord) { r.Scope = []string{"serving"} },
		"devices":        func(r *ImageRecord) { r.Devices = []string{"a b"} },
		"driver_version": func(r *ImageRecord) { r.Driver = "newest" },
		"description":    func(r *ImageRecord) { r.Description = "a\x1bb" },
	} {
		record := whole
		change(&record)
		if problems := record.Validate(); len(problems) != 1 || problems[0].Path != want {
			t.Errorf("%s: %+v", want, problems)
		}
	}
	many := whole
	many.Devices = slices.Repeat([]string{"nvidia"}, ImageDevicesMax+1)
	if problems := many.Validate(); len(problems) != 1 || problems[0].Path != "devices" {
		t.Errorf("too many kinds: %+v", problems)
	}
}
