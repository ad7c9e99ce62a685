package reader

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Requests and answers go through a pair of sockets that keep packets apart. The first packet
// of a message has a head and the descriptors, the others carry on with its text.

const (
	packetBytes = 60 << 10 // a packet has to fit into the socket's buffer, 208 KiB
	headBytes   = 20       // what it is, the operation or the error, the length of the text, and how long it took
	maxFiles    = 2
	// MaxText bounds a message: 16 MiB of mappings are the longest.
	maxText = 64 << 20
)

// Kinds of message.
const (
	isRequest = iota + 1
	isAnswer
	isProgress // the reader goes on with a request that takes long
)

type message struct {
	kind  uint32
	code  uint32        // of a request the operation, of an answer the system's error
	took  time.Duration // of an answer: for how long the reader was at it, but for its waits for a CPU
	text  []byte
	files []int
}

var errMessage = errors.New("a message of a reader that is none")

// send writes a message. The descriptors stay the sender's.
// charged is what of the time that an answer took its process pays for: not that in which other programs had
// the CPUs. The reader measures it, which has read the job's bytes: it is never more than the answer took.
func (m *message) charged(waited time.Duration) time.Duration { return min(max(m.took, 0), waited) }

func (m *message) send(socket int) error {
	head := binary.NativeEndian.AppendUint32(nil, m.kind)
	head = binary.NativeEndian.AppendUint32(head, m.code)
	head = binary.NativeEndian.AppendUint32(head, uint32(len(m.text)))
	head = binary.NativeEndian.AppendUint64(head, uint64(m.took))
	var rights []byte
	if len(m.files) > 0 {
		rights = unix.UnixRights(m.files...)
	}
	first := min(len(m.text), packetBytes-headBytes)
	if err := sendPacket(socket, append(head, m.text[:first]...), rights); err != nil {
		return err
	}
	for at := first; at < len(m.text); {
		end := min(at+packetBytes, len(m.text))
		if err := sendPacket(socket, m.text[at:end], nil); err != nil {
			return err
		}
		at = end
	}
	return nil
}

func sendPacket(socket int, packet, rights []byte) error {
	for {
		_, err := unix.SendmsgN(socket, packet, rights, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// receive reads a message; wait returns once there is a packet to read, or with the error
// that ends the waiting. buffer has room for a packet.
func receive(socket int, buffer []byte, wait func() error) (m message, err error) {
	defer func() {
		if err != nil {
			m.closeFiles()
		}
	}()
	n, files, err := receivePacket(socket, buffer, wait)
	m.files = files
	if err != nil {
		return m, err
	}
	if n < headBytes {
		return m, errMessage
	}
	m.kind, m.code = binary.NativeEndian.Uint32(buffer), binary.NativeEndian.Uint32(buffer[4:])
	length := int(binary.NativeEndian.Uint32(buffer[8:]))
	m.took = time.Duration(binary.NativeEndian.Uint64(buffer[12:]))
	if length > maxText || n-headBytes > length {
		return m, errMessage
	}
	m.text = append(make([]byte, 0, length), buffer[headBytes:n]...)
	for len(m.text) < length {
		n, more, err := receivePacket(socket, buffer, wait)
		m.files = append(m.files, more...)
		if err != nil {
			return m, err
		}
		if len(m.text)+n > length {
			return m, errMessage
		}
		m.text = append(m.text, buffer[:n]...)
	}
	return m, nil
}

func receivePacket(socket int, buffer []byte, wait func() error) (n int, files []int, err error) {
	var rights [128]byte
	for {
		if err := wait(); err != nil {
			return 0, nil, err
		}
		n, rightsBytes, _, _, err := unix.Recvmsg(socket, buffer, rights[:], unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, nil, err
		}
		files := descriptors(rights[:rightsBytes])
		if n == 0 {
			closeAll(files)
			return 0, nil, io.EOF
		}
		return n, files, nil
	}
}

// descriptors are those that came with a packet.
func descriptors(rights []byte) (files []int) {
	if len(rights) == 0 {
		return nil
	}
	controls, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range controls {
		if fds, err := unix.ParseUnixRights(&controls[i]); err == nil {
			files = append(files, fds...)
		}
	}
	return files
}

func (m *message) closeFiles() {
	closeAll(m.files)
	m.files = nil
}

func closeAll(files []int) {
	for _, fd := range files {
		unix.Close(fd)
	}
}
