// Any bytes as a database's first page and its write-ahead log. The counts fit together, and what
// is told has a sentence.
#include "common/database/wal.h"

#include <stdlib.h>

#define DATABASE_LEN 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t database_len = len < DATABASE_LEN ? len : DATABASE_LEN;
    const struct wal_bytes bytes = {.database = data,
                                    .database_len = database_len,
                                    .log = data + database_len,
                                    .log_len = len - database_len};
    struct wal_report report;
    wal_examine_bytes(&report, "run", &bytes);
    int told = report.state == WAL_DAMAGED || report.state == WAL_FOREIGN;
    if (report.used > report.frames || report.commits > report.used ||
        report.commits + report.lost_commits > report.frames || told != (report.text[0] != '\0') ||
        (report.state == WAL_WHOLE && report.lost_commits > 0)) {
        abort();
    }
    return 0;
}
