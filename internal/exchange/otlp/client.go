package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// path is where a collector takes profiles; it will change with the version.
const path = "/v1development/profiles"

// Endpoint is where requests go, of the address of a collector, such as
// http://127.0.0.1:4318. A path in it stays as it is.
func Endpoint(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%q is no address", address)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%q is no address of a collector: give one such as http://127.0.0.1:4318", address)
	case u.User != nil:
		return "", errors.New("no password in the address: headers come from OTEL_EXPORTER_OTLP_HEADERS")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	return u.String(), nil
}

// Headers reads OpenTelemetry's OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value, the
// values escaped as in an address.
func Headers(text string) (http.Header, error) {
	all := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n\x00") {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: give name=value,name=value") // and not the values: they are secrets
		}
		all.Add(name, value)
	}
	return all, nil
}

// Client sends requests to a collector, by OTLP over HTTP. It is an outbox's Taker: an
// error is that the request is to be sent again; what a collector never takes is counted
// and let go, as OTLP's specification has it.
type Client struct {
	address func() string
	headers http.Header
	http    *http.Client

	mu      sync.Mutex // the sender's goroutine, and who asks
	refused int64
	why     string
}

// NewClient returns one for the collector whose address is asked for each time; "" is that
// there is none any more.
func NewClient(address func() string, headers http.Header) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.IdleConnTimeout = 1, 5*time.Minute
	return &Client{address: address, headers: headers, http: &http.Client{Transport: transport,
		// Headers have secrets, which are for the one that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Refused is how many requests, or profiles of them, the collector will not take, and why
// the last one.
func (c *Client) Refused() (n int64, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused, c.why
}

// mostAnswer is how much of an answer is read.
const mostAnswer = 64 << 10

// Put sends a request, gzipped.
func (c *Client) Put(ctx context.Context, _ string, content []byte) error {
	address := c.address()
	if address == "" {
		c.refuse(1, "the collector was removed from the configuration")
		return nil
	}
	endpoint, err := Endpoint(address)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("sending profiles: %w", err)
	}
	maps.Copy(r.Header, c.headers)
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "ebpfprof")
	answer, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("sending profiles: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch {
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusBadGateway ||
		answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusGatewayTimeout:
		return fmt.Errorf("sending profiles: the collector answered %s", answer.Status)
	case answer.StatusCode/100 != 2:
		c.refuse(1, "the collector answered "+answer.Status)
	case err == nil:
		if n, why := rejected(body); n > 0 {
			c.refuse(n, why)
		}
	}
	return nil
}

func (c *Client) refuse(n int64, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused, c.why = c.refused+n, why
}

// rejected reads an ExportProfilesServiceResponse: partial_success 1, of it
// rejected_profiles 1 and error_message 2. pdata's reader would bring gRPC.
func rejected(answer []byte) (n int64, why string) {
	each(answer, func(number protowire.Number, value []byte, _ uint64) {
		if number != 1 {
			return
		}
		each(value, func(number protowire.Number, value []byte, varint uint64) {
			switch number {
			case 1:
				n = int64(varint)
			case 2:
				why = string(value)
			}
		})
	})
	return n, why
}

// each calls f for each field of a message, as far as it is one.
func each(message []byte, f func(number protowire.Number, value []byte, varint uint64)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		switch kind {
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(message)
			f(number, value, 0)
		case protowire.VarintType:
			value, _ := protowire.ConsumeVarint(message)
			f(number, nil, value)
		}
		message = message[n:]
	}
}
