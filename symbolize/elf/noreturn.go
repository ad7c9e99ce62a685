package elf

import "strings"

// noReturnNames are functions that never return to their caller, by linkage
// name: declared noreturn in the headers of glibc 2.36, the Itanium C++ ABI,
// libgcc_s, libstdc++ 12, libc++ 14, CPython 3.6–3.13 and PyTorch 1.13–2.15.
// A name that is here by mistake hides a way out of a function, so what only
// sometimes returns (execve, error, _Unwind_Resume_or_Rethrow) is not.
var noReturnNames = func() map[string]struct{} {
	set := map[string]struct{}{}
	for name := range strings.FieldsSeq(`
		abort exit _exit _Exit quick_exit pthread_exit thrd_exit
		longjmp _longjmp siglongjmp __longjmp_chk __libc_longjmp __libc_siglongjmp
		err errx verr verrx __assert_fail __assert_perror_fail __assert
		__stack_chk_fail __stack_chk_fail_local __fortify_fail __chk_fail __libc_fatal
		__libc_start_main
		__cxa_throw __cxa_rethrow __cxa_bad_cast __cxa_bad_typeid __cxa_call_terminate
		__cxa_call_unexpected __cxa_pure_virtual __cxa_deleted_virtual
		__cxa_throw_bad_array_length __cxa_throw_bad_array_new_length
		__clang_call_terminate _Unwind_Resume
		_ZSt9terminatev _ZSt10unexpectedv
		_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE
		_ZN10__cxxabiv111__terminateEPFvvE _ZN10__cxxabiv112__unexpectedEPFvvE
		Py_FatalError _Py_FatalErrorFunc _Py_FatalErrorFormat _Py_FatalRefcountErrorFunc
		Py_ExitStatusException _Py_NegativeRefcountAbort PyThread_exit_thread
		_ZN6google15LogMessageFatalD1Ev _ZN6google15LogMessageFatalD2Ev
		_ZN4absl12log_internal15LogMessageFatalD1Ev _ZN4absl12log_internal15LogMessageFatalD2Ev
	`) {
		set[name] = struct{}{}
	}
	return set
}()

// noReturnPrefixes are the families of which every member never returns. In
// the PyTorch builds named above, the code of none of theirs has a return
// instruction (TestPyTorchFunctionsThatNeverReturnHaveNoReturnInstruction).
var noReturnPrefixes = []string{
	"_ZN3c106detail14torchCheckFail",
	"_ZN3c106detail23torchInternalAssertFail",
	"_ZN3c1018ThrowEnforceNotMet",
	"_ZN3c1024ThrowEnforceFiniteNotMet",
	"_ZN3c1021throwNullDataPtrError",
	"_ZNK3c1010TensorImpl26throw_storage_access_error",
	"_ZNK3c1010TensorImpl27throw_data_ptr_access_error",
	"_ZNK3c1010TensorImpl31throw_cannot_call_with_symbolic",
	"_ZNK3c1011StorageImpl27throw_data_ptr_access_error",
	"_ZNK3c104impl13OperatorEntry11reportError",
	"_ZNK3c106IValue23reportToTensorTypeError",
	"_ZN6caffe26detail27_ThrowRuntimeTypeLogicError",
	"_ZN6caffe28TypeMeta26error_unsupported_typemeta",
	"_ZSt21__glibcxx_assert_fail",
	"_ZN3fmt2v818throw_format_error", "_ZN3fmt2v918throw_format_error",
}

// IsNoReturn reports a function, by its linkage name, that never returns to
// its caller: it ends the process, throws, or jumps elsewhere.
func IsNoReturn(name string) bool {
	if _, ok := noReturnNames[name]; ok {
		return true
	}
	for _, prefix := range noReturnPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return isStandardThrow(name)
}

// isStandardThrow matches std::__throw_*(…) of libstdc++ ("_ZSt" + length +
// "__throw_…") and of libc++'s versioned namespaces ("_ZNSt3__1" + …).
func isStandardThrow(name string) bool {
	rest, ok := strings.CutPrefix(name, "_ZSt")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "_ZNSt3__1"); !ok {
			return false
		}
	}
	digits := strings.TrimLeft(rest, "0123456789")
	return len(digits) < len(rest) && strings.HasPrefix(digits, "__throw_") &&
		!strings.HasPrefix(digits, "__throw_with_nested")
}

// NoReturn reports that a call of the address never comes back: it is the
// linkage stub, or the definition, of a function that IsNoReturn knows.
func (e *File) NoReturn(address uint64) bool {
	if name, ok := e.PLTTarget(address); ok {
		return IsNoReturn(name)
	}
	e.noReturnOnce.Do(e.findNoReturn)
	_, ok := e.noReturn[address]
	return ok
}

func (e *File) findNoReturn() {
	prefixes := append([]string{"_ZSt", "_ZNSt3__1"}, noReturnPrefixes...)
	for name := range noReturnNames {
		prefixes = append(prefixes, name)
	}
	e.noReturn = map[uint64]struct{}{}
	for _, s := range e.FunctionsWithPrefixes(prefixes) {
		if IsNoReturn(s.Name) {
			e.noReturn[s.Address] = struct{}{}
		}
	}
}
