// Package proto is the driver contract as protobuf, generated from
// driver.proto. It is used by package driverplugin only.
//
// Flow: driver types → driverplugin → these messages → gRPC, and back.
// Limits: generated code; change driver.proto and run go generate, with
// protoc 3.21, protoc-gen-go 1.36 and protoc-gen-go-grpc 1.6 on PATH.
package proto

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative driver.proto
