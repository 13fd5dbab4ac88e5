// A report as one HTML page. Style and pictures are inline; the page has no script and requests
// nothing. Everything that comes from candidates, compilers and logs is escaped. It does no I/O;
// client/cmd/cmd_report.c calls it.
#ifndef CLIENT_REPORT_REPORT_HTML_H
#define CLIENT_REPORT_REPORT_HTML_H

#include "client/report/report.h"
#include "common/strbuf.h"

#define REPORT_SOURCE_LINES_MAX 3000 // lines of the winning source that are shown

struct report_page {
    const struct report *report;
    const char *run_path;  // the run file, as the commands to repeat the run name it; NULL: "RUN"
    const char *title;     // of the problem; NULL when only its name is known
    const char *extension; // of a file with a candidate, such as "cu"; NULL: "c"
    const char *source;    // of the best candidate; NULL when there is none
    size_t source_len;     // bytes
};

// Appends the whole page. It works for every run state: unfinished, empty, or without a correct
// candidate.
void report_html(struct strbuf *out, const struct report_page *page);

// The page's style sheet (report_css.c).
extern const char report_css[];

#endif
