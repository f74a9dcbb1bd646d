package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/registrytest"
)

// What people do with images: they save a container, send it to a registry, find it in
// the catalogue, have nodes pull it, and are told where a job does not fit to it.
func TestImages(t *testing.T) {
	e := startEngine(t)
	host := registrytest.Start(t, "robot", "canary-password")
	agent, client := e.agentOn(t, t.TempDir())
	awaitDriver(t, client, "docker", 1)
	if _, err := client.SetSecret(t.Context(), "registry", false, []byte("robot:canary-password")); err != nil {
		t.Fatal(err)
	}
	list := func(filter api.ImageFilter) []api.ImageEntry {
		t.Helper()
		found, err := client.Images(t.Context(), filter)
		if err != nil || found.Asked != 1 || len(found.Away) > 0 {
			t.Fatalf("images: %+v, %v", found, err)
		}
		return found.Images
	}
	find := func(name string) *api.ImageEntry {
		images := list(api.ImageFilter{})
		if at := slices.IndexFunc(images, func(i api.ImageEntry) bool { return i.Name == name }); at >= 0 {
			return &images[at]
		}
		return nil
	}
	if base := find(hostImage); base == nil || base.Count != 1 || base.From != "" {
		t.Fatalf("the node's image is %+v", base)
	}

	job := runJob(t, client, contained("keeps", `sh -c 'echo kept > /kept; echo up; exec sleep 1000'`, ""), structs.JobRunning)
	alloc := allocOf(t, client, job.Job.ID)
	eventually.Within(t, time.Minute, "the task is up", func() bool { return logsOf(t, client, alloc.ID, api.LogOptions{}) == "up\n" })
	saved, target := "nomadlike/"+job.Job.Project+"/trained:1", host+"/team/trained:1"

	// Without a secret nothing of the node's is used; the image is saved all the same.
	if _, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "trained:1", Push: target}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a push without a secret: %v", err)
	}
	if _, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "trained:1", Push: "no name"}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a push to no name: %v", err)
	}
	made, err := client.CommitAllocation(t.Context(), alloc.ID, api.CommitRequest{Name: "trained:1", Push: target, Secret: "registry"})
	if err != nil || made.Pushed != target || !strings.HasPrefix(made.Digest, "sha256:") {
		t.Fatalf("committed %+v, %v", made, err)
	}
	if found := find(saved); found == nil || found.ID != made.ID || found.Bytes == 0 {
		t.Errorf("the saved image is listed as %+v", found)
	}
	history, _, err := client.JobEvents(t.Context(), job.Job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, event := range history.Events {
		if strings.HasPrefix(event.ID, "event.job.image_") {
			told = append(told, event.ID+" "+event.Params["by"]+" "+event.Params["image"]+" "+event.Params["to"])
		}
	}
	full := made.Image
	want := []string{
		"event.job.image_save dev " + full + " ", "event.job.image_save dev " + full + " ", "event.job.image_push dev " + full + " " + target,
	}
	if !slices.Equal(told, want) {
		t.Errorf("the job's history says %q, want %q", told, want)
	}
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobStopped)

	// On a node that has never seen it: here its names are taken away first.
	node := agent.ID()
	act := func(request api.ImageActRequest) (structs.ImageWork, error) {
		t.Helper()
		begun, err := client.ActOnImage(t.Context(), node, request)
		if err != nil {
			return structs.ImageWork{}, err
		}
		work := begun.Work
		eventually.Within(t, time.Minute, "the node has done it", func() bool {
			if work.EndedAt != 0 {
				return true
			}
			images, err := client.NodeImages(t.Context(), node, true)
			if err != nil {
				return false
			}
			for _, one := range images.Work {
				if one.StartedAt == work.StartedAt {
					work = one
				}
			}
			return work.EndedAt != 0
		})
		return work, nil
	}
	eventually.Within(t, time.Minute, "the container is gone and the image can be removed", func() bool {
		_, err := act(api.ImageActRequest{Act: structs.ImageRemove, Image: saved})
		return err == nil
	})
	if find(saved) != nil {
		t.Error("the image is still there")
	}
	if work, err := act(api.ImageActRequest{Act: structs.ImagePull, Image: target}); err != nil || work.Err == nil || work.Err.ID != "docker.image_denied" || work.Err.Message == "" {
		t.Errorf("a pull without a secret: %+v, %v", work, err)
	}
	work, err := act(api.ImageActRequest{Act: structs.ImagePull, Image: target, Secret: "registry"})
	if err != nil || work.Err != nil || work.Digest != made.Digest {
		t.Fatalf("pulled %+v, %v", work, err)
	}
	shown := list(api.ImageFilter{Image: target})
	if len(shown) != 1 || len(shown[0].Nodes) != 1 || shown[0].Nodes[0].NodeID != node || shown[0].Digest != made.Digest {
		t.Errorf("the image is shown as %+v", shown)
	}
	for _, bad := range []api.ImageActRequest{
		{Act: "run", Image: target},
		{Act: structs.ImagePull, Image: "a b"},
		{Act: structs.ImageTag, Image: target},
		{Act: structs.ImagePull, Image: target, To: "x"},
		{Act: structs.ImageTag, Image: target, To: "x\ny"},
		{Act: structs.ImagePull, Image: strings.Repeat("a", structs.ImageNameMax+1)},
	} {
		if _, err := client.ActOnImage(t.Context(), node, bad); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%+v is answered with %v", bad, err)
		}
	}
	if _, err := client.ActOnImage(t.Context(), node, api.ImageActRequest{Act: structs.ImagePull, Image: target, Secret: "absent"}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("with a secret that is not there: %v", err)
	}

	// Nobody of another project is told of what came with a job's credentials, or of the
	// names of this one's images.
	if _, err := client.PutProject(t.Context(), &structs.Project{Name: "two"}); err != nil {
		t.Fatal(err)
	}
	eve, err := client.CreateToken(t.Context(), api.TokenRequest{Role: "user", Project: "two", User: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := act(api.ImageActRequest{Act: structs.ImageTag, Image: hostImage, To: "nomadlike/" + job.Job.Project + "/hidden:1"}); err != nil {
		t.Fatal(err)
	}
	seen, err := client.WithToken(eve.Secret).Images(t.Context(), api.ImageFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, image := range seen.Images {
		names = append(names, image.Name)
	}
	if !slices.Equal(names, []string{hostImage}) {
		t.Errorf("somebody of another project sees %q", names)
	}

	e.fit(t, client)
}

// fit: jobs that an image is not for are refused, by its labels and by what is declared.
func (e *engine) fit(t *testing.T, client *api.Client) {
	e.importImage(t, "lab/infer:1", "LABEL nomadlike.scope=inference nomadlike.devices=ascend")
	in := func(image, device string) error {
		text := strings.Replace(contained("fits", "true", ""), hostImage, image, 1)
		if device != "" {
			text = strings.Replace(text, `cpu           = 0.5`, "cpu = 0.5\n    device \""+device+"\" {\n      count = 1\n    }", 1)
		}
		_, err := client.PlanJob(t.Context(), api.JobRequest{HCL: text})
		return err
	}
	detail := func(err error) string {
		var ids []string
		if refused := new(structs.Error); errors.As(err, &refused) {
			for _, one := range refused.Details {
				ids = append(ids, one.ID)
			}
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct{ image, device, want string }{
		{"lab/infer:1", "", "job.image_scope_label"},
		{"lab/infer:1", "nvidia/gpu", "job.image_scope_label job.image_devices_label"},
		{"lab/infer:1", "huawei/npu", "job.image_scope_label"},
		{"lab/absent:1", "", ""},
		{hostImage, "", ""},
	} {
		if got := detail(in(c.image, c.device)); got != c.want {
			t.Errorf("%s with %q by its labels: %q, want %q", c.image, c.device, got, c.want)
		}
	}
	declare := func(name string, scope, devices []string) {
		t.Helper()
		if _, err := client.DeclareImage(t.Context(), api.ImageRequest{Name: name, Scope: scope, Devices: devices}); err != nil {
			t.Fatal(err)
		}
	}
	declare("lab/infer", []string{"training"}, []string{"ascend"})
	for _, c := range []struct{ image, device, want string }{
		{"lab/infer:1", "", ""},
		{"lab/infer:1", "nvidia/gpu", "job.image_devices"},
		{"lab/infer:2", "nvidia/gpu", "job.image_devices"},
		{"docker.io/lab/infer", "huawei/npu", ""},
	} {
		if got := detail(in(c.image, c.device)); got != c.want {
			t.Errorf("%s with %q as declared: %q, want %q", c.image, c.device, got, c.want)
		}
	}
	if _, err := client.ForgetImage(t.Context(), "lab/infer"); err != nil {
		t.Fatal(err)
	}
	if got := detail(in("lab/infer:1", "")); got != "job.image_scope_label" {
		t.Errorf("when nothing is declared any more: %q", got)
	}
}
