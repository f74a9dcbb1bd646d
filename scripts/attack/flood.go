package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
)

const (
	floodDial   = 3 * time.Second
	floodPause  = 100 * time.Millisecond // before a connection that was ended is opened again
	gossipSends = 4 << 20                // bytes of a message that never ends, on each connection
	headLength  = 12_000
	bodyLength  = 60_000 // bytes: what is taken without a token, nearly
)

// flood keeps count connections to the addresses open, each opened again when
// it is ended, and prints "ready" with how many were opened once all had a turn.
func flood(kind string, addrs []string, count int, span time.Duration) error {
	open, ok := map[string]func(context.Context, string) (net.Conn, error){
		"silent": silent, "heads": halfHead, "bodies": halfBody, "gossip": keyless, "idle": idle,
	}[kind]
	if !ok {
		return fmt.Errorf("flood %q: there is no such kind", kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	var running sync.WaitGroup
	var turns sync.WaitGroup
	var opened, failed, ended atomic.Int64
	for i := range count {
		turns.Add(1)
		running.Go(func() {
			first := true
			for ctx.Err() == nil {
				conn, err := open(ctx, addrs[i%len(addrs)])
				if err != nil {
					failed.Add(1)
				} else {
					opened.Add(1)
				}
				if first {
					turns.Done()
					first = false
				}
				if err == nil {
					hold(ctx, conn)
					ended.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(floodPause):
				}
			}
			if first {
				turns.Done()
			}
		})
	}
	turns.Wait()
	if opened.Load() == 0 {
		return fmt.Errorf("flood %s: none of %d connections was opened", kind, count)
	}
	fmt.Printf("ready: %d of %d opened\n", opened.Load(), count)
	running.Wait()
	fmt.Printf("over: %d opened, %d failed, %d ended\n", opened.Load(), failed.Load(), ended.Load())
	return nil
}

// hold waits until the other end ends a connection, or ctx does.
func hold(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	buffer := make([]byte, 512)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

func silent(ctx context.Context, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: floodDial}
	return dialer.DialContext(ctx, "tcp", addr)
}

func secured(ctx context.Context, addr string, config *tls.Config) (*tls.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: floodDial}, Config: config}
	ctx, cancel := context.WithTimeout(ctx, 4*floodDial)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

// stranger's TLS: nothing is checked, nothing is shown.
func careless() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{auth.ALPNHTTP}}
}

func idle(ctx context.Context, addr string) (net.Conn, error) { return secured(ctx, addr, careless()) }

// halfHead sends the head of a request without its end.
func halfHead(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := secured(ctx, addr, careless())
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(floodDial))
	if _, err := fmt.Fprintf(conn, "GET /v1/jobs HTTP/1.1\r\nHost: %s\r\nX-A: %s", addr, strings.Repeat("a", headLength)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// halfBody sends a request without its last byte.
func halfBody(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := secured(ctx, addr, careless())
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("POST /v1/session HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nX-Nomadlike-Request: 1\r\nContent-Length: %d\r\n\r\n", addr, bodyLength)
	_ = conn.SetWriteDeadline(time.Now().Add(floodDial))
	if _, err := conn.Write(append([]byte(head), make([]byte, bodyLength-1)...)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// keyless begins a stream of gossip whose encrypted message is announced as
// large and sent without a key.
func keyless(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := silent(ctx, addr)
	if err != nil {
		return nil, err
	}
	// memberlist: a label, then an encrypted message with its length.
	label := gossip.DefaultLabel
	head := append([]byte{244, byte(len(label))}, label...)
	head = append(head, 10)
	head = binary.BigEndian.AppendUint32(head, 19<<20)
	_ = conn.SetWriteDeadline(time.Now().Add(floodDial))
	if _, err := conn.Write(append(head, make([]byte, gossipSends)...)); err != nil && !errors.Is(err, context.Canceled) {
		var cut net.Error
		if !errors.As(err, &cut) {
			_ = conn.Close()
			return nil, err
		}
		// It was cut off: that is one of the ways to hold it. It counts as sent.
	}
	return conn, nil
}

// judge submits jobs for a time, as another person at another address, and
// says whether they were answered within a second and the nodes stayed.
func (t *target) judge(span time.Duration) {
	t.line("submissions of others are answered within 1 s, and nodes stay", "a submission before", func(ctx context.Context) error {
		_, err := t.admin.SubmitJob(ctx, plainJob("before"), "")
		return err
	}, func(ctx context.Context) error {
		nodes := func() (int, error) {
			list, _, err := t.admin.Nodes(ctx, nil)
			if err != nil {
				return 0, err
			}
			ready := 0
			for i := range list.Nodes {
				if list.Nodes[i].Status == "ready" {
					ready++
				}
			}
			return ready, nil
		}
		before, err := nodes()
		if err != nil || before == 0 {
			return fmt.Errorf("%d nodes are ready: %w", before, err)
		}
		var took []time.Duration
		for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			client, err := api.New(api.Config{Address: "https://" + t.servers[len(took)%len(t.servers)], CAPEM: t.ca, Token: t.token, RetryFor: -1})
			if err != nil {
				return err
			}
			begin := time.Now()
			if _, err := client.SubmitJob(ctx, plainJob(fmt.Sprint("judge-", time.Now().UnixNano())), ""); err != nil {
				return fmt.Errorf("submit after %s: %w", time.Since(begin), err)
			}
			took = append(took, time.Since(begin))
			client.Close() // the next one shakes hands again
		}
		after, err := nodes()
		if err != nil || after < before {
			return fmt.Errorf("%d nodes are ready, were %d: %v", after, before, err)
		}
		slices.Sort(took)
		fmt.Printf("        %d submissions, each on a new connection: median %s, 90 %% %s, worst %s; %d nodes\n",
			len(took), round(took[len(took)/2]), round(took[len(took)*9/10]), round(took[len(took)-1]), after)
		if took[len(took)*9/10] > time.Second {
			return fmt.Errorf("one in ten took longer than %s", round(took[len(took)*9/10]))
		}
		return nil
	})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// plainJob is a small job of the plain project that ends at once.
func plainJob(name string) api.JobRequest {
	return api.JobRequest{HCL: fmt.Sprintf("job %q {\n  project = \"plain\"\n  resources {\n    cpu = 0.1\n    memory = \"16MiB\"\n  }\n  task { command = \"true\" }\n}\n", name)}
}
