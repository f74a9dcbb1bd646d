# Variables, locals and functions.
variable "steps" {
  type        = number
  description = "steps of one epoch"
  default     = 100
}
variable "tags" {
  type    = list(string)
  default = ["a", "b"]
}
variable "debug" { default = false }

locals {
  epochs = local.base * 2
  base   = 5
  flags = [for i, tag in var.tags : format("--tag%d=%s", i, upper(tag))]
  image  = {
    gpu = "torch-gpu"
    cpu = "torch-cpu"
  }
}

job "expressions" {
  nodes       = max(2, length(var.tags))
  description = <<-EOT
    steps ${var.steps}
    %{if var.debug}debug%{else}release%{endif}
    a literal $${HOME} and %%{x}
  EOT
  placement {
    nodes = [for n in range(1, 4) : format("gpu-%02d", n)]
  }
  resources {
    cpu    = 0.5 * 3
    memory = "${2 * 4}GiB"
  }
  task {
    command = join(" ", concat(["python3", "train.py", "--epochs", tostring(local.epochs)], local.flags))
    env = merge({ STEPS = var.steps, SHAPE = jsonencode({ layers = [1, 2] }) }, var.debug ? { DEBUG = "1" } : {})
  }
  meta {
    image = lookup(local.image, "gpu", "none")
    first = var.tags[0]
    all   = join(",", var.tags[*])
  }
}
