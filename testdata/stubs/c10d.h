/* The parts of c10d::ProcessGroupNCCL that the tracer reads, laid out as in 2.15, with
 * its symbols. Nothing communicates: what is asked for ends when the program says so. */
#ifndef STUB_C10D_H
#define STUB_C10D_H

#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace at { struct Tensor { void *implementation; }; }

namespace c10 {
/* It has a destructor: who is to return one gets a pointer to where it goes. */
template <class T> struct intrusive_ptr {
	T *target;
	explicit intrusive_ptr(T *t) : target(t) {}
	intrusive_ptr(const intrusive_ptr &other) : target(other.target) {}
	~intrusive_ptr() {}
};
}

namespace c10d {

enum class ErrorHandlingMode { NoHandling };
struct AllreduceOptions { int op = 0; };

struct Backend {
	virtual ~Backend() = default;
	uint64_t counts = 1;
	int rank, size, level[2] = {};
	std::string uid, description;
	Backend(int rank_, int size_) : rank(rank_), size(size_), uid("0"), description("default_pg") {}
};

struct ProcessGroupNCCL : Backend {
	struct WorkNCCL {
		virtual ~WorkNCCL() = default;
		uint64_t number;
		bool failed = false;
		explicit WorkNCCL(uint64_t n) : number(n) {}
		WorkNCCL(const WorkNCCL &);
		bool wait(int64_t timeout);
		void setException(std::exception_ptr);
		void handleException(ErrorHandlingMode);
	};
	struct DesyncDebugger {
		int ended = 0;
		void logWorkEnd(WorkNCCL &);
	};

	uint64_t number = 0;
	std::mutex lock;
	std::list<WorkNCCL> works;
	DesyncDebugger debugger;

	using Backend::Backend;
	uint64_t getSequenceNumberForGroup();
	c10::intrusive_ptr<WorkNCCL> allreduce(std::vector<at::Tensor> &, const AllreduceOptions &);
	void workEnqueue(const c10::intrusive_ptr<WorkNCCL> &);
	/* What the watchdog does with works: the first is over, or its time has run out. */
	void end(bool failed);
};

}
#endif
