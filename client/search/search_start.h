// How a search begins: its options, what is refused before anything is created, and the first event
// of its run file. `kcast search` and `kcast tune` begin theirs here; search_drive does the rest.
#ifndef CLIENT_SEARCH_SEARCH_START_H
#define CLIENT_SEARCH_SEARCH_START_H

#include "client/policy/risk.h"
#include "client/problem/problem_dir.h"
#include "client/propose/generator_list.h"
#include "client/propose/strategy.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/pipeline.h"
#include "client/session.h"
#include "common/err.h"
#include "common/options.h"
#include "proto/queue_class.h"
#include <stdint.h>

struct search_options {
    char *strategy, *policy; // names of client/propose/strategy.h and client/policy/policy.h
    double confidence, audit, share; // of the policies
    char *guarantee;                 // of policy risk (client/policy/risk.h), as the next two
    double alpha, delta;
    uint64_t budget_ns, max_time_ns;   // 0: no limit
    uint64_t measurements, candidates; // at most; 0: no limit
    uint64_t batch, wide; // candidates considered at a time; wide 0: as the policy says
    char *seed;           // NULL: drawn
    double weight;        // at the daemon; 0: as it has it
    uint64_t hard_ns;     // budget that the daemon holds it to; 0: none
    char *queue_class;
};

