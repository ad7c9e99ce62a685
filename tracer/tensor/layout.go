package tensor

import (
	"strconv"
	"strings"
)

// Layout says where a c10::TensorImpl has what is read of it, in bytes from its
// beginning. From Sizes on lie side by side, in all of the versions: c10::impl::
// SizesAndStrides (the number of dimensions, five sizes, five strides), storage_offset_,
// numel_, data_type_ (16 bits), device_opt_ (kind, index, whether there is one).
type Layout struct {
	Since   Version // the first version that has it
	Sizes   uint8   // sizes_and_strides_
	Storage uint8   // storage_, a pointer to a StorageImpl
	Bytes   uint8   // of the StorageImpl: size_bytes_
	Source  string  // where the numbers come from
}

// Version is the beginning of a PyTorch version.
type Version struct{ Major, Minor int }

// layouts are in the order of their versions. The head of both objects is a vtable
// pointer and reference counts: two words of them, of 32 bits each since 2.3 (#117986),
// one word of both since 2.10 (#163394). pyobj_slot_ has been one word and not two since
// 2.13: PyObjectSlot.h of the wheels of 2.3.1, 2.9.1, 2.10.0, 2.11.0, 2.12.0, 2.13.0 and
// 2.14.0 was read.
var layouts = []Layout{
	{Version{1, 13}, 72, 24, 56, "a live 1.13.1: tensors of different sizes, by their _cdata"},
	{Version{2, 3}, 64, 16, 48, "the headers of 2.3.1 to 2.12.0; a live 2.11.0 had none of 65,032 tensors right with 56"},
	{Version{2, 13}, 56, 16, 48, "offsetof, with the headers of 2.15.0, and a live 2.15.0"},
}

// LayoutOf finds the layout of a version as Python says it ("2.6.0+cu124"); false where
// it is older than any that is there. Of a newer one it is the last: whether that is
// so shows when tensors are read.
func LayoutOf(version string) (Layout, bool) {
	v, ok := parseVersion(version)
	if !ok {
		return Layout{}, false
	}
	var found Layout
	for _, l := range layouts {
		if l.Since.Major < v.Major || l.Since.Major == v.Major && l.Since.Minor <= v.Minor {
			found = l
		}
	}
	return found, found.Sizes > 0
}

func parseVersion(text string) (v Version, ok bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return v, false
	}
	var err error
	if v.Major, err = strconv.Atoi(parts[0]); err != nil {
		return v, false
	}
	minor := parts[1]
	if end := strings.IndexFunc(minor, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		minor = minor[:end]
	}
	v.Minor, err = strconv.Atoi(minor)
	return v, err == nil
}
