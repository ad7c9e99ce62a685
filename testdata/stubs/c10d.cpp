/* A stub of libtorch_cuda.so's ProcessGroupNCCL (c10d.h). As there, the watchdog has a
 * copy of each work, and the work itself is gone as soon as nobody waits for it: all
 * have one address here. */
#include "c10d.h"

#include <new>

namespace c10d {

using Work = ProcessGroupNCCL::WorkNCCL;

static unsigned char place[sizeof(Work)] __attribute__((aligned(16)));
/* That calls are made, and not inlined. */
#define CALLED __attribute__((noinline, noclone))
static volatile int called;

CALLED Work::WorkNCCL(const WorkNCCL &w) : number(w.number), failed(w.failed) { called = 1; }
CALLED bool Work::wait(int64_t) { called = 2; return true; }
CALLED void Work::setException(std::exception_ptr) { failed = true; called = 3; }
CALLED void Work::handleException(ErrorHandlingMode) { called = 4; }
CALLED void ProcessGroupNCCL::DesyncDebugger::logWorkEnd(WorkNCCL &) { ended++; called = 5; }
CALLED uint64_t ProcessGroupNCCL::getSequenceNumberForGroup() { return number; }

CALLED void ProcessGroupNCCL::workEnqueue(const c10::intrusive_ptr<WorkNCCL> &work)
{
	std::lock_guard<std::mutex> held(lock);
	works.emplace_back(*work.target);
}

CALLED c10::intrusive_ptr<Work> ProcessGroupNCCL::allreduce(std::vector<at::Tensor> &, const AllreduceOptions &)
{
	c10::intrusive_ptr<WorkNCCL> work(new (place) WorkNCCL(++number));
	workEnqueue(work);
	return work;
}

void ProcessGroupNCCL::end(bool failed)
{
	std::lock_guard<std::mutex> held(lock);
	WorkNCCL &work = works.front();
	if (failed) {
		work.setException(nullptr);
		work.handleException(ErrorHandlingMode::NoHandling);
	}
	debugger.logWorkEnd(work);
	works.pop_front();
}

}
