variable "lr" {}
variable "lr" { default = 2 }
variable "n" {
  type    = number
  default = "many"
}
variable "t" { type = strin }
variable "d" {
  default = var.lr
  unit    = "s"
}
locals {
  a = local.b
  b = local.a
  big = "${local.a}"
}
job "expressions" {
  nodes       = var.ln
  description = "${local.nope} ${lr} ${foo.bar}"
  project     = uper("x")
  category    = file("/etc/shadow")
  access      = env("HOME")
  task {
    command = "torchrun --nnodes ${WORLD_SIZE} train.py"
    env = {
      A = 1 + "x"
      B = "${null}"
    }
    user = true ? 1 : []
    dir  = [for x in 5 : x]
  }
}
