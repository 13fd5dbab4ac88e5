// The page's section about time: which parts the wall time of the search went to, the same along
// the search as a picture, the seconds that its stages took, and how much of it each device was
// held. client/report/report_html.c calls this.
#ifndef CLIENT_REPORT_REPORT_TIME_H
#define CLIENT_REPORT_REPORT_TIME_H

#include "client/report/report_html.h"
#include "client/run/wall_time.h"

// Appends the section. A run that recorded no times has a sentence that says so instead of the
// parts.
void report_section_time(struct strbuf *out, const struct report_page *page);
// Appends one <svg>: along the time at work, the share of each part. `narrow` as in
// client/report/report_charts.h.
void report_chart_time(struct strbuf *out, const struct run_state *run_state, bool narrow);

#endif
