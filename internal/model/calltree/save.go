package calltree

import "github.com/ebpfprof/ebpfprof/internal/dataset/derived"

func number(get func(*jsonNode) float64) func(*jsonNode) (float64, bool) {
	return func(n *jsonNode) (float64, bool) { return get(n), true }
}

func words(get func(*jsonNode) string) func(*jsonNode) (string, bool) {
	return func(n *jsonNode) (string, bool) { return get(n), get(n) != "" }
}

var columns = []derived.Column[jsonNode]{
	{Name: "node_id", Ints: func(n *jsonNode) (int64, bool) { return int64(n.ID), true }},
	{Name: "parent_id", Ints: func(n *jsonNode) (int64, bool) {
		if n.ParentID == nil {
			return 0, false
		}
		return int64(*n.ParentID), true
	}},
	{Name: "kind", Texts: words(func(n *jsonNode) string { return string(n.Kind) })},
	{Name: "name", Texts: words(func(n *jsonNode) string { return n.Name })},
	{Name: "file", Texts: words(func(n *jsonNode) string { return n.File })},
	{Name: "line", Ints: func(n *jsonNode) (int64, bool) { return int64(n.Line), n.Line > 0 }},
	{Name: "link_method", Texts: words(func(n *jsonNode) string { return n.Link })},
	{Name: "metric", Texts: words(func(n *jsonNode) string { return n.Metric })},
	{Name: "count", Floats: number(func(n *jsonNode) float64 { return n.Count })},
	{Name: "sum", Floats: number(func(n *jsonNode) float64 { return n.Sum })},
	{Name: "min", Floats: number(func(n *jsonNode) float64 { return n.Min })},
	{Name: "max", Floats: number(func(n *jsonNode) float64 { return n.Max })},
	{Name: "mean", Floats: number(func(n *jsonNode) float64 { return n.Mean })},
	{Name: "m2", Floats: number(func(n *jsonNode) float64 { return n.m2 })},
	{Name: "inclusive", Floats: number(func(n *jsonNode) float64 { return n.Total })},
	{Name: "analysis_version", Texts: words(func(*jsonNode) string { return derived.Version })},
}

// Save writes table context_node of the dataset at root: the nodes of each metric,
// whose ids are of that metric's tree.
func (n *Node) Save(root string) error {
	var all []jsonNode
	for _, metric := range n.Metrics() {
		all = append(all, n.rows(metric)...)
	}
	return derived.Write(root, "context_node", columns, all)
}
