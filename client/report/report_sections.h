// The lower half of the page: tables, the winning source, how the number was obtained, how to
// repeat it.
#ifndef CLIENT_REPORT_REPORT_SECTIONS_H
#define CLIENT_REPORT_REPORT_SECTIONS_H

#include "client/report/report_html.h"

// Each appends one section, or nothing when there is nothing to show.
void report_section_best(struct strbuf *out, const struct report_page *page);
void report_section_tally(struct strbuf *out, const struct report_page *page);
void report_section_source(struct strbuf *out, const struct report_page *page);
void report_section_method(struct strbuf *out, const struct report_page *page);
void report_section_repeat(struct strbuf *out, const struct report_page *page);

// "fill-blue", "fill-orange", "fill-grey" or "fill-pale": correct, failed, judged without a
// measurement, the rest.
const char *report_fate_fill(enum report_fate fate);
// "MB=32 NB=64": the name, or else the parameters; escaped.
void report_add_params(struct strbuf *out, const struct run_state_candidate *candidate);

#endif
