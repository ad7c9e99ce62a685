package calltree

// exclusive names the operator that nodes are of, wherever they stand.
type exclusive struct {
	kind Kind
	name string
}

// Known has the rows of each operator and backward node sum to what is known of its exclusive time, in the tree's unit, by
// its name. Slices that happen to see more than their share would add up to more time than there was; what is below a node
// is a sum of exclusive times still, so that no child exceeds its parent. What is not in known stays as it is.
func (n *Node) Known(metric string, known map[string]float64) {
	sums := map[exclusive]float64{}
	n.each(func(at *Node) {
		if m := at.Own[metric]; m != nil {
			sums[at.exclusive()] += m.Sum
		}
	})
	n.each(func(at *Node) {
		key := at.exclusive()
		if ns, is := known[key.name]; is && key.kind != "" && at.Own[metric] != nil && sums[key] > 0 {
			at.Own[metric].scale(ns / sums[key])
		}
	})
}

// exclusive is the zero value for nodes that are no operators.
func (n *Node) exclusive() exclusive {
	if n.Kind != Operator && n.Kind != Backward {
		return exclusive{}
	}
	return exclusive{n.Kind, n.Name}
}

func (n *Node) each(visit func(*Node)) {
	visit(n)
	for _, c := range n.children {
		c.each(visit)
	}
}

// scale makes every value as many times as long.
func (m *Metric) scale(by float64) {
	m.Sum, m.Min, m.Max, m.Mean, m.M2 = by*m.Sum, by*m.Min, by*m.Max, by*m.Mean, by*by*m.M2
	for i := range m.seen {
		m.seen[i].sum, m.seen[i].weighted = by*m.seen[i].sum, by*m.seen[i].weighted
	}
}
