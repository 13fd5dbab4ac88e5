// How good the forecasts of a run were: reliability, coverage, and what the audit found.
// report_init() calls report_add_*; the pages use report_wilson().
#ifndef CLIENT_REPORT_REPORT_QUALITY_H
#define CLIENT_REPORT_REPORT_QUALITY_H

#include "client/report/report.h"

// These fill pair*, cover, correct, call, calls_without_record and missed. report->run_state must
// be set; the fields that they fill must be zero.
void report_add_pairs(struct report *report);
void report_add_reliability(struct report *report);
void report_add_missed(struct report *report);

// Standard errors of a two-sided 95 % interval.
#define REPORT_Z_95 1.959963984540054

// Wilson's score interval of a share, with `z` standard errors. n is the number of trials, which
// need not be whole; `share` of them came true. The results are NaN for n <= 0.
void report_wilson(double share, double n, double z, double *ret_lo, double *ret_hi);

#endif
