//go:build linux

package taskside

import (
	"io"
	"net"
	"time"
)

const dialPatience = 20 * time.Second

// connect dials, says so, and carries bytes both ways until the other end has no
// more. The end of in is told to the other end.
func connect(network, address string, in io.Reader, out io.Writer) error {
	conn, err := (&net.Dialer{Timeout: dialPatience}).Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := out.Write([]byte{Connected}); err != nil {
		return err
	}
	go func() { // may outlive the call; the process ends then
		if _, err := io.Copy(conn, in); err != nil {
			conn.Close()
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other end may be gone
		}
	}()
	_, err = io.Copy(out, conn)
	return err
}
