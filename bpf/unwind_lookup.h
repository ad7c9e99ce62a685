/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which rule the tables have for an address: searches that the verifier cannot follow. */
#ifndef EBPFPROF_UNWIND_LOOKUP_H
#define EBPFPROF_UNWIND_LOOKUP_H

#include "stack.h"
#include "unwind_maps.h"

/* The index of the last mapping that starts at or below key; the first starts at 0. */
static __always_inline __u32 find_mapping(const struct unwind_process *p, __u64 key)
{
	__u64 at = 0;

#pragma unroll
	for (__u64 half = UNWIND_MAPPINGS / 2; half > 0; half >>= 1) {
		OPAQUE(at);
		at += half & at_most(p->start[(at + half) & (UNWIND_MAPPINGS - 1)], key);
	}
	return at & (UNWIND_MAPPINGS - 1);
}

/* The row of a page that covers the offset: rows [first, first + rows) of the leaf. */
static __always_inline __u32 find_row(const struct unwind_row *row, __u64 first, __u64 rows,
				      __u64 offset)
{
	__u64 at = first, last = first + rows - 1, step;

	/* Where the page has no row that far, the one at hand is compared again: lines
	 * of memory that are not needed are not fetched. */
#pragma unroll
	for (__u64 half = UNWIND_LEAF_ROWS / 2; half > 0; half >>= 1) {
		OPAQUE(at);
		step = half & at_most(at + half, last);
		OPAQUE(step);
		at += step & at_most(row[(at + step) & (UNWIND_LEAF_ROWS - 1)].pc, offset);
	}
	return at & (UNWIND_LEAF_ROWS - 1);
}

/* The cell of a sequence, which begins at first, that covers the offset. */
static __always_inline __u32 find_cell(const struct unwind_cell *cell, __u64 first, __u64 offset)
{
	__u64 at = first;

#pragma unroll
	for (__u64 half = UNWIND_SEQUENCE / 2; half > 0; half >>= 1) {
		OPAQUE(at);
		at += half & at_most(cell[(at + half) & (UNWIND_LEAF_ROWS - 1)].pc, offset);
	}
	return at & (UNWIND_LEAF_ROWS - 1);
}

#define NO_RULE -1

/* The number of the rule for an address of a file, before the loader's bias. */
static __noinline int find_rule_number(const struct unwind_file *f, __u64 address)
{
	const struct unwind_page *pages;
	const struct unwind_row *rows;
	const struct unwind_cell *cells;
	struct unwind_page page;
	struct unwind_row row;
	__u32 at;
	__u32 bits = f->page_bits & 31;
	__u64 number = (address - f->base) >> bits;
	__u64 offset = ((address & ((1ULL << bits) - 1)) >> UNWIND_PC_SHIFT) + UNWIND_ROW_REACH;

	if (address < f->base || number >= f->pages)
		return NO_RULE;
	pages = unwind_leaf(f->leaf + number / UNWIND_LEAF_PAGES);
	if (!pages)
		return NO_RULE;
	page = pages[number & (UNWIND_LEAF_PAGES - 1)];
	if (page.rows == 0)
		return NO_RULE;
	rows = unwind_leaf(f->leaf + page.leaf);
	if (!rows)
		return NO_RULE;
	at = find_row(rows, page.row, page.rows, offset);
	row = rows[at & (UNWIND_LEAF_ROWS - 1)];
	if (row.code & UNWIND_ONE_RULE)
		return row.code & (UNWIND_ONE_RULE - 1);
	cells = unwind_leaf(f->leaf + f->sequences + row.code / UNWIND_LEAF_SEQUENCES);
	if (!cells)
		return NO_RULE;
	at = row.code % UNWIND_LEAF_SEQUENCES * UNWIND_SEQUENCE;
	return cells[find_cell(cells, at, offset - row.pc)].rule;
}

/* The key of what is not cached: shifted into a word nothing is left of it. */
#define NOT_CACHED (1ULL << 48)

/* The rule for an address of a file; null: none covers it. */
static __noinline const struct unwind_rule *find_rule(const struct unwind_file *f, __u64 address)
{
	__u64 key = (__u64)f->generation << 32 | (__u32)address, high = address, word;
	__u64 *found;
	__s64 number;

	OPAQUE(high);
	if (high >> 32 || !f->generation)
		key = NOT_CACHED;
	OPAQUE(key);
	found = unwind_found_at((key * 0x9e3779b97f4a7c15ULL) >> 50 & (UNWIND_FOUND - 1));
	if (!found)
		return 0;
	word = *found;
	number = word & 0xffff;
	if (word >> 16 != key) {
		number = find_rule_number(f, address);
		if (number < 0)
			return 0;
		*found = key << 16 | (__u16)number;
	}
	OPAQUE(number);
	return unwind_rule(number);
}

#endif
