# Curves out of a log in a form of its own: nomadlike job metrics -name loss curves
job "curves" {
  resources {
    cpu    = 0.5
    memory = "64MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'for step in 1 2 3 4 5 6 7 8; do echo \"[$step] loss is 0.$((99 - step * 9))\"; sleep 0.2; done'"
  }
  metrics {
    patterns = ["^\\[(?P<step>\\d+)\\] (?P<name>\\w+) is (?P<value>\\S+)"]
  }
}
