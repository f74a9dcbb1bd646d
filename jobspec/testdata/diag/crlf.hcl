job "crlf" {
  nodess = 2
	task {
    command = "a && b"
  }
}
