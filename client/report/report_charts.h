// The four charts of a report, each as an SVG picture in one of two sizes. The page holds both
// sizes and shows the one that its width can carry. client/report/report_html.c calls this.
#ifndef CLIENT_REPORT_REPORT_CHARTS_H
#define CLIENT_REPORT_REPORT_CHARTS_H

#include "client/report/report.h"
#include "common/strbuf.h"
#include <stdbool.h>

// Each appends one <svg>. Without data the picture says so. `narrow` makes the picture for screens
// below about 560 pixels.

// The best speedup against device-seconds.
void report_chart_best(struct strbuf *out, const struct report *report, bool narrow);
// Candidates measured against candidates considered.
void report_chart_measured(struct strbuf *out, const struct report *report, bool narrow);
// Measured speedups against their forecasts.
void report_chart_forecast(struct strbuf *out, const struct report *report, bool narrow);
// What came true against the probability that was forecast.
void report_chart_reliability(struct strbuf *out, const struct report *report, bool narrow);

// Whether the charts of forecasts have anything to show.
bool report_has_pairs(const struct report *report);
bool report_has_reliability(const struct report *report);

#endif
