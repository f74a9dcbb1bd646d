// Package proto is the device contract as protobuf, generated from
// device.proto. It is used by package deviceplugin only.
//
// Flow: device types → deviceplugin → these messages → gRPC, and back.
// Limits: generated code; change device.proto and run go generate, with
// protoc 3.21, protoc-gen-go 1.36 and protoc-gen-go-grpc 1.6 on PATH.
package proto

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative device.proto
