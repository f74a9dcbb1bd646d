# Reads an algorithm and a dataset, writes an output. The node's configuration
# names where they lie:
#
#   client {
#     storage "nas" { path = "/nas/{kind}" }
#   }
job "data" {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sh /workspace/algorithm/count.sh /workspace/dataset/private/words /workspace/outputs"
  }
  algorithm "count" {
    read_only = true
  }
  dataset "words" {
    read_only = true
  }
  output "counts/first" {}
}
