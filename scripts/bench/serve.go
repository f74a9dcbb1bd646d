package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"nomadlike/nomadlike/api"
)

const (
	servedJobs = 20 // batches that hold cards
	servedHeld = 5  // nodes in ten whose cards are held, each by one subjob
)

// serve starts a server with so many simulated nodes of eight cards, lets jobs
// hold half of the cards, prints one JSON line that says where it is and with
// what token one signs in, and keeps all of it until the input ends. The
// figures of the page are measured against it.
func serve(ctx context.Context, b *bench, size int) error {
	f, err := b.newFleet(ctx, size)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.connect(ctx); err != nil {
		return err
	}
	if err := f.register(ctx); err != nil {
		return err
	}
	each := size * servedHeld / 10 / servedJobs
	if _, err := f.submitAll(ctx, "wall", servedJobs, each); err != nil {
		return err
	}
	if err := f.arrive(ctx, int64(servedJobs*each)); err != nil {
		return err
	}
	if err := f.problem(); err != nil {
		return err
	}
	made, err := f.w.client.CreateToken(ctx, api.TokenRequest{Name: "page", Role: "admin", User: "ada"})
	if err != nil {
		return err
	}
	server := f.w.agents["s1"]
	line, err := json.Marshal(struct {
		Address string `json:"address"`
		Token   string `json:"token"`
		Cards   int    `json:"cards"`
		Held    int    `json:"held"`
	}{fmt.Sprintf("https://%s:%d", server.addr, server.port), made.Secret, size * fleetDevices, servedJobs * each * fleetDevices})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	ended := make(chan struct{})
	go func() { // ends with the process at the latest
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return f.problem()
}
