package tracer

import "sync"

// requests are what others ask the decoder's goroutine to do. Nobody waits to
// put one in: while a session attaches there is no decoder yet, and a job with
// many workers asks for thousands of rows.
type requests struct {
	mu    sync.Mutex
	queue []func(*decoder)
}

func (r *requests) add(f func(*decoder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, f)
}

// take returns what is there, in the order it came.
func (r *requests) take() []func(*decoder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queue
	r.queue = nil
	return queue
}
