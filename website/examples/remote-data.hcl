# Reads one dataset from a web server and one file from an object store. The
# node's configuration names the servers, and holds the credentials:
#
#   client {
#     storage "mirror" {
#       http { url = "https://data.example.com/{kind}" }
#     }
#     storage "minio" {
#       s3 {
#         url              = "https://minio.example.com:9000"
#         bucket           = "datasets"
#         prefix           = "{project}"
#         credentials_file = "/etc/nomadlike/minio.credentials"
#       }
#     }
#   }
job "remote-data" {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "cp -r /workspace/dataset/private/words /workspace/dataset/private/digits /workspace/outputs"
  }
  dataset "words" {
    storage   = "mirror"
    read_only = true
    prepare   = true
  }
  dataset "digits" {
    storage   = "minio"
    source    = "digits/train.csv"
    sha256    = "fb46cc821837f376e752a749250b1f04f30342de9abd0db66ed19ac336adbdb6"
    read_only = true
    prepare   = true
  }
  output "copies" {
    storage = "nas"
  }
}
