package bpf

import "bytes"

// LimitUseMap is the map in which a recording says how much of its limits it uses, for
// whoever may look at its descriptors: no program of the kernel knows it. Its entries
// are LimitUses, by their place in the list of limits.
const LimitUseMap = "limit_use"

// LimitUse is one limit's.
type LimitUse struct {
	Called     [16]byte // as --limit calls it, zeros behind
	Used, Most uint64
}

// NewLimitUse makes one.
func NewLimitUse(called string, used, most int) (u LimitUse) {
	copy(u.Called[:len(u.Called)-1], called)
	u.Used, u.Most = uint64(used), uint64(most)
	return u
}

// Name is what --limit calls it, "" of an entry that was never written.
func (u *LimitUse) Name() string {
	name, _, _ := bytes.Cut(u.Called[:], []byte{0})
	return string(name)
}
