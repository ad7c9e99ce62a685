package tracer

// waiting is a table of things that wait for their other half, which may never
// come. It keeps the youngest: between half of maxWaiting and all of it. What it
// gives up on is counted.
type waiting[K comparable, V any] struct {
	young, old map[K]V
	given      uint64 // up on
	half       int    // entries of a generation, maxWaiting/2 if 0
}

// maxWaiting bounds the tables of things that wait for their other half.
const maxWaiting = 1 << 20

// put adds or replaces an entry.
func (w *waiting[K, V]) put(key K, value V) {
	half := w.half
	if half == 0 {
		half = maxWaiting / 2
	}
	if w.young == nil || len(w.young) >= half {
		w.given += uint64(len(w.old))
		w.young, w.old = map[K]V{}, w.young
	}
	delete(w.old, key)
	w.young[key] = value
}

// get finds an entry and leaves it.
func (w *waiting[K, V]) get(key K) (value V, ok bool) {
	if value, ok = w.young[key]; ok {
		return value, true
	}
	value, ok = w.old[key]
	return value, ok
}

// take finds an entry, which then waits no more.
func (w *waiting[K, V]) take(key K) (value V, ok bool) {
	value, ok = w.get(key)
	delete(w.young, key)
	delete(w.old, key)
	return value, ok
}
