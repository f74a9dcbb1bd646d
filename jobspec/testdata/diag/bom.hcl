job "bom" {}
