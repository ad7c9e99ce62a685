package steps

import (
	"strings"
	"unicode"
)

// number stands in a template for digits.
const number = '#'

// phased stands in a template for the words that tell the phases of inference apart: a prefill step and a decoding step
// are iterations of one loop.
const phased = "phase"

// phaseWords name what an iteration of an engine works on, in the words of several engines.
var phaseWords = map[string]bool{
	"prefill": true, "extend": true, "context": true, "prompt": true, "mixed": true, "chunked": true,
	"decode": true, "decoding": true, "generation": true, "generate": true, "gen": true, "idle": true,
}

// Template is a range's name without what differs from one repetition to the next: numbers, arguments in brackets and
// the phase of inference. "step_12" and "step_13" have one template, as have "epoch 0 / batch 3" and "epoch 1 / batch 0".
func Template(name string) string {
	name = strings.Trim(name, "[](){}<>#*|= \t")
	if i := strings.IndexAny(name, "[({<"); i > 0 && strings.ContainsFunc(name[:i], unicode.IsLetter) {
		name = name[:i]
	}
	var b strings.Builder
	for _, word := range split(name) {
		switch {
		case isNumber(word):
			word = string(number)
		case phaseWords[strings.ToLower(word)]:
			word = phased
		}
		b.WriteString(word)
	}
	text := collapsed(b.String())
	if short := strings.TrimRight(text, " \t_-/:.,=+#"); short != "" {
		return short
	}
	return text
}

// collapsed makes one of numbers, and of phases, that follow one another with nothing but a sign between them.
func collapsed(text string) string {
	for _, sign := range []string{"", ".", ",", ":", "-", "_", "+", "/"} {
		for _, word := range []string{string(number), phased} {
			for twice := word + sign + word; strings.Contains(text, twice); {
				text = strings.ReplaceAll(text, twice, word)
			}
		}
	}
	return text
}

// split cuts a name into words, numbers and what stands between them. An upper-case letter behind a lower-case one begins
// a word.
func split(name string) (words []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsDigit(r):
			return 1
		case unicode.IsLetter(r):
			return 2
		}
		return 3
	}
	begin, before := 0, rune(0)
	for i, r := range name {
		if i > 0 && (class(r) != class(before) || unicode.IsUpper(r) && unicode.IsLower(before)) {
			words = append(words, name[begin:i])
			begin = i
		}
		before = r
	}
	if begin < len(name) {
		words = append(words, name[begin:])
	}
	return words
}

func isNumber(word string) bool {
	return word != "" && strings.IndexFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

// Numbered is the last number in a name, which counts repetitions where it grows; not ok without one.
func Numbered(name string) (n int64, ok bool) {
	if i := strings.IndexAny(name, "[({<"); i > 0 && strings.ContainsFunc(name[:i], isDigit) {
		name = name[:i]
	}
	for _, word := range split(name) {
		if !isNumber(word) || len(word) > 15 {
			continue
		}
		n, ok = 0, true
		for _, d := range word {
			n = 10*n + int64(d-'0')
		}
	}
	return n, ok
}

func isDigit(r rune) bool { return unicode.IsDigit(r) }

// stepWords are what jobs call one repetition of their loop; larger what they call many of them together, or a part.
var (
	stepWords = map[string]bool{
		"step": true, "steps": true, "iter": true, "iteration": true, "it": true, "itr": true, "batch": true, "minibatch": true,
		"round": true, "tick": true, "turn": true, "cycle": true, "frame": true, "timestep": true, "denoise": true, "denoising": true,
		"token": true, "predict": true, "inference": true, "infer": true, "request": true, "execute": true, phased: true,
	}
	otherWords = map[string]bool{
		"epoch": true, "trial": true, "fold": true, "fit": true, "main": true, "run": true, "session": true, "benchmark": true,
		"layer": true, "block": true, "layers": true, "blocks": true, "optimizer": true, "loss": true, "attention": true, "attn": true,
		"mlp": true, "expert": true, "head": true, "module": true, "sampler": true, "sample": true, "schedule": true, "scheduler": true,
		"zero": true, "lr": true, "clip": true, "log": true, "logging": true, "save": true, "checkpoint": true,
	}
)

// isStep says whether a name speaks of a repetition: a word for one, and none for a part of it.
func isStep(name string) bool {
	found := false
	for _, word := range split(Template(name)) {
		word = strings.ToLower(word)
		found = found || stepWords[word]
	}
	epoch := speaksOf(name, map[string]bool{"epoch": true}) && strings.Count(Template(name)+"#", "#") > 1
	return found && (!speaksOf(name, otherWords) || epoch)
}

func speaksOf(name string, words map[string]bool) bool {
	for _, word := range split(Template(name)) {
		if words[strings.ToLower(word)] {
			return true
		}
	}
	return false
}
