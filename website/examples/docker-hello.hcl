# A job in a container: what it prints is the system that its image brings.
job "docker-hello" {
  resources {
    cpu           = 1
    memory        = "256MiB"
    shared_memory = "64MiB"
  }
  task {
    driver  = "docker"
    image   = "debian:12-slim"
    command = "head -n 1 /etc/os-release"
  }
}
