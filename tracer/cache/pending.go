package cache

// Pending is a table of things that wait for their other half, which may never
// come. It keeps the youngest: between half of maxEntries and all of it. What it
// gives up on is counted.
type Pending[K comparable, V any] struct {
	young, old map[K]V
	Dropped    uint64 // entries that were given up on
	Half       int    // entries of a generation, maxEntries/2 if 0
}

// maxEntries bounds a table, where it has no bound of its own.
const maxEntries = 1 << 20

// Put adds or replaces an entry.
func (w *Pending[K, V]) Put(key K, value V) {
	half := w.Half
	if half == 0 {
		half = maxEntries / 2
	}
	if w.young == nil || len(w.young) >= half {
		w.Dropped += uint64(len(w.old))
		w.young, w.old = map[K]V{}, w.young
	}
	delete(w.old, key)
	w.young[key] = value
}

// Get finds an entry and leaves it.
func (w *Pending[K, V]) Get(key K) (value V, ok bool) {
	if value, ok = w.young[key]; ok {
		return value, true
	}
	value, ok = w.old[key]
	return value, ok
}

// Take finds an entry, which then waits no more.
func (w *Pending[K, V]) Take(key K) (value V, ok bool) {
	value, ok = w.Get(key)
	delete(w.young, key)
	delete(w.old, key)
	return value, ok
}
