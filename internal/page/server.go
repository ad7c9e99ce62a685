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
}

const defaultTimeout = 30 * time.Second

// Server answers the page's requests about one dataset, which it only reads.
type Server struct {
	options  Options
	root     string
	token    string
	print    string      // fingerprint of the dataset's files, as they were when it was opened
	listed   string      // likewise, of their directories
	base     *dataset.DB // read past DuckDB, so that it needs no turn
	pool     *pool
	reports  *reports
	lanes    *lanes
	found    foundSteps
	flames   flames
	madeOnce madeOnce

	recorded recordedTimes
	counts   foundCounters

	life   context.Context // ends with the server; background work runs in it
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
	base, err := dataset.OpenWithin(path, limits())
	if err != nil {
		return nil, err
	}
	if o.Before != "" { // what is wrong with it is known now, not when the page asks
		before, err := dataset.OpenWithin(o.Before, limits())
		if err != nil {
			return nil, errors.Join(err, base.Close())
		}
		if err := before.Close(); err != nil {
			return nil, errors.Join(err, base.Close())
		}
	}
	s := &Server{options: o, root: base.Root(), token: newToken(), base: base, print: fingerprint(base), listed: listed(base)}
	s.life, s.end = context.WithCancel(context.Background())
	s.pool = newPool(path, s.print, limits())
	s.reports = newReports(s)
	s.lanes, s.madeOnce = &lanes{ready: make(chan struct{})}, newMadeOnce()
	s.work.Go(s.buildLanes)
	return s, nil
}

// Close interrupts what runs and releases the dataset.
func (s *Server) Close() error {
	s.end()
	s.work.Wait()
	return errors.Join(s.pool.close(), s.base.Close())
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
	api := http.NewServeMux()
	api.Handle("GET /api/dataset", s.answer(s.describe))
	api.Handle("GET /api/status", s.answer(s.status))
	api.Handle("GET /api/report", http.HandlerFunc(s.report))
	api.Handle("GET /api/lanes", s.answer(s.layLanes))
	api.Handle("GET /api/timeline", http.HandlerFunc(s.timeline))
	api.Handle("GET /api/selection", s.answer(s.selection))
	api.Handle("GET /api/call", s.answer(s.call))
	api.Handle("GET /api/strips", s.answer(s.strips))
	api.Handle("GET /api/flame", s.answer(s.flame))
	api.Handle("GET /api/files", s.answer(s.sources))
	api.Handle("GET /api/source", s.answer(s.source))
	api.Handle("GET /api/steps", s.answer(s.steps))
	api.Handle("GET /api/marked", s.answer(s.marked))
	api.Handle("GET /api/flows", s.answer(s.flows))
	api.Handle("GET /api/counters", s.answer(s.counters))
	api.Handle("GET /api/readings", s.answer(s.readings))
	api.Handle("GET /api/examples", s.answer(s.examples))
	api.Handle("GET /api/diff", http.HandlerFunc(s.diff))
	api.Handle("GET /api/memory", http.HandlerFunc(s.memory))
	api.Handle("GET /api/critical-path", http.HandlerFunc(s.criticalPath))
	api.Handle("GET /api/schema", http.HandlerFunc(s.schema))
	api.Handle("POST /api/query", http.HandlerFunc(s.ask))
	all := http.NewServeMux()
	all.Handle("/", newAssets())
	all.Handle("/api/", s.authorised(api))
	return headers(localHost(s.counted(all)))
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
