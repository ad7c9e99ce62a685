package tracer

// recent is a table that keeps what was asked for last: between half of its limit
// and all of it. What it lets go of is counted, and can be made again.
type recent[K comparable, V any] struct {
	young, old map[K]V
	half       int
	evicted    uint64
}

func newRecent[K comparable, V any](limit int) recent[K, V] {
	return recent[K, V]{young: map[K]V{}, half: max(1, limit/2)}
}

// get finds an entry, which is young again then.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	if value, ok = r.young[key]; ok {
		return value, true
	}
	if value, ok = r.old[key]; ok {
		delete(r.old, key)
		r.put(key, value)
	}
	return value, ok
}

// put adds or replaces an entry.
func (r *recent[K, V]) put(key K, value V) {
	if _, ok := r.young[key]; !ok && len(r.young) >= r.half {
		r.evicted += uint64(len(r.old))
		r.young, r.old = map[K]V{}, r.young
	}
	delete(r.old, key)
	r.young[key] = value
}

func (r *recent[K, V]) len() int { return len(r.young) + len(r.old) }
