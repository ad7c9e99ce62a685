package kernel

import (
	"errors"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MakeCommon makes the maps that a specification shares with those that have them, beside
// each other: the kernel clears all their memory.
func (k *Programs) MakeCommon(of *ebpf.CollectionSpec, owners ...*ebpf.CollectionSpec) (map[string]*ebpf.Map, error) {
	wanted, unwind := map[string]*ebpf.MapSpec{}, k.Unwind.Replacements(of)
	for name := range of.Maps {
		for _, owner := range owners {
			spec, ok := owner.Maps[name]
			if !ok || unwind[name] != nil || wanted[name] != nil || ownData(name) {
				continue
			}
			if strings.HasPrefix(name, ".data") {
				spec = spec.Copy()
				spec.Flags |= unix.BPF_F_MMAPABLE // as the loader of collections makes them: we write variables
			}
			wanted[name] = spec
		}
	}
	common := map[string]*ebpf.Map{}
	var failed error
	var lock sync.Mutex
	var all sync.WaitGroup
	for name, spec := range wanted {
		all.Go(func() {
			m, err := ebpf.NewMap(spec)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failed = errors.Join(failed, LoadError("map "+name, err))
				return
			}
			common[name] = m
		})
	}
	all.Wait()
	if failed != nil {
		CloseMaps(common)
		return nil, failed
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
