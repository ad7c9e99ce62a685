package kernel

import (
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MakeCommon makes the maps that a specification shares with those that have them.
func (k *Programs) MakeCommon(of *ebpf.CollectionSpec, owners ...*ebpf.CollectionSpec) (map[string]*ebpf.Map, error) {
	common, unwind := map[string]*ebpf.Map{}, k.Unwind.Replacements(of)
	for name := range of.Maps {
		for _, owner := range owners {
			spec, ok := owner.Maps[name]
			if !ok || unwind[name] != nil || common[name] != nil || ownData(name) {
				continue
			}
			if strings.HasPrefix(name, ".data") {
				spec = spec.Copy()
				spec.Flags |= unix.BPF_F_MMAPABLE // as the loader of collections makes them: we write variables
			}
			m, err := ebpf.NewMap(spec)
			if err != nil {
				CloseMaps(common)
				return nil, LoadError("map "+name, err)
			}
			common[name] = m
		}
	}
	return common, nil
}

// Among are the replacements for what a specification has of some maps.
func (k *Programs) Among(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) map[string]*ebpf.Map {
	shared := k.Replacements(spec)
	for name, m := range maps {
		if spec.Maps[name] != nil {
			shared[name] = m
		}
	}
	return shared
}

// ownData tells the constants and the uninitialised data, which are each collection's own.
func ownData(name string) bool { return name == ".bss" || name == ".rodata" }

func CloseMaps(maps map[string]*ebpf.Map) {
	for _, m := range maps {
		m.Close()
	}
}
