package columnfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The three-level form of a list that every reader knows: a required group, a
// repeated one, a required element.
//
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists
const (
	listGroup    = "list"
	elementGroup = "element"
)

// What a definition level says of a member of a list's element.
const (
	levelEmpty  = 0 // the list has no elements
	levelNull   = 1 // of a nullable member; of any other, that it is there
	levelThere  = 2
	listMaximum = 1 // of the repetition levels
)

// elements is what Values has more where its column is a member of a list: one
// level of each kind for each element, and for each list without any.
type elements struct {
	used    bool
	repeats []byte // 0 begins a row
	defined []byte
	empty   int
}

func (e *elements) reset() {
	e.used, e.empty = false, 0
	e.repeats, e.defined = e.repeats[:0], e.defined[:0]
}

// entry notes one element, or an empty list.
func (e *elements) entry(first bool, level byte) {
	repeat := byte(listMaximum)
	if first {
		repeat = 0
	}
	e.repeats, e.defined = append(e.repeats, repeat), append(e.defined, level)
}

// ListInts appends one Int64, Int32 or Boolean member of the elements of each
// row's list, null where get says false.
func ListInts[T, E any](v *Values, rows []T, order []int32, list func(*T) []E, get func(*E) (int64, bool)) {
	appendLists(v, rows, order, list, func(e *E) bool {
		value, ok := get(e)
		if ok {
			v.ints = append(v.ints, value)
		}
		return ok
	})
}

// ListTexts appends one String member, as ListInts does.
func ListTexts[T, E any](v *Values, rows []T, order []int32, list func(*T) []E, get func(*E) (string, bool)) {
	appendLists(v, rows, order, list, func(e *E) bool {
		value, ok := get(e)
		if ok {
			v.codes = append(v.codes, v.texts.code(value))
		}
		return ok
	})
}

func appendLists[T, E any](v *Values, rows []T, order []int32, list func(*T) []E, add func(*E) bool) {
	v.list.used = true
	for _, i := range order {
		elements := list(&rows[i])
		if len(elements) == 0 {
			v.list.entry(true, levelEmpty)
			v.list.empty++
		}
		for j := range elements {
			level := byte(levelThere)
			if !add(&elements[j]) {
				level = levelNull
				v.nulls++
			}
			v.list.entry(j == 0, level)
		}
	}
	v.rows += len(order)
}

func (v *Values) checkList(c leaf) error {
	entries := len(v.list.defined)
	switch {
	case !v.list.used && v.rows > 0:
		return fmt.Errorf("column %s is of lists, its values are not", c.Name)
	case v.nulls > 0 && !c.Nullable:
		return fmt.Errorf("column %s has %d nulls but is not nullable", c.Name, v.nulls)
	case entries-v.list.empty-v.nulls != v.len(c.Kind):
		return fmt.Errorf("column %s has values of another kind", c.Name)
	}
	return nil
}

// encodeListLevels leaves the repetition levels and after them the definition
// levels in e.levels, and returns the length of the former.
func (e *Encoder) encodeListLevels(c leaf, v *Values) (repeats int, err error) {
	repeated := rle.Encoding{BitWidth: 1}
	levels, err := repeated.EncodeLevels(nil, v.list.repeats)
	if err != nil {
		return 0, err
	}
	defined, width := v.list.defined, 2
	if !c.Nullable { // its highest level is that of an element
		width = 1
		defined = make([]byte, len(v.list.defined))
		for i, level := range v.list.defined {
			defined[i] = min(level, levelNull)
		}
	}
	encoded, err := (&rle.Encoding{BitWidth: width}).EncodeLevels(nil, defined)
	e.levels = append(append(e.levels[:0], levels...), encoded...)
	return len(levels), err
}

// listElements is the schema of a list of structures.
func listElements(c Column) []format.SchemaElement {
	group := func(name string, repetition format.FieldRepetitionType, children int) format.SchemaElement {
		return format.SchemaElement{Name: name, RepetitionType: thrift.New(repetition), NumChildren: thrift.New(int32(children))}
	}
	outer := group(c.Name, format.Required, 1)
	outer.FieldID = c.ID
	outer.ConvertedType = thrift.New(deprecated.List)
	outer.LogicalType = format.LogicalType{Value: &format.ListType{}}
	elements := []format.SchemaElement{outer, group(listGroup, format.Repeated, 1), group(elementGroup, format.Required, len(c.Fields))}
	for _, f := range c.Fields {
		elements = append(elements, valueElement(f))
	}
	return elements
}
