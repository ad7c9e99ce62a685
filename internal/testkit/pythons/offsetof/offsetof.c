/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Prints where the fields lie that symbolize/cpython reads, as one installed
 * CPython's own headers have them: "Name offset", a line each, and nothing for
 * what that version has not. Compile with
 *   gcc -DPy_BUILD_CORE -I INCLUDE -I INCLUDE/internal
 */
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#endif

#define EMIT(name, type, field) printf("%s %zu\n", name, offsetof(type, field))
#define VERSION(minor) (PY_VERSION_HEX >= 0x03000000 + ((minor) << 16))

#ifdef Py_GIL_DISABLED
#define UNICODE_KIND_BIT 8
#else
#define UNICODE_KIND_BIT 2
#endif

static void runtime(void)
{
#if VERSION(12)
	EMIT("RuntimeAutoTSS", _PyRuntimeState, autoTSSkey);
#else
	EMIT("RuntimeAutoTSS", _PyRuntimeState, gilstate.autoTSSkey);
	EMIT("RuntimeGIL", _PyRuntimeState, ceval.gil.last_holder);
#endif
	EMIT("RuntimeInterpreters", _PyRuntimeState, interpreters.head);
	EMIT("RuntimeMain", _PyRuntimeState, interpreters.main);
#if !VERSION(9)
	EMIT("RuntimeCollecting", _PyRuntimeState, gc.collecting);
#endif
	printf("RuntimeSize %zu\n", sizeof(_PyRuntimeState));
}

static void interpreter(void)
{
#if VERSION(11)
	EMIT("InterpreterNext", PyInterpreterState, next);
	EMIT("InterpreterThreads", PyInterpreterState, threads.head);
#else
	EMIT("InterpreterNext", struct _is, next);
	EMIT("InterpreterThreads", struct _is, tstate_head);
#endif
#if VERSION(12)
	EMIT("InterpreterGIL", PyInterpreterState, ceval.gil);
	EMIT("GILHolder", struct _gil_runtime_state, last_holder);
#endif
#if VERSION(9)
	EMIT("InterpreterCollecting", PyInterpreterState, gc.collecting);
#endif
}

static void thread_state(void)
{
	EMIT("StateNext", PyThreadState, next);
	EMIT("StateInterpreter", PyThreadState, interp);
#if VERSION(13)
	EMIT("StateFrames", PyThreadState, current_frame);
#elif VERSION(11)
	EMIT("StateFrames", PyThreadState, cframe);
	EMIT("CFrameCurrent", _PyCFrame, current_frame);
	EMIT("CFramePrevious", _PyCFrame, previous);
#else
	EMIT("StateFrames", PyThreadState, frame);
#endif
#if VERSION(10) && !VERSION(11)
	EMIT("StateCFrame", PyThreadState, cframe);
	EMIT("CFramePrevious", CFrame, previous);
#endif
	EMIT("StateThread", PyThreadState, thread_id);
#if VERSION(11)
	EMIT("StateNative", PyThreadState, native_thread_id);
#endif
}

static void frame(void)
{
#if VERSION(13)
	EMIT("FrameCode", _PyInterpreterFrame, f_executable);
	EMIT("FrameInstruction", _PyInterpreterFrame, instr_ptr);
#elif VERSION(11)
	EMIT("FrameCode", _PyInterpreterFrame, f_code);
	EMIT("FrameInstruction", _PyInterpreterFrame, prev_instr);
#else
	EMIT("FrameCode", PyFrameObject, f_code);
	EMIT("FrameInstruction", PyFrameObject, f_lasti);
	EMIT("FramePrevious", PyFrameObject, f_back);
#endif
#if VERSION(11)
	EMIT("FramePrevious", _PyInterpreterFrame, previous);
#endif
#if VERSION(12)
	EMIT("FrameOwner", _PyInterpreterFrame, owner);
#elif VERSION(11)
	EMIT("FrameOwner", _PyInterpreterFrame, is_entry);
#endif
#if VERSION(14) && defined(Py_GIL_DISABLED)
	EMIT("FrameTLBC", _PyInterpreterFrame, tlbc_index);
#endif
}

static void code(void)
{
	EMIT("CodeArgcount", PyCodeObject, co_argcount);
	EMIT("CodeKwonly", PyCodeObject, co_kwonlyargcount);
	EMIT("CodeFlags", PyCodeObject, co_flags);
	EMIT("CodeLine", PyCodeObject, co_firstlineno);
	EMIT("CodeFilename", PyCodeObject, co_filename);
	EMIT("CodeName", PyCodeObject, co_name);
#if VERSION(11)
	EMIT("CodeQualname", PyCodeObject, co_qualname);
	EMIT("CodeStart", PyCodeObject, co_code_adaptive);
#endif
#if VERSION(14) && defined(Py_GIL_DISABLED)
	EMIT("CodeTLBC", PyCodeObject, co_tlbc);
#endif
#if VERSION(10)
	EMIT("CodeLinetable", PyCodeObject, co_linetable);
#else
	EMIT("CodeLinetable", PyCodeObject, co_lnotab);
#endif
}

static void objects(void)
{
	EMIT("ObjectType", PyObject, ob_type);
	EMIT("TypeName", PyTypeObject, tp_name);
	EMIT("UnicodeLength", PyASCIIObject, length);
	EMIT("UnicodeState", PyASCIIObject, state);
	printf("UnicodeASCII %zu\n", sizeof(PyASCIIObject));
	printf("UnicodeCompact %zu\n", sizeof(PyCompactUnicodeObject));
	printf("UnicodeKind %d\n", UNICODE_KIND_BIT);
	EMIT("BytesSize", PyVarObject, ob_size);
	EMIT("BytesData", PyBytesObject, ob_sval);
}

int main(void)
{
	printf("Version %s\n", PY_VERSION);
	runtime();
	interpreter();
	thread_state();
	frame();
	code();
	objects();
	return 0;
}
