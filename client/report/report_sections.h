// The lower half of the page: tables, the winning source, how the number was obtained, how to
// repeat the run. client/report/report_html.c calls this.
#ifndef CLIENT_REPORT_REPORT_SECTIONS_H
#define CLIENT_REPORT_REPORT_SECTIONS_H

#include "client/report/report_html.h"

// Each appends one section, or nothing when there is nothing to show.
void report_section_best(struct strbuf *out, const struct report_page *page);
void report_section_fates(struct strbuf *out, const struct report_page *page);
void report_section_source(struct strbuf *out, const struct report_page *page);
void report_section_method(struct strbuf *out, const struct report_page *page);
void report_section_repeat(struct strbuf *out, const struct report_page *page);

// The CSS class of a fate's colour: "fill-blue" for correct, "fill-orange" for failed, "fill-grey"
// for decided without a measurement, "fill-pale" for the rest.
const char *report_fate_fill(enum report_fate fate);
// Appends the candidate's name or, without one, its parameters ("MB=32 NB=64"), escaped.
void report_add_params(struct strbuf *out, const struct run_state_candidate *candidate);

#endif
