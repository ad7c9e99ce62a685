package ondemand

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The messages of Kineto's fabric: the size of the payload in 8 bytes, a type in 32, the payload; numbers are
// little-endian (third_party/kineto, libkineto/src/FabricManager.h and IpcFabricConfigClient.cpp).
const (
	headBytes = 8 + typeBytes
	typeBytes = 32
	// mostMessage is more than any message of a client: it names itself and its ancestors, 4 bytes each.
	mostMessage = 4096
)

// Types of messages.
const (
	registers = "ctxt" // int32 device, int32 pid, int64 job; the answer is an int32
	requests  = "req"  // int32 kinds, int32 n, int64 job, n int32 pids; the answer is a configuration, empty for none
)

// activities is the kind of configuration that starts a trace, a bit of a request's first number; the other bit is
// for counters.
const activities = 2

var errMessage = errors.New("not a message of a profiler")

type message struct {
	kind    string
	payload []byte
}

func (m message) bytes() []byte {
	b := make([]byte, headBytes, headBytes+len(m.payload))
	binary.LittleEndian.PutUint64(b, uint64(len(m.payload)))
	copy(b[8:headBytes], m.kind)
	return append(b, m.payload...)
}

func parseMessage(b []byte) (message, error) {
	if len(b) < headBytes || binary.LittleEndian.Uint64(b) != uint64(len(b)-headBytes) {
		return message{}, errMessage
	}
	kind, _, _ := bytes.Cut(b[8:headBytes], []byte{0})
	return message{string(kind), b[headBytes:]}, nil
}

// wantsTrace reports whether a request is for a configuration that starts a trace.
func (m message) wantsTrace() bool {
	return m.kind == requests && len(m.payload) >= 16 && binary.LittleEndian.Uint32(m.payload)&activities != 0
}
