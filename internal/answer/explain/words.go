package explain

import (
	"fmt"
	"strings"
)

// mostWords is how long the first paragraph may be.
const mostWords = 80

// write makes the paragraphs.
func (v *Verdict) write(r *Recording) {
	first := -1
	if len(v.Explanations) > 0 {
		if e := &v.Explanations[0]; e.class < ordinary || e.Explained >= leastShare {
			first = 0
		}
	}
	if first < 0 {
		v.First, v.Second = r.unexplained(v.Explanations), joined([]string{r.lookedFor(), later(v.Explanations)})
		v.Sentence = firstSentence(v.First)
		return
	}
	e := &v.Explanations[0]
	v.First = paragraph(e.sentence, e.Evidence, e.Advice)
	v.Sentence = firstSentence(v.First)
	v.Second = v.second(r)
}

// paragraph joins sentences as far as there are words for them: the evidence gives way to the advice.
func paragraph(claim, evidence, advice string) string {
	for _, parts := range [][]string{{claim, evidence, advice}, {claim, advice}, {claim}} {
		text := joined(parts)
		if len(strings.Fields(text)) <= mostWords {
			return text
		}
	}
	return strings.Join(strings.Fields(claim)[:mostWords-1], " ") + " …"
}

func joined(parts []string) string {
	var all []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, " ")
}

// firstSentence ends at the first full stop that is followed by a space.
func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i >= 0 {
		return text[:i+1]
	}
	return text
}

// second names the next two explanations above a tenth, and how sure the first is.
func (v *Verdict) second(r *Recording) string {
	if v.Explanations[0].class == stopped {
		return later(v.Explanations[1:]) // of what stands, shares of the time say the same again
	}
	var next []string
	for _, e := range v.Explanations[1:] {
		if e.Explained >= leastShare && len(next) < 2 {
			next = append(next, fmt.Sprintf("%s %s", percent(e.Explained), e.short()))
		}
	}
	text := "Nothing else explains more than 10 % of the time."
	if len(next) > 0 {
		text = "Next: " + strings.Join(next, "; ") + "."
	}
	return joined([]string{text, later(v.Explanations[1:]), v.Explanations[0].certainty(r)})
}

// later are the claims of what does not take time yet: memory that grows slowly or is near its limit, writes that fail.
func later(found []Explanation) string {
	var all []string
	for _, e := range found {
		if e.class == slowGrowth && len(all) < 2 {
			all = append(all, e.sentence)
		}
	}
	return strings.Join(all, " ")
}

// short is an explanation in a few words.
func (e *Explanation) short() string {
	title := e.title
	if title == "" {
		title = strings.ReplaceAll(e.Kind, "_", " ")
	}
	if e.Place != "" && !strings.Contains(title, e.Place) {
		title += " at " + e.Place
	}
	return title
}

func (e *Explanation) certainty(r *Recording) string {
	lo, hi := e.own[0], e.own[1]
	if lo == nil || hi == nil {
		return ""
	}
	samples := int64(0)
	for i := range r.Rows {
		samples += r.Rows[i].Samples
	}
	return fmt.Sprintf("The first share is %.0f to %.0f %% (95 %%), from %d samples and waits in %.0f s of the thread that sets the pace.",
		100**lo, 100**hi, samples, r.Wall()/1e9)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// unexplained is the first paragraph without a verdict: what is not explained, and the three hottest lines.
func (r *Recording) unexplained(found []Explanation) string {
	explained := 0.0
	for _, e := range found {
		if e.class == ordinary {
			explained += e.Explained
		}
	}
	text := fmt.Sprintf("No single cause explains a tenth of the time; %s of it is not explained.", percent(max(0, 1-explained)))
	if short := r.Short / r.Wall(); short >= leastUnseen {
		text += fmt.Sprintf(" For %s the thread waits, and no sample shows where: the waits are short, or were sampled "+
			"(--budget off records each of them).", percent(short))
	}
	var lines []string
	for _, l := range heaviest(r.Rows, nil, innermost, byPlace) {
		if len(lines) < 3 && l.ns >= leastShare/10*r.Wall() {
			lines = append(lines, fmt.Sprintf("%s %s", l.of.at(), percent(l.ns/r.Wall())))
		}
	}
	if len(lines) > 0 {
		text += " Most time passes at " + strings.Join(lines, ", ") + "."
	}
	return text
}

// leastUnseen is from which share of the time on waits without samples are worth a sentence.
const leastUnseen = 0.3

func (r *Recording) lookedFor() string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.looked)
	}
	return "Looked for: " + strings.Join(all, ", ") + "."
}
