#include "client/space/space_import.h"
#include "client/space/gzip.h"

int space_import_unpack(struct bytes *data, const char *path, struct err *err)
{
    if (!gzip_is(data->data, data->len)) {
        return 0;
    }
    struct strbuf text;
    strbuf_init(&text, IMPORT_FILE_MAX);
    int rc = gzip_unpack(&text, data->data, data->len);
    if (rc == 0) {
        bytes_clear(data);
        *data = strbuf_detach_bytes(&text);
        return 0;
    }
    strbuf_release(&text);
    return rc == ERR_LIMIT
               ? err_set(err, rc,
                         "%s: it unpacks to more than %zu MiB, which is what a file to import may "
                         "have; take a part of it",
                         path, IMPORT_FILE_MAX >> 20)
               : err_set(err, rc,
                         "%s: it begins like a gzip file and cannot be unpacked; it is damaged or "
                         "cut short",
                         path);
}
