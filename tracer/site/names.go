package site

import "strings"

// LeafName reports whether the function of this name neither throws nor calls
// back into code that may: memory, string and thread-local helpers, and what
// ends the process at once.
func LeafName(name string) bool {
	name, _, _ = strings.Cut(name, "@") // a symbol version
	return leafNames[name]
}

// NoThrowName reports whether the function of this mangled name does not throw:
// a destructor, which C++11 makes noexcept unless it says otherwise (PyTorch's
// and libstdc++'s do not), or a release of a reference, which ends in one.
func NoThrowName(name string) bool {
	name, _, _ = strings.Cut(name, "@")
	if LeafName(name) {
		return true
	}
	if !strings.HasPrefix(name, "_Z") {
		return false
	}
	name, _, _ = strings.Cut(name, ".") // a clone: ".part.0", ".constprop.1", ".isra.0"
	for _, destructor := range []string{"D0Ev", "D1Ev", "D2Ev"} {
		if strings.HasSuffix(name, destructor) {
			return true
		}
	}
	for _, release := range releases {
		if strings.Contains(name, release) {
			return true
		}
	}
	return false
}

// releases are the names of functions that give up a reference: declared
// noexcept in c10/util/intrusive_ptr.h and libstdc++'s shared_ptr_base.h.
var releases = []string{
	"6reset_Ev", "15reset_not_null_E", // of c10::intrusive_ptr
	"3c106SymInt8release_Ev",
	"10_M_releaseEv", "10_M_disposeEv", "24_M_release_last_use", "15_M_weak_release",
	"3c103raw13intrusive_ptr6decref",
}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

// leafNames are documented by libc, libgcc and the Itanium C++ ABI: none takes
// a function it calls, none throws. An allocation hook that throws is not
// foreseen.
var leafNames = set(`
	__tls_get_addr ___tls_get_addr
	free malloc calloc realloc
	_ZdlPv _ZdlPvm _ZdaPv _ZdaPvm _ZdlPvSt11align_val_t _ZdlPvmSt11align_val_t
	memcpy memmove memset memcmp strlen strcmp bcmp
	__memcpy_chk __memmove_chk __memset_chk
	__cxa_guard_acquire __cxa_guard_release __cxa_guard_abort
	pthread_mutex_lock pthread_mutex_unlock pthread_rwlock_unlock
	__stack_chk_fail abort _ZSt9terminatev __assert_fail _exit _Exit
`)
