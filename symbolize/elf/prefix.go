package elf

// prefixTree finds the longest of many prefixes of a name: a byte trie in one
// slice, walked once per symbol.
type prefixTree struct {
	nodes []prefixNode
}

type prefixNode struct {
	next [256]uint32 // 0 is none: nothing leads back to the root
	end  int32       // index of the prefix that ends here, -1 is none
}

func newPrefixTree(prefixes []string) *prefixTree {
	t := &prefixTree{nodes: []prefixNode{{end: -1}}}
	for i, prefix := range prefixes {
		at := uint32(0)
		for j := range len(prefix) {
			next := t.nodes[at].next[prefix[j]]
			if next == 0 {
				next = uint32(len(t.nodes))
				t.nodes = append(t.nodes, prefixNode{end: -1})
				t.nodes[at].next[prefix[j]] = next
			}
			at = next
		}
		if t.nodes[at].end < 0 {
			t.nodes[at].end = int32(i)
		}
	}
	return t
}

// match returns the index of the longest prefix of name, -1 if there is none.
func (t *prefixTree) match(name []byte) int {
	at, found := uint32(0), t.nodes[0].end
	for _, c := range name {
		at = t.nodes[at].next[c]
		if at == 0 {
			break
		}
		if end := t.nodes[at].end; end >= 0 {
			found = end
		}
	}
	return int(found)
}
