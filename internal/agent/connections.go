package agent

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Every user of the node may ask the agent's port, and may keep what it opens there.

const (
	// mostConnections are served at once, mostOfPeer those of one user of the node, or of
	// one address elsewhere. Prometheus has one.
	mostConnections = 64
	mostOfPeer      = 8
)

// newServer serves on the agent's port. Who says nothing, or does not read what it asked for, is
// not waited for.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
}

// limited is a listener whose connections are few, and of each peer fewer: those beyond are
// closed at once.
type limited struct {
	net.Listener
	peerOf func(net.Conn) string

	mu   sync.Mutex
	all  int
	peer map[string]int
}

func limit(l net.Listener) *limited {
	return &limited{Listener: l, peerOf: peerOf, peer: map[string]int{}}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.admit(c); counted != nil {
			return counted, nil
		}
		c.Close()
	}
}

func (l *limited) admit(c net.Conn) net.Conn {
	l.mu.Lock()
	full := l.all >= mostConnections
	l.mu.Unlock()
	if full {
		return nil
	}
	peer := l.peerOf(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= mostConnections || l.peer[peer] >= mostOfPeer {
		return nil
	}
	l.all++
	l.peer[peer]++
	return &connection{Conn: c, gone: sync.OnceFunc(func() { l.leave(peer) })}
}

func (l *limited) leave(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peer[peer]--; l.peer[peer] == 0 {
		delete(l.peer, peer)
	}
}

type connection struct {
	net.Conn
	gone func()
}

func (c *connection) Close() error {
	c.gone()
	return c.Conn.Close()
}

// peerOf is who connected: the user of the node, who may have as many addresses of the
// loopback as it likes, else the address.
func peerOf(c net.Conn) string {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err == nil {
		if user, ok := userOf(from, to); ok {
			return "user " + user
		}
	}
	return from.Addr().Unmap().String()
}

// userOf looks for the user of a connection that comes from this node, among its sockets
// (proc_net(5)).
func userOf(from, to netip.AddrPort) (user string, ok bool) {
	for _, table := range []struct {
		path string
		of   func(netip.AddrPort) (string, bool)
	}{{"/proc/net/tcp", inTCP}, {"/proc/net/tcp6", inTCP6}} {
		local, fits := table.of(from)
		remote, also := table.of(to)
		if !fits || !also {
			continue
		}
		file, err := os.Open(table.path)
		if err != nil {
			continue
		}
		user, ok = findSocket(bufio.NewScanner(file), local, remote)
		file.Close()
		if ok {
			return user, true
		}
	}
	return "", false
}

func findSocket(lines *bufio.Scanner, local, remote string) (user string, ok bool) {
	for lines.Scan() {
		// sl local_address rem_address st queues tr tm->when retrnsmt uid …
		fields := bytes.Fields(lines.Bytes())
		if len(fields) > 7 && string(fields[1]) == local && string(fields[2]) == remote {
			return string(fields[7]), true
		}
	}
	return "", false
}

// inTCP and inTCP6 write an address as the two tables do: words of 32 bits in the machine's order,
// which is little-endian on all machines that we run on.
func inTCP(a netip.AddrPort) (string, bool) {
	if !a.Addr().Unmap().Is4() {
		return "", false
	}
	b := a.Addr().Unmap().As4()
	return words(b[:]) + ":" + port(a), true
}

func inTCP6(a netip.AddrPort) (string, bool) {
	b := a.Addr().As16()
	return words(b[:]) + ":" + port(a), true
}

func words(b []byte) string {
	var text strings.Builder
	for ; len(b) > 0; b = b[4:] {
		text.WriteString(hex8(binary.LittleEndian.Uint32(b), 8))
	}
	return text.String()
}

func port(a netip.AddrPort) string { return hex8(uint32(a.Port()), 4) }

func hex8(v uint32, width int) string {
	text := strings.ToUpper(strconv.FormatUint(uint64(v), 16))
	return strings.Repeat("0", width-len(text)) + text
}
