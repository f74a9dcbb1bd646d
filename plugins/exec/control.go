package exec

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/exec/supervisor"
)

// dial reaches the control socket of a task. It goes through the directory's
// descriptor, because the path may be longer than an address.
func (t *task) dial() (*net.UnixConn, error) {
	dir := t.home.dir
	fd, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer syscall.Close(fd)
	name := "/proc/self/fd/" + strconv.Itoa(fd) + "/" + string(t.id) + supervisor.SocketSuffix
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: name})
}

// writeRequest sends a request, with descriptors when there are some.
func writeRequest(connection *net.UnixConn, request *supervisor.Request, descriptors ...int) error {
	data, err := supervisor.EncodeRequest(request)
	if err != nil {
		return err
	}
	if len(descriptors) > 0 {
		// The first byte carries them; the kernel may take less than all of a
		// long message at once.
		n, _, err := connection.WriteMsgUnix(data[:1], syscall.UnixRights(descriptors...), nil)
		if err != nil {
			return fmt.Errorf("send descriptors: %w", err)
		}
		data = data[n:]
	}
	if _, err := connection.Write(data); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	return nil
}

func readReply(connection *net.UnixConn) (*supervisor.Reply, error) {
	body, err := taskproc.ReadMessage(connection, supervisor.MessageBytesMax)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	var reply supervisor.Reply
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return &reply, nil
}

func exchange(connection *net.UnixConn, request *supervisor.Request) (*supervisor.Reply, error) {
	if err := writeRequest(connection, request); err != nil {
		return nil, err
	}
	return readReply(connection)
}
