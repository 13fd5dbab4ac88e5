// The page's section on who made the forecasts: whether they were better than none, and, where a
// language model was asked, what it was asked for, in which form it answered and what that cost.
#ifndef CLIENT_REPORT_REPORT_MODEL_H
#define CLIENT_REPORT_REPORT_MODEL_H

#include "client/report/report_html.h"

// Fills report->plain. report->pair is set.
void report_add_plain(struct report *report);
// Appends the section; nothing for a run without forecasts.
void report_section_forecasts(struct strbuf *out, const struct report_page *page);

#endif
