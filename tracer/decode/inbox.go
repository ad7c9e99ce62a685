package decode

import (
	"sync"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// inbox is what others ask the decoder's goroutine to do. Putting something
// in never waits: while a session attaches nothing takes it out yet, and a job with many
// workers asks for thousands of rows.
type inbox struct {
	// mu is between who asks (the manager, and the goroutines that read counters and take
	// probes out) and the decoder, which takes.
	mu    sync.Mutex
	queue []func(*Decoder)
}

func (i *inbox) add(f func(*Decoder)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = append(i.queue, f)
}

// take returns what has arrived, in its order.
func (i *inbox) take() []func(*Decoder) {
	i.mu.Lock()
	defer i.mu.Unlock()
	queue := i.queue
	i.queue = nil
	return queue
}

// Do runs something on the decoder's goroutine, some time later; never, once that has
// failed.
func (d *Decoder) Do(f func(*Decoder)) { d.inbox.add(f) }

// Write hands a row to the sink there, beside the batches.
func (d *Decoder) Write(row func(event.Sink) error) {
	d.Do(func(d *Decoder) { d.Rows.Out.Keep(row(&d.Rows.Out)) })
}

// Serve runs what others asked for. It belongs to the decoder's goroutine, as Run does.
func (d *Decoder) Serve() {
	for queue := d.inbox.take(); len(queue) > 0; queue = d.inbox.take() {
		for _, f := range queue {
			f(d)
		}
	}
}
