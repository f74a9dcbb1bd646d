# A sweep over learning rates and weight decays, two trials at a time: tagged so that it is
# found. nomadlike job trials lists them, best first; the page draws one figure by another.
job "lr-sweep" {
  tags = ["ablation", "paper-3"]
  note = "learning rates of table 2"

  sweep "grid" {
    param "lr" {
      values = [0.0003, 0.001, 0.003, 0.01]
    }
    param "wd" {
      log   = [1e-6, 1e-2]
      count = 2
    }
    parallel = 2
    metric   = "loss"
  }
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = <<-EOT
      bash -c 'for step in 1 2 3 4 5; do awk -v lr=${param.lr} -v wd=${param.wd} -v s=$step "BEGIN { print \"step=\" s, \"lr=\" lr, \"loss=\" 1 / (1 + s * lr * 300) + lr * 20 + wd }"; done'
    EOT
  }
}
