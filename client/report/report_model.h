// The page's section about the forecasts: whether they were better than a constant forecast and,
// where a language model was asked, how it answered and what that cost. report_init() and
// report_html() call this.
#ifndef CLIENT_REPORT_REPORT_MODEL_H
#define CLIENT_REPORT_REPORT_MODEL_H

#include "client/report/report_html.h"

// Fills report->against_average. report->pair must be set.
void report_add_against_average(struct report *report);
// Appends the section. It appends nothing for a run without forecasts.
void report_section_forecasts(struct strbuf *out, const struct report_page *page);

#endif
