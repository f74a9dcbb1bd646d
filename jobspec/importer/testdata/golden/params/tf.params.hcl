# From tf.params, a params file, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 7: worker_memory = 16Gi  a bare number counts in GB, taken as GiB
#   line 9: command = cd /code && python train.py  a shell runs the command
#
# To look at:
#   line 8: worker_image = tf:2  is this registry reached from the nodes? image_credentials = secret("NAME") signs in

job "tf-ps" {                   # line 2: name = tf-ps
  nodes = 3                     # line 5: worker_count = 3
  tags  = ["paper", "baseline"] # line 11: tags = paper,baseline

  distributed "tensorflow" { # line 3: kind = TFJob
    parameter_servers = 2    # line 4: ps_count = 2
  }

  resources {
    cpu    = 4.5     # line 6: worker_cpu = 4.5
    memory = "16GiB" # line 7: worker_memory = 16Gi
  }

  task {
    driver = "docker" # line 8: worker_image = tf:2
    image  = "tf:2"   # line 8: worker_image = tf:2
    # line 10: envs = LR=0.1,EPOCHS=3
    env = {
      LR     = "0.1"
      EPOCHS = "3"
    }
    command = "bash -c 'cd /code && python train.py'" # line 9: command = cd /code && python train.py
  }
}
