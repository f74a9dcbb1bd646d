group "a" {}
task {
  command = "true"
}
x = 1
jobb "b" {}
job "one" "two" {
  resources = { cpu = 1 }
  nodes {
    count = 3
  }
  task "t" {
    command = "true"
  }
  task {
    command = "false"
  }
  distributed {}
}
job "two" {
  task { command = "true" }
}
