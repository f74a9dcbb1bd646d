nmae = "gpu-01"

server {
  enabled          = true
  bootstrap_expect = "three"
  bootstrapexpect  = 3
}

clinet {
  enabled = true
}
