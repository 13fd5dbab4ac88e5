// A report as one HTML page: inline style and pictures, no script, no request to anywhere.
// Everything that comes from candidates, compilers and logs is escaped.
#ifndef CLIENT_REPORT_REPORT_HTML_H
#define CLIENT_REPORT_REPORT_HTML_H

#include "client/report/report.h"
#include "common/strbuf.h"

#define REPORT_SOURCE_LINES_MAX 3000 // lines of the winning source that are shown

struct report_page {
    const struct report *report;
    const char *run_path;  // as it stands in the commands for repeating; NULL: "RUN"
    const char *title;     // of the problem; NULL: only its name is known
    const char *extension; // of a file with a candidate, "cu"; NULL: "c"
    const char *source;    // of the best candidate; NULL without one
    size_t source_len;     // in bytes
};

// Appends the whole page. Works for every run state: unfinished, empty, without a correct candidate.
void report_html(struct strbuf *out, const struct report_page *page);

// The page's style sheet.
extern const char report_css[];

#endif