// Rows of an option table (common/options.h) whose struct has a struct search_options at `base`.
#define SEARCH_ROW(base, field) ((base) + offsetof(struct search_options, field))
#define SEARCH_OPTION_ROWS(base)                                                                   \
    {"strategy",                                                                                   \
     0,                                                                                            \
     OPTION_CHOICE,                                                                                \
     SEARCH_ROW(base, strategy),                                                                   \
     "NAME",                                                                                       \
     STRATEGY_DEFAULT,                                                                             \
     0,                                                                                            \
     0,                                                                                            \
     "best-of-n|greedy|islands|puct",                                                              \
     "which candidate comes next"},                                                                \
        {"policy",                                                                                 \
         0,                                                                                        \
         OPTION_CHOICE,                                                                            \
         SEARCH_ROW(base, policy),                                                                 \
         "NAME",                                                                                   \
         "threshold",                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "threshold|budget|risk|all",                                                              \
         "which candidates are measured: those whose forecast cannot be trusted, of these the "    \
         "most promising "                                                                         \
         "share only, those above a threshold that is certified for a risk, or all"},              \
        {"confidence",                                                                             \
         'c',                                                                                      \
         OPTION_F64,                                                                               \
         SEARCH_ROW(base, confidence),                                                             \
         "P",                                                                                      \
         "0.9",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "trust a forecast of no improvement from this confidence on"},                            \
        {"audit",                                                                                  \
         0,                                                                                        \
         OPTION_F64,                                                                               \
         SEARCH_ROW(base, audit),                                                                  \
         "SHARE",                                                                                  \
         "0.05",                                                                                   \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "measure trusted candidates anyway with this probability, down to half of it for the "    \
         "surest"},                                                                                \
        {"share",    0,                                                                            \
         OPTION_F64, SEARCH_ROW(base, share),                                                      \
         "SHARE",    "0.15",                                                                       \
         0.001,      1,                                                                            \
         NULL,       "of the candidates, at most so many are measured by --policy budget"},        \
        {"guarantee",                                                                              \
         0,                                                                                        \
         OPTION_CHOICE,                                                                            \
         SEARCH_ROW(base, guarantee),                                                              \
         "KIND",                                                                                   \
         RISK_GUARANTEE_DEFAULT,                                                                   \
         0,                                                                                        \
         0,                                                                                        \
         RISK_GUARANTEES,                                                                          \
         "what --policy risk bounds: the share of improvements that are discarded (recall), or "   \
         "the share of "                                                                           \
         "improvements in what is discarded (selective; online, which watches it all along)"},     \
        {"alpha",    0,                                                                            \
         OPTION_F64, SEARCH_ROW(base, alpha),                                                      \
         "SHARE",    "0.1",                                                                        \
         0.001,      0.5,                                                                          \
         NULL,       "by --policy risk, at most this share"},                                      \
        {"delta",                                                                                  \
         0,                                                                                        \
         OPTION_F64,                                                                               \
         SEARCH_ROW(base, delta),                                                                  \
         "P",                                                                                      \
         "0.1",                                                                                    \
         0.001,                                                                                    \
         0.5,                                                                                      \
         NULL,                                                                                     \
         "with which probability the share may be greater; not for --guarantee recall, which "     \
         "holds on "                                                                               \
         "average"},                                                                               \
        {"budget",                                                                                 \
         'b',                                                                                      \
         OPTION_DURATION,                                                                          \
         SEARCH_ROW(base, budget_ns),                                                              \
         "TIME",                                                                                   \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "stop when so much device time is used; \"90s\", \"5m\""},                                \
        {"hard-budget",                                                                            \
         0,                                                                                        \
         OPTION_DURATION,                                                                          \
         SEARCH_ROW(base, hard_ns),                                                                \
         "TIME",                                                                                   \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "device time that a daemon gives the search and no more, resumed or not"},                \
        {"weight",                                                                                 \
         'w',                                                                                      \
         OPTION_F64,                                                                               \
         SEARCH_ROW(base, weight),                                                                 \
         "W",                                                                                      \
         NULL,                                                                                     \
         0,                                                                                        \
         100,                                                                                      \
         NULL,                                                                                     \
         "share of the devices in relation to your other searches, 0.01 to 100; default: 1"},      \
        {"class",                                                                                  \
         0,                                                                                        \
         OPTION_CHOICE,                                                                            \
         SEARCH_ROW(base, queue_class),                                                            \
         "CLASS",                                                                                  \
         "normal",                                                                                 \
         0,                                                                                        \
         0,                                                                                        \
         QUEUE_CLASS_CHOICES,                                                                      \
         "interactive jobs go first while they are short, scavenge ones when nothing else waits"}, \
        {"measurements",                                                                           \
         'm',                                                                                      \
         OPTION_U64,                                                                               \
         SEARCH_ROW(base, measurements),                                                           \
         "N",                                                                                      \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "measure at most N candidates"},                                                          \
        {"candidates",                                                                             \
         'n',                                                                                      \
         OPTION_U64,                                                                               \
         SEARCH_ROW(base, candidates),                                                             \
         "N",                                                                                      \
         "600",                                                                                    \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "consider at most N candidates; 0: all there are"},                                       \
        {"max-time",                                                                               \
         0,                                                                                        \
         OPTION_DURATION,                                                                          \
         SEARCH_ROW(base, max_time_ns),                                                            \
         "TIME",                                                                                   \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "stop after so much time in all"},                                                        \
        {"seed",      's',                                                                         \
         OPTION_TEXT, SEARCH_ROW(base, seed),                                                      \
         "N",         NULL,                                                                        \
         0,           0,                                                                           \
         NULL,        "of all random choices; default: drawn"},                                    \
        {"batch",    0,                                                                            \
         OPTION_U64, SEARCH_ROW(base, batch),                                                      \
         "N",        "4",                                                                          \
         1,          RUN_BATCH_MAX,                                                                \
         NULL,       "candidates considered at a time"},                                           \
    {                                                                                              \
        "wide", 0, OPTION_U64, SEARCH_ROW(base, wide), "N", NULL, 0, RUN_BATCH_MAX, NULL,          \
            "the same after the first four batches; default: 16 for --policy budget, else twice "  \
            "--batch"                                                                              \
    }

// Refuses what cannot work before anything is created: a generator's text that is none, a problem
// that no device of the daemon runs. The generators' texts were read; they are made. path names the
// template in errors. *ret_device is that device, the caller's (message_clear with
// device_info_message).
MUST_CHECK int search_check(struct session *session, struct generator_list *generators,
                            const struct problem_dir *dir, const char *path,
                            struct device_info *ret_device, struct err *err);

// Creates *path (NULL: PROBLEM-DATE.run in the current folder, and *path becomes that, malloc'd)
// with the sources and RUN_STARTED, which run state then holds. The generators' texts were read.
// ERR_CONFLICT when the file exists. On failure no file is left.
MUST_CHECK int search_start(struct run **ret, struct run_state *run_state, char **path,
                            const struct generator_list *generators,
                            const struct search_options *options, const struct problem_dir *dir,
                            struct err *err);

#endif
