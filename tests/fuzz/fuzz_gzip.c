// Any bytes as a packed file to import, and any bytes as what is packed. What is unpacked keeps the
// limit, what is refused is refused with one sentence and left as it was, and what was packed comes
// back the same, but not when its file is cut.
#include "client/space/gzip.h"
#include "client/space/space_import.h"
#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void unpack(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct strbuf out;
    strbuf_init(&out, LIMIT);
    int rc = gzip_unpack(&out, data, len);
    require(out.len <= LIMIT && (rc == 0 || rc == ERR_CORRUPT || rc == ERR_LIMIT));
    require(rc != 0 || gzip_is(data, len));
    struct bytes file = bytes_copy(data, len);
    int again = space_import_unpack(&file, "f.json", &err);
    require((again == 0) == (err.code == ERR_NONE));
    if (again != 0) {
        require(strncmp(err.text, "f.json: ", 8) == 0);
    }
    if (again != 0 || !gzip_is(data, len)) {
        require(file.len == len && (len == 0 || memcmp(file.data, data, len) == 0));
    } else if (rc == 0) {
        require(file.len == out.len && (out.len == 0 || memcmp(file.data, out.data, out.len) == 0));
    }
    bytes_clear(&file);
    strbuf_release(&out);
}

static void pack(const uint8_t *data, size_t len)
{
    struct strbuf packed = STRBUF_INIT, out;
    gzip_pack(&packed, data, len);
    strbuf_init(&out, len);
    require(gzip_is(packed.data, packed.len) && gzip_unpack(&out, packed.data, packed.len) == 0);
    require(out.len == len && (len == 0 || memcmp(out.data, data, len) == 0));
    strbuf_reset(&out);
    require(gzip_unpack(&out, packed.data, len % packed.len) == ERR_CORRUPT);
    strbuf_release(&out);
    strbuf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    unpack(data, len);
    pack(data, len);
    return 0;
}
