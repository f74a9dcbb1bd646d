job "a" {
  nodes 2
  type = training batch
  = 3
  description = 'single'
  priority = “normal”
  env; x
}
