client {
  enabled  = true
  env_file = "testdata/env/script.env"
}
