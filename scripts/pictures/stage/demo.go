package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// sickSince is since when the card of the stories is broken, before Now.
const sickSince = 2*time.Hour + 40*time.Minute

// training is the job file of a gang.
func training(name, project, pool string, nodes, cards int, more ...string) string {
	kind, model := "nvidia/gpu", strings.ToUpper(pool)
	switch pool {
	case "train", "default":
		model = "A800"
	case "ascend":
		kind, model = "huawei/npu", "910B"
	}
	distributed := ""
	if nodes > 1 {
		distributed = "\n  distributed \"pytorch\" {}"
	}
	return fmt.Sprintf(`job %q {
  project = %q
  nodes   = %d
  %s
  placement { pool = %q }
  resources {
    cpu    = %d
    memory = "%dGiB"
    device %q {
      count = %d
      model = %q
    }
  }%s
  task {
    command = "python3 train.py --data /workspace/dataset --batch-size 256 --lr 3e-4"
  }
}
`, name, project, nodes, strings.Join(more, "\n  "), pool, 8*cards, 64*cards, kind, cards, model, distributed)
}

const saves = `checkpoint { max_resumes = 5 }`

// Demo is an afternoon of a cluster of fifteen nodes with 112 cards.
func Demo(ctx context.Context, s *Stage) error {
	if err := s.furnish(ctx); err != nil {
		return err
	}
	s.past()
	s.mine()
	s.others()
	s.troubles()
	return s.pass(ctx)
}

// furnish sets up pools, projects and nodes.
func (s *Stage) furnish(ctx context.Context) error {
	pools := []structs.Pool{
		{Name: "ascend", Description: "Ascend 910B", Nodes: []string{"npu-01", "npu-02"}, Dedicated: true},
		{Name: "h800", Description: "H800 with NVLink, for large models", Nodes: []string{"hop-01", "hop-02", "hop-03", "hop-04"}, RDMA: true, Ceilings: structs.PoolCeilings{Nodes: 4}},
		{Name: "train", Description: "A800, for everybody", Order: structs.OrderFair, Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(24 * time.Hour)}},
	}
	for i := range 8 {
		pools[2].Nodes = append(pools[2].Nodes, fmt.Sprintf("gpu-%02d", i+1))
	}
	for i := range pools {
		if err := s.put(ctx, structs.CommandPoolPut, structs.PoolPut{Pool: pools[i]}); err != nil {
			return err
		}
	}
	most := func(n int) *int { return &n }
	for _, project := range []structs.Project{
		{Name: "nlp", Description: "Language models", Members: []string{"wang"}, Quotas: []structs.Quota{{Kind: "nvidia/gpu", Model: "H800", Guaranteed: 16, Maximum: most(32)}}},
		{Name: "speech", Description: "Recognition and synthesis", Members: []string{"li"}, Quotas: []structs.Quota{{Kind: "nvidia/gpu", Guaranteed: 16, Maximum: most(48)}}},
		{Name: "vision", Description: "Pictures and video", Members: []string{"ada", "chen"}, UrgentLimit: most(2), Quotas: []structs.Quota{{Kind: "nvidia/gpu", Model: "A800", Guaranteed: 32, Maximum: most(80)}}},
	} {
		if err := s.put(ctx, structs.CommandProjectPut, structs.ProjectPut{Project: project}); err != nil {
			return err
		}
	}
	for i := range 8 {
		if err := s.register(ctx, fmt.Sprintf("gpu-%02d", i+1), fmt.Sprintf("rack-%d", 1+i/4), a800, nil); err != nil {
			return err
		}
	}
	for i := range 4 {
		if err := s.register(ctx, fmt.Sprintf("hop-%02d", i+1), "rack-3", h800, nil); err != nil {
			return err
		}
	}
	for i := range 2 {
		if err := s.register(ctx, fmt.Sprintf("npu-%02d", i+1), "rack-4", ascend, nil); err != nil {
			return err
		}
	}
	return s.register(ctx, "cpu-01", "rack-4", plain, nil)
}

// past is what ended long ago: who waits longest knows nobody of it.
func (s *Stage) past() {
	chance := rand.New(rand.NewPCG(7, 11))
	people := []struct{ user, project string }{{"chen", "vision"}, {"li", "speech"}, {"wang", "nlp"}, {"ada", "vision"}}
	stems := []string{"yolo-v9", "asr-base", "qwen-lora", "unet-seg", "tts-multi", "bge-rank", "swin-t", "mae-pre"}
	for i := range 36 {
		who := people[chance.IntN(len(people))]
		pool := []string{"train", "train", "train", "h800", "ascend"}[chance.IntN(5)]
		nodes, cards := 1, []int{1, 2, 4, 8}[chance.IntN(4)]
		if cards == 8 && pool != "ascend" {
			nodes = 1 + chance.IntN(2)
		}
		at := 25*time.Hour - time.Duration(i)*31*time.Minute
		runs := time.Duration(35+chance.IntN(210)) * time.Minute
		ends := structs.AllocComplete
		if chance.IntN(9) == 0 {
			ends = structs.AllocFailed
		}
		name := fmt.Sprintf("%s-%d", stems[i%len(stems)], i/len(stems)+1)
		s.plan(&play{name: name, user: who.user, at: at, runs: runs, ends: ends, exit: 1, hcl: training(name, who.project, pool, nodes, cards, fmt.Sprintf("expected_runtime = \"%dm\"", 30*(1+int(runs/(30*time.Minute)))))})
	}
}

