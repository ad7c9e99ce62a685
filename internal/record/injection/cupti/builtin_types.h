/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* CUPTI's headers name types of the CUDA runtime that no declaration we use needs: this stands in for its header. */
typedef struct { char bytes[16]; } cudaUUID_t;
