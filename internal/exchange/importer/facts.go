package importer

import "encoding/json"

// Facts are what an export of ours in torch.profiler's form says beside its rows, where that
// form has no place for it: without them an export that is imported again could not be
// compared with its recording.
type Facts struct {
	// RankTold: the rank is the recording's. Readers of the form want one in any case.
	RankTold         bool   `json:"rank_told"`
	Framework        string `json:"framework"`
	FrameworkVersion string `json:"framework_version"`
	Python           string `json:"python"`
	Processor        string `json:"processor"`
	Level            string `json:"level"`
}

// facts takes the member, which others may write, too: what does not parse is absent.
func (k *kineto) facts(value []byte) {
	var f Facts
	if json.Unmarshal(value, &f) == nil {
		k.own = &f
	}
}

// correct makes a description say what the exported recording said.
func (f *Facts) correct(d *description) {
	if !f.RankTold {
		d.rank, d.worldSize = nil, nil
	}
	d.framework, d.frameworkVersion, d.python, d.processor, d.level = f.Framework, f.FrameworkVersion, f.Python, f.Processor, f.Level
}