// mine are the jobs of ada, who looks.
func (s *Stage) mine() {
	resnet := func(name, batch string, more ...string) string {
		return strings.Replace(training(name, "vision", "train", 2, 2, append(more, `tags = ["ablation", "paper-3"]`, `expected_runtime = "1h50m"`)...), "--batch-size 256", "--batch-size "+batch, 1)
	}
	s.plan(&play{name: "resnet-ab-1", user: "ada", at: 9 * time.Hour, runs: 95 * time.Minute, hcl: resnet("resnet-ab-1", "128", `note = "baseline of table 2"`)})
	s.plan(&play{name: "resnet-ab-2", user: "ada", at: 4*time.Hour + 50*time.Minute, runs: 108 * time.Minute, hcl: resnet("resnet-ab-2", "256")})
	s.plan(&play{name: "resnet-ab-3", user: "ada", at: 52 * time.Minute, runs: 36 * time.Minute, ends: structs.AllocFailed, exit: 1, rank: 1, hcl: resnet("resnet-ab-3", "320")})
	s.plan(&play{name: "llama-7b-sft", user: "ada", at: 5*time.Hour + 10*time.Minute, hcl: training("llama-7b-sft", "vision", "train", 2, 8, saves, `expected_runtime = "7h30m"`, `time_limit = "12h"`, `tags = ["paper-3"]`, `output "models/llama-7b" {}`)})
	s.plan(&play{name: "whisper-zh", user: "ada", at: 2*time.Hour + 40*time.Minute, hcl: training("whisper-zh", "speech", "h800", 1, 8, `expected_runtime = "4h"`, `time_limit = "3h30m"`)})
	s.plan(&play{name: "dev-lab", user: "ada", at: 2*time.Hour + 20*time.Minute, hcl: training("dev-lab", "vision", "h800", 1, 1, `category = "debug"`, `time_limit = "8h"`)})
	s.plan(&play{name: "ocr-sweep", user: "ada", at: 31 * time.Minute, runs: 17 * time.Minute, hcl: training("ocr-sweep", "vision", "train", 1, 1, `batch { count = 18 }`, `expected_runtime = "18m"`)})
	s.plan(&play{name: "vit-l-pretrain", user: "ada", at: 47 * time.Minute, hcl: training("vit-l-pretrain", "vision", "train", 4, 8, saves, `expected_runtime = "6h"`)})
	s.plan(&play{name: "clip-eval", user: "ada", at: 26 * time.Minute, hcl: training("clip-eval", "vision", "ascend", 1, 4, `expected_runtime = "50m"`)})
	s.plan(&play{name: "moe-16e", user: "ada", at: 12 * time.Minute, hcl: training("moe-16e", "vision", "train", 1, 16, `expected_runtime = "3h"`)})
}

