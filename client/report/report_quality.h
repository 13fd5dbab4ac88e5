// What the forecasts of a run were worth: reliability, coverage, what the audit found. The second
// half of report_init().
#ifndef CLIENT_REPORT_REPORT_QUALITY_H
#define CLIENT_REPORT_REPORT_QUALITY_H

#include "client/report/report.h"

// Fill pair*, correct, call, calls_without_record, cover and missed. report->run state is set; the rest
// is zero.
void report_add_pairs(struct report *report);
void report_add_reliability(struct report *report);
void report_add_missed(struct report *report);

// Wilson's score interval for a share with `z` standard errors: n trials (need not be whole), of
// which `share` came true. NaN for n <= 0.
void report_wilson(double share, double n, double z, double *ret_lo, double *ret_hi);

#endif
