// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * CUPTI's records grow with its versions. What library.c reads of them has been at the same place since CUDA 12.0:
 * scripts/cupti.sh compiles this against the headers of each version that it has, with that version's names of the
 * types, and there is no library if one differs.
 */
#include <stddef.h>
#include <cupti_activity.h>

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type " has " #field " elsewhere")

AT(KERNEL, registersPerThread, 6);
AT(KERNEL, start, 16);
AT(KERNEL, end, 24);
AT(KERNEL, deviceId, 40);
AT(KERNEL, contextId, 44);
AT(KERNEL, streamId, 48);
AT(KERNEL, gridX, 52);
AT(KERNEL, blockX, 64);
AT(KERNEL, staticSharedMemory, 76);
AT(KERNEL, dynamicSharedMemory, 80);
AT(KERNEL, correlationId, 92);
AT(KERNEL, name, 104);
AT(KERNEL, graphNodeId, 144);
AT(KERNEL, graphId, 156);
AT(MEMCPY, copyKind, 4);
AT(MEMCPY, bytes, 8);
AT(MEMCPY, start, 16);
AT(MEMCPY, end, 24);
AT(MEMCPY, deviceId, 32);
AT(MEMCPY, contextId, 36);
AT(MEMCPY, streamId, 40);
AT(MEMCPY, correlationId, 44);
AT(MEMCPY, graphNodeId, 64);
AT(MEMCPY, graphId, 72);
AT(CUpti_ActivityMemset4, bytes, 8);
AT(CUpti_ActivityMemset4, start, 16);
AT(CUpti_ActivityMemset4, end, 24);
AT(CUpti_ActivityMemset4, deviceId, 32);
AT(CUpti_ActivityMemset4, contextId, 36);
AT(CUpti_ActivityMemset4, streamId, 40);
AT(CUpti_ActivityMemset4, correlationId, 44);
AT(CUpti_ActivityMemset4, graphNodeId, 64);
AT(CUpti_ActivityMemset4, graphId, 72);
AT(SYNCHRONIZATION, type, 4);
AT(SYNCHRONIZATION, start, 8);
AT(SYNCHRONIZATION, end, 16);
AT(SYNCHRONIZATION, correlationId, 24);
AT(SYNCHRONIZATION, contextId, 28);
AT(SYNCHRONIZATION, streamId, 32);
AT(SYNCHRONIZATION, cudaEventId, 36);
AT(CUpti_ActivityAPI, cbid, 4);
AT(CUpti_ActivityAPI, start, 8);
AT(CUpti_ActivityAPI, end, 16);
AT(CUpti_ActivityAPI, threadId, 28);
AT(CUpti_ActivityAPI, correlationId, 32);
AT(CUpti_ActivityAPI, returnValue, 36);

_Static_assert(CUPTI_ACTIVITY_KIND_MEMCPY == 1 && CUPTI_ACTIVITY_KIND_MEMSET == 2 && CUPTI_ACTIVITY_KIND_DRIVER == 4 &&
	CUPTI_ACTIVITY_KIND_RUNTIME == 5 && CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == 10 &&
	CUPTI_ACTIVITY_KIND_SYNCHRONIZATION == 38, "CUPTI's kinds of records have other numbers");
