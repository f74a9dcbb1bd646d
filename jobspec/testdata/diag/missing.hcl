job "missing" {
}
