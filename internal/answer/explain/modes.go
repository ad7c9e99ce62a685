package explain

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
)

// operatorMode: a mode makes operators slower than they have to be: anomaly detection, a type that the processor
// computes slowly or that nobody asked for.
func operatorMode(r *Recording) (found []Explanation, err error) {
	if e, ok := r.anomaly(); ok {
		found = append(found, e)
	}
	types, err := r.slowTypes()
	return append(found, types...), err
}

// anomaly: autograd's anomaly detection stores a traceback for each operator and checks each gradient.
func (r *Recording) anomaly() (Explanation, bool) {
	claims := r.rows(func(row *Row) bool { return row.Stack.Has(signAnomaly) })
	if r.share(claims) < leastShare/5 {
		return Explanation{}, false
	}
	// Tracebacks are made from the metadata's native frames; the checks for NaN are operators of the backward pass.
	at := r.top(claims, func(row *Row) *Frame { return row.Stack.Innermost() })
	checks := r.rows(func(row *Row) bool {
		return row.Stack.Has(signBackward) && (strings.Contains(row.Stack.op, "isnan") || row.Stack.op == "aten::ne" ||
			row.Stack.op == "aten::any")
	})
	for i := range checks {
		claims[i] = 1
	}
	e := Explanation{claims: claims, title: "anomaly detection"}
	if at != nil {
		e.Place = at.place()
	}
	e.sentence = fmt.Sprintf("Autograd's anomaly detection is on and takes %s of the time: it stores a traceback for each operator of the "+
		"forward pass, most at %s, and checks each gradient for NaN.",
		percent(r.share(claims)), placeOr(at))
	e.Advice = "Turn it off (torch.autograd.set_detect_anomaly(False), no detect_anomaly block; Lightning: detect_anomaly=False) unless you look for a NaN."
	return e, true
}

// expensive are operators whose time depends on the type of their elements.
const expensiveOperators = `('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm', 'aten::linear', 'aten::matmul', 'aten::convolution', 'aten::_convolution',
	'aten::mkldnn_convolution', 'aten::convolution_backward', 'aten::scaled_dot_product_attention', 'aten::_scaled_dot_product_flash_attention_for_cpu')`

// slowTypes: matrix products in double precision, or in a half type on a processor.
func (r *Recording) slowTypes() (found []Explanation, err error) {
	type use struct {
		kind      string
		ns, total float64
	}
	var uses []use
	var onDevice sql.NullInt64
	err = r.db.Row(r.ctx, `SELECT count(*) FROM span WHERE layer = 'runtime' AND category = 'launch'`, nil, &onDevice)
	if err != nil {
		return nil, err
	}
	err = r.db.Each(r.ctx, fmt.Sprintf(`SELECT t, sum(ns)::BIGINT, sum(sum(ns)) OVER ()::BIGINT FROM (
			SELECT CASE WHEN array_to_string(input_types, ',') ILIKE '%%double%%' OR array_to_string(input_types, ',') ILIKE '%%float64%%'
			THEN 'float64'
				WHEN array_to_string(input_types, ',') ILIKE '%%bfloat16%%' THEN 'bfloat16'
				WHEN array_to_string(input_types, ',') ILIKE '%%half%%' OR array_to_string(input_types, ',') ILIKE '%%float16%%' THEN 'float16'
				ELSE 'other' END AS t, duration_ns * weight AS ns
			FROM span WHERE pid = %d AND layer = 'op' AND input_types IS NOT NULL AND duration_ns > 0 AND name IN %s)
			GROUP BY 1`, r.Pace.PID, expensiveOperators),
		func(v []driver.Value) error {
			uses = append(uses, use{text(v[0]), float64(integer(v[1])), float64(integer(v[2]))})
			return nil
		})
	if err != nil {
		return nil, nil // recordings without types of operands
	}
	heavy := r.rows(func(row *Row) bool { return isExpensive(row.Stack) })
	for _, u := range uses {
		if u.kind == "other" || u.ns < u.total/2 || u.kind != "float64" && onDevice.Int64 > 0 {
			continue
		}
		claims := map[int]float64{}
		for i := range heavy {
			claims[i] = u.ns / u.total
		}
		if r.share(claims) < leastShare/2 {
			continue
		}
		at := r.top(claims, innermost)
		e := Explanation{claims: claims, title: u.kind + " products"}
		where := ""
		if at != nil {
			e.Place, where = at.place(), ", most at "+at.at()
		}
		if u.kind == "float64" {
			e.sentence = fmt.Sprintf("%s of the time is matrix products and convolutions in double precision (float64)%s.",
				percent(r.share(claims)), where)
			e.Advice = "NumPy makes float64 by default: convert data and model to float32 (.float(), dtype=torch.float32), which takes half the time or less."
		} else {
			e.sentence = fmt.Sprintf("%s of the time is matrix products and convolutions in %s on a processor%s.", percent(r.share(claims)),
				u.kind, where)
			e.Advice = "A processor without instructions for this type (AMX, AVX512-BF16) converts or emulates it: use float32 there, or autocast only on devices that have it."
		}
		found = append(found, e)
	}
	return found, nil
}

func isExpensive(s *Stack) bool {
	for _, f := range s.Frames {
		if f.Kind == "op" && strings.Contains(expensiveOperators, "'"+f.Function+"'") {
			return true
		}
	}
	return false
}
