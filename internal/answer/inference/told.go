package inference

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// told is what shapes and ranges tell of a step.
type told struct {
	batch   float64 // sequences; 0 is not known
	queries float64 // positions of a sequence that attention is computed for
	tokens  float64 // looked up in the embedding, of all sequences
	said    string  // the kind that a range says
}

// kind is whether a step prefills or decodes: what a range says, else by how many positions of a sequence attention is
// computed for (one while decoding: the others are in the cache), else by how many tokens are looked up.
func (w told) kind() string {
	switch {
	case w.said != "":
		return w.said
	case w.queries > 1:
		return Prefill
	case w.queries == 1:
		return Decode
	case w.tokens > 0 && w.batch > 0 && w.tokens > w.batch:
		return Prefill
	case w.tokens > 0 && w.batch > 0:
		return Decode
	}
	return ""
}

// The calls that shapes are read of.
const (
	choosers  = `'aten::argmax', 'aten::multinomial'`
	attention = `'aten::scaled_dot_product_attention', 'aten::_scaled_dot_product_flash_attention', 'aten::_scaled_dot_product_efficient_attention'`
	lookups   = `'aten::embedding'`
)

// read goes through the calls and ranges of the loop's thread, in order of time, beside its steps.
func read(ctx context.Context, db *dataset.DB, t timeline.Thread, loop []timeline.Step) ([]told, error) {
	all := make([]told, len(loop))
	at := 0
	err := db.Each(ctx, fmt.Sprintf(`SELECT ts_ns, layer, name, input_dims FROM span WHERE pid = %d AND tid = %d AND ts_ns >= %d AND
		(layer = 'op' AND input_dims IS NOT NULL AND name IN (%s, %s, %s) OR layer = 'scope') ORDER BY ts_ns`,
		t.PID, t.TID, loop[0].Begin, choosers, attention, lookups), func(v []driver.Value) error {
		ts, _ := v[0].(int64)
		layer, _ := v[1].(string)
		name, _ := v[2].(string)
		dims, _ := v[3].(string)
		for at+1 < len(loop) && loop[at+1].Begin <= ts {
			at++
		}
		if ts >= max(loop[at].Until(), loop[at].End) {
			return nil
		}
		if layer == "scope" {
			all[at].named(name)
			return nil
		}
		all[at].shape(name, dims)
		return nil
	})
	return all, err
}

func (w *told) shape(name, text string) {
	var dims [][]float64
	if json.Unmarshal([]byte(text), &dims) != nil || len(dims) == 0 {
		return
	}
	switch {
	case strings.Contains(choosers, "'"+name+"'"):
		if len(dims[0]) >= 1 && w.said == "" {
			w.batch = 1
			if len(dims[0]) > 1 {
				w.batch = dims[0][0]
			}
		}
	case strings.Contains(attention, "'"+name+"'"):
		if q := dims[0]; len(q) == 4 {
			w.queries = max(w.queries, q[2])
			if w.batch == 0 {
				w.batch = q[0]
			}
		}
	case len(dims) > 1 && w.tokens == 0:
		w.tokens = 1
		for _, n := range dims[1] {
			w.tokens *= n
		}
	}
}

// The words that ranges of engines have for the phases of inference, each with the numbers that follow.
var (
	prefillWord = regexp.MustCompile(`(?i)(?:prefill|extend|context|prompt)[a-z]*[\s_:=\[(]*(\d+)?`)
	decodeWord  = regexp.MustCompile(`(?i)(?:decod(?:e|ing)|generation)[a-z]*[\s_:=\[(]*(\d+)?`)
	batchWord   = regexp.MustCompile(`(?i)\b(?:bs|bsz|batch|batch_size|num_reqs|reqs|requests|seqs|num_seqs)\s*[=: ]\s*(\d+)`)
)

// named reads what the name of a range says: a phase, with how many sequences are in it, or the batch.
func (w *told) named(name string) {
	prefills, prefill := counted(prefillWord, name)
	decodes, decode := counted(decodeWord, name)
	switch {
	case prefill && prefills != 0:
		w.said = Prefill
	case decode && decodes != 0:
		w.said = Decode
	}
	if prefill && decode && prefills >= 0 && decodes >= 0 {
		w.batch = prefills + decodes
	}
	if m := batchWord.FindStringSubmatch(name); m != nil {
		if n, err := strconv.ParseFloat(m[1], 64); err == nil {
			w.batch = n
		}
	}
}

// counted is the number behind a word, -1 without one.
func counted(word *regexp.Regexp, name string) (n float64, found bool) {
	m := word.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		n = -1
	}
	return n, true
}
