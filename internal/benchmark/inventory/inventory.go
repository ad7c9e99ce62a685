// Package inventory lists what a benchmark ran on and with: what has to be equal, or named, before two results are
// compared.
package inventory

import (
	"cmp"
	"slices"
)

// Item is one fact. Values of several, such as network cards, are joined by ", ".
type Item struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Inventory has each key once, in order.
type Inventory []Item

// add appends a fact that is known.
func (v *Inventory) add(key, value string) {
	if value != "" {
		*v = append(*v, Item{key, value})
	}
}

// Get is the value of a key, "" where it is not known.
func (v Inventory) Get(key string) string {
	for _, item := range v {
		if item.Key == key {
			return item.Value
		}
	}
	return ""
}

// Difference is a fact of which two inventories say different things; "" is not known.
type Difference struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Differences lists what differs between what two sets of runs had; where the runs of one set differ among each other,
// all their values count.
func Differences(before, after []Inventory) (all []Difference) {
	keys := map[string]bool{}
	for _, v := range slices.Concat(before, after) {
		for _, item := range v {
			keys[item.Key] = true
		}
	}
	for key := range keys {
		b, a := joined(before, key), joined(after, key)
		if a != b {
			all = append(all, Difference{key, b, a})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// joined are the distinct values of a key.
func joined(all []Inventory, key string) string {
	var values []string
	for _, v := range all {
		if value := v.Get(key); value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return join(values)
}
