/* The part of CUPTI's interface that the library of `run --device-times cupti` uses, with the layouts of CUDA 13.0. */
#ifndef STUB_CUPTI_H
#define STUB_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_KERNEL = 10, KIND_SYNCHRONIZATION = 38, KINDS };
enum { CBID_LAUNCH = 307, CBID_COPY = 305, CBID_SET = 213, CBID_GRAPH = 514 };
enum { OK = 0, INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12 };

struct __attribute__((packed, aligned(8))) kernel {
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3], static_shared, dynamic_shared;
	uint32_t local, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t more[8];
	uint64_t node;
	uint32_t shmem_limit, graph;
	void *policy;
	uint32_t channel, channel_type, cluster[3], cluster_policy;
	uint64_t local_total_v2;
	uint32_t clusters[2];
	uint8_t device_launched, padding[7];
};

struct __attribute__((packed, aligned(8))) memcpy6 {
	uint32_t kind;
	uint8_t way, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3];
	uint64_t copies;
};

struct __attribute__((packed, aligned(8))) api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

#endif
