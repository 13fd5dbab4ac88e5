// Device memory at an address that the executor has chosen, in one piece that grows, and whose
// access can be taken away and given back.
//
//   base                                        placed            mapped              reserved
//   | guard | area | guard | area | … | area | guard … nothing … | addresses only … |
//
// A process has four (struct gpu): `open`, all of the tensors, scratch memory and working memory
// that a launch may see; `recorded`, for each of two recordings the memory that its launches have
// at the addresses that they were recorded with; and `judge`, which no launch may see and which is
// closed while code of a candidate runs. Areas are placed one behind the other, GUARD_BYTES or more
// apart, and given back only together (arena_rewind). The oracle's process also has one of what it
// expects. The module knows neither what areas are for nor what fills the bytes between them.
#ifndef EXECUTOR_GPU_ARENA_H
#define EXECUTOR_GPU_ARENA_H

#include "executor/gpu/driver.h"
#include <stdbool.h>

#define ARENA_CHUNKS 512            // pieces of physical memory that an arena is made of
#define GUARD_BYTES ((size_t)16384) // least distance between two areas, and to either end
// Areas begin at multiples of it. Kernels rely on 256; but on an H200 one that reads and writes
// whole lines took 2 % longer where its tensors begin at other multiples of 256 than of 2048
// (docs/measuring.md), and large allocations of CUDA's begin at pages.
#define ARENA_ALIGN ((size_t)4096)
// Where they begin, unless something else is there; each is reserved for as much as the GPU has.
#define ARENA_OPEN 0x500000000000ULL
#define ARENA_JUDGE 0x520000000000ULL
#define ARENA_RECORDED 0x540000000000ULL      // of the first recording
#define ARENA_RECORDED_STEP 0x008000000000ULL // from the first to the second
#define ARENA_HANDOVER 0x580000000000ULL      // shared with the process of an unsealed candidate
#define ARENA_THEIRS 0x560000000000ULL        // in the oracle: arenas of the other process
#define ARENA_OUTPUTS 0x530000000000ULL       // in the oracle: outputs that are expected

struct arena {
    const struct driver *driver; // borrowed; NULL: not opened
    cu_device device;
    cu_pointer base;
    size_t reserved, mapped, placed; // bytes from base
    size_t granularity;              // of physical memory
    size_t chunk_bytes[ARENA_CHUNKS];
    cu_memory chunk[ARENA_CHUNKS];
    uint64_t chunk_serial[ARENA_CHUNKS]; // of which no two chunks have the same
    size_t chunk_count;
    uint64_t serials; // given out so far
    bool grows_early; // by as much as it has, or 1 GiB, so that it seldom does; set by the owner
    bool closed;
};

// Reserves addresses for `bytes`, at `wanted` or, when that is taken, at one of seven places 1 TiB
// apart behind it. No memory is allocated yet. A context must be current. ERR_UNSUPPORTED when the
// GPU or its driver cannot map memory (a virtual GPU without virtual memory management).
MUST_CHECK int arena_open(struct arena *arena, const struct driver *driver, cu_device device,
                          cu_pointer wanted, size_t bytes, struct err *err);
// Frees memory and addresses. Nothing that uses them may be running. An arena that is zero is fine.
void arena_release(struct arena *arena);

// Places an area, which begins at a multiple of ARENA_ALIGN. Allocates memory when what is mapped
// does not reach behind the area's guard. The arena must not be closed. ERR_LIMIT when the GPU has
// no memory left.
MUST_CHECK int arena_place(struct arena *arena, size_t bytes, cu_pointer *ret, struct err *err);
// Has memory mapped for the first `bytes` and the guard behind them, for whoever knows where areas
// are. All of it counts as placed. ERR_LIMIT as for arena_place.
MUST_CHECK int arena_reach(struct arena *arena, size_t bytes, struct err *err);
// Gives back all areas that were placed after `placed` had this value. Their memory stays mapped.
void arena_rewind(struct arena *arena, size_t placed);
// Frees the memory behind the first `bytes` that no area needs, so that what one measurement needed
// does not cost the next ones time. Nothing may be running.
void arena_trim(struct arena *arena, size_t bytes);

// Makes the memory one piece, with room for `bytes` behind what is placed, because closing takes
// longer the more pieces there are. Contents are lost; areas stay where they are. Does nothing
// where it is one piece already that is large enough, and at most `most` bytes or no larger than
// needed. Where the GPU has not enough memory the arena has room for what is placed, and grows.
// Nothing may be running, and the arena must not be closed.
MUST_CHECK int arena_unite(struct arena *arena, size_t bytes, size_t most, struct err *err);

// Another process can map the memory of an arena, chunk by chunk, in an arena of its own in which
// nothing is placed. What one writes the other sees when the kernel that wrote it has ended.
// Gives a descriptor of a chunk, which the caller closes. Returns what the driver says.
cu_result arena_export(const struct arena *arena, size_t chunk, int *ret_fd);
// Maps the chunk of the descriptor behind what is mapped. The descriptor stays the caller's.
cu_result arena_adopt(struct arena *arena, int fd, size_t bytes);
// Unmaps all chunks but the first `count`. Nothing may be running.
void arena_cut(struct arena *arena, size_t count);

// Takes the access to all of the arena away from every kernel and copy, or gives it back. Nothing
// that uses it may be running. What it takes follows from the number of pieces (docs/measuring.md).
// Returns what the driver says.
cu_result arena_close(struct arena *arena, bool closed);

#endif
