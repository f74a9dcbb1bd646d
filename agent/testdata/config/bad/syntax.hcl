server {
  enabled = 
}
