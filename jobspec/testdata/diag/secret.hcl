locals {
  token = secret("wandb")
}

job "train-${secret("wandb")}" {
  description = "with ${secret("wandb")}"
  meta        = { token = secret("wandb") }
  task {
    image_credentials = "li:hunter2"
    command = "curl -H ${secret("wandb")}"
    env = {
      GOOD   = secret("wandb")
      PART   = "Bearer ${secret("wandb")}"
      CHOSEN = true ? secret("a") : secret("b")
      UPPER  = upper(secret("wandb"))
      NONE   = secret()
      NUMBER = secret(7)
    }
    hook "prestart" {
      command = secret("wandb")
    }
  }
}
