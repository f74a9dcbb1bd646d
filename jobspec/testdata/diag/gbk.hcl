job "gbk" {
  description = "ÑµÁ·"
}