// others are the jobs of the others.
func (s *Stage) others() {
	s.plan(&play{name: "asr-large", user: "li", at: 6 * time.Hour, hcl: training("asr-large", "speech", "h800", 2, 8, saves, `expected_runtime = "9h"`)})
	s.plan(&play{name: "bert-npu", user: "wang", at: 4*time.Hour + 5*time.Minute, hcl: training("bert-npu", "nlp", "ascend", 2, 8, `expected_runtime = "6h"`)})
	s.plan(&play{name: "detr-r101", user: "chen", at: 3*time.Hour + 10*time.Minute, hcl: training("detr-r101", "vision", "train", 2, 8, saves, `expected_runtime = "5h"`)})
	s.plan(&play{name: "glm-dpo", user: "wang", at: 2*time.Hour + 35*time.Minute, hcl: training("glm-dpo", "nlp", "train", 1, 8, saves, `preemptible = true`, `expected_runtime = "3h"`)})
	s.plan(&play{name: "wav2vec-base", user: "li", at: 2*time.Hour + 5*time.Minute, hcl: training("wav2vec-base", "speech", "h800", 1, 4, `expected_runtime = "5h"`)})
	s.plan(&play{name: "nccl-check", user: "chen", at: 62 * time.Minute, runs: 9 * time.Minute, ends: structs.AllocFailed, exit: 139, hcl: training("nccl-check", "vision", "train", 1, 2, `debug { hold = "4h" }`)})
	s.plan(&play{name: "rlhf-ppo", user: "wang", at: 41 * time.Minute, hcl: training("rlhf-ppo", "nlp", "h800", 3, 8, `priority = "urgent"`, `expected_runtime = "4h"`)})
	s.plan(&play{name: "detr-r101-ft", user: "chen", at: 33 * time.Minute, hcl: training("detr-r101-ft", "vision", "train", 1, 8, `expected_runtime = "2h"`)})
	s.plan(&play{name: "tts-stream", user: "li", at: 18 * time.Minute, hcl: training("tts-stream", "speech", "h800", 1, 8, `expected_runtime = "90m"`)})
	s.plan(&play{name: "sdxl-lora", user: "chen", at: 50 * time.Second, holds: "image", percent: 62, hcl: training("sdxl-lora", "vision", "train", 1, 1, `expected_runtime = "20m"`)})
	long := &play{name: "eval-long", user: "chen", at: 8*time.Hour + 30*time.Minute, hcl: training("eval-long", "vision", "train", 1, 2, `time_limit = "2h"`)}
	s.plan(long)
	s.agenda.add(before(6*time.Hour+29*time.Minute), func(ctx context.Context) error {
		return s.put(ctx, structs.CommandJobLimits, &structs.JobLimits{Expired: []structs.AttemptKey{{JobID: long.id, Number: 1}}})
	})
	s.agenda.add(before(6*time.Hour+28*time.Minute), func(ctx context.Context) error { return s.end(ctx, long) })
	old := &play{name: "bert-old", user: "ada", at: 7 * time.Hour, hcl: training("bert-old", "vision", "train", 1, 4)}
	s.plan(old)
	s.agenda.add(before(6*time.Hour+20*time.Minute), func(ctx context.Context) error {
		_, err := s.people["ada"].StopJob(ctx, old.id, api.JobStopRequest{Reason: "wrong data"})
		return err
	})
	s.agenda.add(before(6*time.Hour+19*time.Minute), func(ctx context.Context) error { return s.end(ctx, old) })
}

// end has the nodes report that they have ended a job.
func (s *Stage) end(ctx context.Context, p *play) error {
	var gang []*structs.Allocation
	for alloc := range s.replica.Store().Snapshot().AllocsOfJob(p.id) {
		gang = append(gang, alloc)
	}
	return s.report(ctx, gang, func(r *structs.AllocReport) { r.Status, r.Signal = structs.AllocKilled, 15 })
}

// troubles are a lost node, a broken card, an idle and a paused job, a drained node
// and windows of maintenance.
func (s *Stage) troubles() {
	for ago := 4*time.Hour + 50*time.Minute; ago > 0; ago -= 20 * time.Minute {
		s.agenda.add(before(ago), func(ctx context.Context) error {
			return s.note(ctx, "llama-7b-sft", func(note *structs.AllocNote) {
				_, step := steps(s.replica.Store().Snapshot().Alloc(note.AllocID), s.replica.Now())
				note.Checkpoint = &structs.SavedCheckpoint{Path: fmt.Sprintf("/workspace/outputs/checkpoint-%d.pt", step), Step: step, SavedAt: note.At}
			})
		})
	}
	s.agenda.add(before(89*time.Minute), func(ctx context.Context) error {
		for alloc := range s.replica.Store().Snapshot().AllocsOfJob(s.job("llama-7b-sft")) {
			if alloc.Rank == 1 && alloc.Status == structs.AllocRunning {
				return s.lose(ctx, alloc.NodeName)
			}
		}
		return errors.New("llama-7b-sft does not run at its time")
	})
	s.agenda.add(before(88*time.Minute+30*time.Second), func(ctx context.Context) error {
		for _, p := range s.plays {
			if p.name == "llama-7b-sft" {
				return s.end(ctx, p)
			}
		}
		return nil
	})
	s.agenda.add(before(sickSince), func(ctx context.Context) error {
		return s.register(ctx, "gpu-03", "rack-1", a800, ail(5, 94, device.ActReset))
	})
	s.agenda.add(before(2*time.Hour), func(ctx context.Context) error {
		return s.note(ctx, "dev-lab", func(note *structs.AllocNote) {
			note.Idle = &structs.IdleNote{Since: structs.At(before(2*time.Hour + 10*time.Minute))}
		})
	})
	s.agenda.add(before(40*time.Minute), func(ctx context.Context) error {
		if _, err := s.people["li"].PauseJob(ctx, s.job("wav2vec-base"), api.JobControlRequest{Reason: "the set is copied again"}); err != nil {
			return err
		}
		return s.obey(ctx, "wav2vec-base")
	})
	s.agenda.add(before(time.Hour), func(ctx context.Context) error {
		_, err := s.people["olga"].CordonNode(ctx, "gpu-08")
		return err
	})
	s.agenda.add(before(50*time.Minute), func(ctx context.Context) error {
		tonight := Now.Add(8 * time.Hour)
		_, err := s.people["olga"].AddMaintenance(ctx, api.MaintenanceRequest{Nodes: []string{"hop-03", "hop-04"}, Start: structs.At(tonight), End: structs.At(tonight.Add(4 * time.Hour)), Reason: new("firmware of the switches")})
		return err
	})
}
