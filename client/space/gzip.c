#include "client/space/gzip.h"
#include "common/mem.h"
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define CHUNK ((size_t)1 << 16)
#define WINDOW_BITS (15 + 16) // zlib: the largest window, with a gzip header
#define MEMORY_LEVEL 9        // zlib: the most memory, for speed

bool gzip_is(const void *data, size_t len)
{
    const unsigned char *head = data;

    return len >= GZIP_MAGIC_LEN && head[0] == 0x1f && head[1] == 0x8b;
}

// Unpacks one member, from where the stream is to where it is behind it. Returns zlib's code.
static int unpack_member(z_stream *stream, struct strbuf *out, unsigned char *chunk)
{
    int outcome = Z_OK;

    while (outcome == Z_OK && !out->truncated) {
        stream->next_out = chunk;
        stream->avail_out = (uInt)CHUNK;
        outcome = inflate(stream, Z_NO_FLUSH);
        strbuf_add(out, chunk, CHUNK - stream->avail_out);
    }
    return outcome;
}

int gzip_unpack(struct strbuf *out, const void *data, size_t len)
{
    if (len > UINT32_MAX) {
        return ERR_LIMIT;
    }
    unsigned char *chunk = xmalloc(CHUNK);
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)len};
    int outcome = inflateInit2(&stream, WINDOW_BITS);

    if (outcome == Z_OK) {
        outcome = unpack_member(&stream, out, chunk);
    }
    while (outcome == Z_STREAM_END && !out->truncated && stream.avail_in > 0) {
        outcome = inflateReset(&stream);
        outcome = outcome == Z_OK ? unpack_member(&stream, out, chunk) : outcome;
    }
    (void)inflateEnd(&stream);
    free(chunk);
    return out->truncated ? ERR_LIMIT : outcome == Z_STREAM_END ? 0 : ERR_CORRUPT;
}

void gzip_pack(struct strbuf *out, const void *data, size_t len)
{
    unsigned char *chunk = xmalloc(CHUNK);
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)len};
    int outcome = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                               Z_DEFAULT_STRATEGY);

    while (outcome == Z_OK) {
        stream.next_out = chunk;
        stream.avail_out = (uInt)CHUNK;
        outcome = deflate(&stream, Z_FINISH);
        strbuf_add(out, chunk, CHUNK - stream.avail_out);
    }
    (void)deflateEnd(&stream);
    free(chunk);
}
