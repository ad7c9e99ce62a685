// Package cache has tables that keep within a limit whatever a job does, and count
// what they let go of.
//
// The package is no part of the public API: it may change with any version.
package cache

// Recent is a table that keeps what was asked for last: between half of its limit
// and all of it. What it lets go of is counted, and can be made again.
type Recent[K comparable, V any] struct {
	young, old map[K]V
	half       int
	evicted    uint64
}

func NewRecent[K comparable, V any](limit int) Recent[K, V] {
	return Recent[K, V]{young: map[K]V{}, half: max(1, limit/2)}
}

// Get finds an entry, which is young again then.
func (r *Recent[K, V]) Get(key K) (value V, ok bool) {
	if value, ok = r.young[key]; ok {
		return value, true
	}
	if value, ok = r.old[key]; ok {
		delete(r.old, key)
		r.Put(key, value)
	}
	return value, ok
}

// Put adds or replaces an entry.
func (r *Recent[K, V]) Put(key K, value V) {
	if _, ok := r.young[key]; !ok && len(r.young) >= r.half {
		r.evicted += uint64(len(r.old))
		r.young, r.old = map[K]V{}, r.young
	}
	delete(r.old, key)
	r.young[key] = value
}

func (r *Recent[K, V]) Len() int { return len(r.young) + len(r.old) }
