package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/progress"
)

// Options of a page; the zero value is what most want.
type Options struct {
	// Timeout interrupts a request's query; 0 is 30 s. A report has ten times as long.
	Timeout time.Duration
	// Idle ends the server when nobody asked for so long; 0 is never.
	Idle time.Duration
	// Source is a directory in which source files are looked for before the paths that the recording names; "" is none.
	Source string
	// Before is a dataset that this one is compared with; "" is none.
	Before string
	// Store is what the fleet's store is called on the command line whose tables are served; "" is none.
	Store string
}

const defaultTimeout = 30 * time.Second

// Server answers the page's requests about one dataset, which it only reads and whose changes it follows.
type Server struct {
	options Options
	path    string
	root    string
	token   string

	mu       sync.Mutex // guards what follows
	current  *edition
	news     chan struct{} // closed when the state is another
	state    state
	recorder *progress.Line // what the recorder said last; nil of a dataset that no recorder of ours writes
	retiring sync.WaitGroup
	failure  error // of closing an edition

	life   context.Context // ends with the server
	end    context.CancelFunc
	work   sync.WaitGroup
	seenNS atomic.Int64 // when a request came last
	done   atomic.Int64 // requests answered
}

// New opens a dataset for a page, with the errors of package dataset.
func New(path string, o Options) (*Server, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Before != "" { // what is wrong with it is known now, not when the page asks
		before, err := dataset.OpenWithin(o.Before, limits())
		if err != nil {
			return nil, err
		}
		if err := before.Close(); err != nil {
			return nil, err
		}
	}
	first, err := openEdition(path, o, nil)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, path: path, root: first.root, token: newToken(), current: first, news: make(chan struct{})}
	s.state = state{Version: 1, Edition: first.number, Recording: first.recording}
	s.life, s.end = context.WithCancel(context.Background())
	s.seenNS.Store(time.Now().UnixNano())
	s.work.Go(s.follow)
	return s, nil
}

// Close interrupts what runs and releases the dataset.
func (s *Server) Close() error {
	s.end()
	s.work.Wait()
	s.retire(nil)
	s.retiring.Wait()
	return s.failure
}

// Address is what a browser opens: the token is in the fragment, which browsers send to nobody.
func (s *Server) Address(host, link string) string {
	fragment := "token=" + s.token
	if link != "" {
		fragment += "&" + link
	}
	return "http://" + host + "/#" + fragment
}

// Handler answers the page's requests.
func (s *Server) Handler() http.Handler {
	all := http.NewServeMux()
	all.Handle("/", newAssets())
	all.Handle("GET /api/status", s.authorised(http.HandlerFunc(s.status)))
	all.Handle("GET /api/recorder", s.authorised(http.HandlerFunc(s.said)))
	all.Handle("/api/", s.authorised(http.HandlerFunc(s.ofCurrent)))
	return headers(localHost(s.counted(all)))
}

// ofCurrent answers from the edition that is the current one now.
func (s *Server) ofCurrent(w http.ResponseWriter, r *http.Request) {
	e := s.borrow()
	if e == nil {
		return
	}
	defer s.giveBack(e)
	e.api.ServeHTTP(w, r)
}

// counted notes when requests come, for the idle limit.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.seenNS.Store(time.Now().UnixNano())
		next.ServeHTTP(w, r)
		s.done.Add(1)
		s.seenNS.Store(time.Now().UnixNano())
	})
}

// ErrIdle is returned by Serve when nobody used the page for Options.Idle.
var ErrIdle = errors.New("nobody used the page")

// Serve answers on a listener until the context ends, which is no error, or the page is idle.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return s.life },
	}
	s.seenNS.Store(time.Now().UnixNano())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	idle := s.idle(ctx)
	var result error
	select {
	case err := <-ended:
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	case <-idle:
		result = ErrIdle
	}
	s.end()
	_ = server.Close() // the connections of a page that is still open
	<-ended
	return result
}

// idle is closed when nobody asked for Options.Idle.
func (s *Server) idle(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	if s.options.Idle <= 0 {
		return over
	}
	go func() {
		for {
			left := s.options.Idle - time.Since(time.Unix(0, s.seenNS.Load()))
			if left <= 0 {
				close(over)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
		}
	}()
	return over
}
