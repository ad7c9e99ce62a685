package explain

import (
	"fmt"
	"regexp"
	"strings"
)

// serialisation: the thread turns objects into bytes or text, or back.
func serialisation(r *Recording) ([]Explanation, error) {
	signs := signPickle | signJSON | signPydantic
	claims := r.rows(func(row *Row) bool {
		return row.Stack.below(signs) && !row.Stack.Has(signSave|signLoaderNext|signCompile)
	})
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	what := "pickle"
	switch pydantic, json := r.sum(r.withSign(claims, signPydantic)), r.sum(r.withSign(claims, signJSON)); {
	case pydantic > r.sum(claims)/3:
		what = "pydantic"
	case json > r.sum(claims)/2:
		what = "JSON"
	}
	if format := heaviest(r.Rows, claims, textFormat, strings.Compare); len(format) > 0 && format[0].ns > r.sum(claims)/2 {
		what = format[0].of
	}
	function := heaviest(r.Rows, claims, func(row *Row) string {
		for _, f := range pythonOutermostFirst(row.Stack) {
			if f.Signs&signs != 0 {
				return f.name()
			}
		}
		return ""
	}, strings.Compare)
	at := r.top(claims, innermost)
	e := Explanation{claims: claims, title: "serialisation (" + what + ")"}
	name := ""
	if len(function) > 0 {
		name = " in " + function[0].of
	}
	if at != nil {
		e.Place = at.place()
	}
	e.sentence = fmt.Sprintf("%s of the time is serialisation: %s%s, under %s.", percent(r.share(claims)), what, name, placeOr(at))
	if user := r.handler(at); user != nil {
		e.Evidence = fmt.Sprintf("The job's own function there is %s.", user.at())
	}
	e.Advice = "Serialise less data or in another form: raw bytes or an array format instead of lists of numbers, and skip validating what you made yourself."
	if len(function) > 0 && parses.MatchString(function[0].of) {
		e.Advice = "Parse the same text once and keep the result, or keep the data in a binary form that needs no parsing " +
			"(npy, Parquet, raw bytes)."
	}
	return []Explanation{e}, nil
}

// parses are functions that read a serial form, and do not write it.
var parses = regexp.MustCompile(`(^|\.)(safe_|full_|unsafe_)?loads?(_all)?$|decode$|unpackb?$|^parse`)

// textFormat is what a row's stack reads or writes, where that is neither JSON nor pickle.
func textFormat(row *Row) string {
	for _, f := range row.Stack.Inside() {
		switch {
		case f.Signs&signJSON == 0:
		case strings.Contains(f.File, "/yaml/") || strings.HasPrefix(f.Module, "_yaml."):
			return "YAML"
		case strings.Contains(f.File, "/msgpack/") || strings.HasPrefix(f.Module, "_cmsgpack."):
			return "MessagePack"
		}
	}
	return ""
}

func placeOr(f *Frame) string {
	if f == nil {
		return "no line of the job's own"
	}
	return f.at()
}

// handler is the function of the user's that a runner's line calls back, the one with the most time.
func (r *Recording) handler(runner *Frame) *Frame {
	if runner == nil {
		return nil
	}
	return r.top(r.rows(func(*Row) bool { return true }), func(row *Row) *Frame {
		users := row.Stack.Users()
		for i, f := range users {
			if f == runner && i+1 < len(users) {
				return users[i+1]
			}
		}
		return nil
	})
}
