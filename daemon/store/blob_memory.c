// Design note. Entries lie in a ring, one after the other with their bytes, and are overwritten in
// the order in which they were written. So what is kept for minutes does not lie between what the
// daemon allocates for one job, which would make allocating slow for all (on two cores, 2,000 jobs
// a second: a tenth of the loop's time).
//
// Being asked for keeps no entry: its bytes are used until BLOB_MEMORY_S after they were read or
// written, so the file of a blob that is in use is read again every ten minutes, which finds it
// damaged if it is.
#include "daemon/store/blob_memory.h"
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    struct digest digest;
    struct bytes data; // behind the entry; empty: not known
    uint64_t seen_ms;  // when the file was last known to be there
    uint64_t read_ms;  // when its content was
    UT_hash_handle hh;
};

struct blob_memory {
    unsigned char *ring;
    size_t max_bytes;
    size_t at;             // where the next entry goes
    struct entry *entries; // in the order in which they were written, the oldest first
};

#define ALIGN _Alignof(struct entry)

struct blob_memory *blob_memory_create(size_t max_bytes)
{
    struct blob_memory *memory = xcalloc(1, sizeof(*memory));

    memory->max_bytes = max_bytes;
    memory->ring = xmalloc(max_bytes + 1); // whose pages are used when they are written to
    return memory;
}

void blob_memory_free(struct blob_memory *memory)
{
    if (memory) {
        blob_memory_forget_all(memory);
        free(memory->ring);
        free(memory);
    }
}

static struct entry *find(const struct blob_memory *memory, const struct digest *digest)
{
    struct entry *entry;

    HASH_FIND(hh, memory->entries, digest->byte, DIGEST_LEN, entry);
    return entry;
}

static bool is_fresh(uint64_t then_ms, uint64_t now_ms)
{
    return now_ms - then_ms < BLOB_MEMORY_S * UINT64_C(1000);
}

// Removes the oldest entries as long as they begin in these bytes of the ring. Those that begin
// behind memory->at are the oldest, in the order of their places.
static void drop_from(struct blob_memory *memory, size_t begin, size_t end)
{
    struct entry *oldest;

    while ((oldest = memory->entries)) {
        size_t place = (size_t)((unsigned char *)oldest - memory->ring);

        if (place < begin || place >= end) {
            return;
        }
        HASH_DEL(memory->entries, oldest);
    }
}

// Returns room for an entry with so many bytes; NULL when the ring is too small.
static struct entry *take_room(struct blob_memory *memory, size_t len)
{
    size_t size = (sizeof(struct entry) + len + ALIGN - 1) / ALIGN * ALIGN;

    if (size > memory->max_bytes) {
        return NULL;
    }
    if (size > memory->max_bytes - memory->at) {
        drop_from(memory, memory->at, memory->max_bytes);
        memory->at = 0;
    }
    drop_from(memory, memory->at, memory->at + size);
    struct entry *room = (struct entry *)(void *)(memory->ring + memory->at);
    memory->at += size;
    return room;
}

void blob_memory_add(struct blob_memory *memory, const struct digest *digest,
                     const struct bytes *data, uint64_t now_ms)
{
    struct entry *entry = find(memory, digest);
    size_t len = data && data->len <= BLOB_MEMORY_ONE ? data->len : 0;

    if (entry && (entry->data.data || len == 0)) {
        entry->seen_ms = now_ms;
        entry->read_ms = data ? now_ms : entry->read_ms;
        return;
    }
    blob_memory_forget(memory, digest);
    entry = take_room(memory, len);
    if (!entry) {
        return;
    }
    *entry = (struct entry){.digest = *digest, .seen_ms = now_ms, .read_ms = now_ms};
    if (len > 0) {
        entry->data = (struct bytes){.data = (void *)(entry + 1), .len = len};
        memcpy(entry->data.data, data->data, len);
    }
    HASH_ADD(hh, memory->entries, digest.byte, DIGEST_LEN, entry);
}

bool blob_memory_has(const struct blob_memory *memory, const struct digest *digest, uint64_t now_ms)
{
    const struct entry *entry = find(memory, digest);

    return entry && is_fresh(entry->seen_ms, now_ms);
}

const struct bytes *blob_memory_find(const struct blob_memory *memory, const struct digest *digest,
                                     uint64_t now_ms)
{
    const struct entry *entry = find(memory, digest);

    return entry && entry->data.data && is_fresh(entry->read_ms, now_ms) ? &entry->data : NULL;
}

void blob_memory_forget(struct blob_memory *memory, const struct digest *digest)
{
    struct entry *entry = find(memory, digest);

    if (entry) {
        HASH_DEL(memory->entries, entry);
    }
}

void blob_memory_forget_all(struct blob_memory *memory)
{
    HASH_CLEAR(hh, memory->entries);
    memory->at = 0;
}
