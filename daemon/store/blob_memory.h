// Which blobs were on the disk a short while ago, and the bytes of the small ones among them. The
// blob store asks it before it has another thread open files: of a candidate that is stored,
// compiled and measured within seconds, and of the baseline that each of a search's jobs names, the
// files need not be read each time. Forgets what was used longest ago. Loop thread only.
#ifndef DAEMON_STORE_BLOB_MEMORY_H
#define DAEMON_STORE_BLOB_MEMORY_H

#include "common/digest.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The bytes of larger blobs are not kept: copying them takes as long as having another thread read
// them.
#define BLOB_MEMORY_ONE ((size_t)256 << 10)
// For so long a blob counts as being there once it has been, unless files are swept, and its bytes
// as those of its file.
#define BLOB_MEMORY_S 600

struct blob_memory;

// max_bytes: of all that it keeps, itself included.
struct blob_memory *blob_memory_create(size_t max_bytes);
void blob_memory_free(struct blob_memory *memory); // NULL is fine

// The file of this blob has just been written or read, with these bytes, which have its digest and
// are copied; or has been found (data NULL), which says nothing of its bytes.
void blob_memory_add(struct blob_memory *memory, const struct digest *digest,
                     const struct bytes *data, uint64_t now_ms);
// Whether the file is there, for all that is known.
bool blob_memory_has(const struct blob_memory *memory, const struct digest *digest,
                     uint64_t now_ms);
// Returns the bytes, NULL when they are not known. Valid until the memory is changed.
const struct bytes *blob_memory_find(const struct blob_memory *memory, const struct digest *digest,
                                     uint64_t now_ms);
// The file is missing or damaged.
void blob_memory_forget(struct blob_memory *memory, const struct digest *digest);
// Files have been removed, of whichever blobs.
void blob_memory_forget_all(struct blob_memory *memory);

#endif
