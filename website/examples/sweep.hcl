# A sweep over learning rates: tagged so that it is found. Each subjob chooses its rate
# by its index and prints it beside the loss, so that the page draws one by the other.
job "lr-sweep" {
  type = "batch"
  tags = ["ablation", "paper-3"]
  note = "learning rates of table 2"

  batch {
    count = 4
  }
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = <<-EOT
      bash -c 'rates=(0.0003 0.001 0.003 0.01); lr=$${rates[$NOMADLIKE_SUBJOB_INDEX]}; for step in 1 2 3 4 5; do awk -v lr=$lr -v s=$step "BEGIN { print \"step=\" s, \"lr=\" lr, \"loss=\" 1 / (1 + s * lr * 300) + lr * 20 }"; done'
    EOT
  }
}
