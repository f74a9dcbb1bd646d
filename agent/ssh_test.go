package agent

import (
	"context"
	"net"
	"testing"

	"golang.org/x/crypto/ssh"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// sshCommand runs a command in a task through ssh, as the command line and the
// machine's ssh do together, and returns what waits until it has ended. The command
// has started when sshCommand returns.
func sshCommand(t *testing.T, client *api.Client, allocID, command string) (wait func() error) {
	t.Helper()
	stream, err := client.Exec(t.Context(), allocID, structs.ExecStart{SSH: new(structs.SSHHost)})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { // to the task
		buffer := make([]byte, 32<<10)
		for {
			n, err := far.Read(buffer)
			if n > 0 && stream.SendStdin(ctx, buffer[:n]) != nil || err != nil {
				return
			}
		}
	}()
	go func() { // from it
		defer far.Close()
		for {
			down, err := stream.Recv(ctx)
			if err != nil || down.Exit != nil {
				return
			}
			if _, err := far.Write(down.Stdout); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { near.Close(); far.Close() })
	anyHost := func(string, net.Addr, ssh.PublicKey) error { return nil } // the script of the command line checks it
	connection, channels, requests, err := ssh.NewClientConn(near, "task", &ssh.ClientConfig{User: "anybody", HostKeyCallback: anyHost})
	if err != nil {
		t.Fatal(err)
	}
	session, err := ssh.NewClient(connection, channels, requests).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	output, err := session.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start("echo; " + command); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return session.Wait
}
