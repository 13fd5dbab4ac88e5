// How a search begins: its options, the checks before anything is created, and the first event of
// its run file. `kcast search` and `kcast tune` begin theirs here; search_drive does the rest.
#ifndef CLIENT_SEARCH_SEARCH_START_H
#define CLIENT_SEARCH_SEARCH_START_H

#include "client/policy/play_off.h"
#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "client/problem/problem_dir.h"
#include "client/propose/generator_list.h"
#include "client/propose/strategy.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/pipeline.h"
#include "client/search/pipeline_width.h"
#include "client/session.h"
#include "common/err.h"
#include "common/options.h"
#include "proto/queue_class.h"
#include <stdbool.h>
#include <stdint.h>

struct search_options {
    char *strategy;                  // a name of client/propose/strategy.h
    char *policy;                    // a name of client/policy/policy.h
    double confidence, audit, share; // parameters of policies; confidence is 0 by default
    char *weights;                   // of costs, see client/policy/costs.h
    char *guarantee;                 // of policy risk, see client/policy/risk.h
    double alpha, delta;             // of policy risk
    uint64_t budget_ns;              // device time; 0: no limit
    uint64_t max_time_ns;            // wall time; 0: no limit
    double target;                   // speedup with which it ends; 0: none
    uint64_t measurements;           // at most so many; 0: no limit
    uint64_t candidates;             // at most so many; 0: no limit
    uint64_t batch;                  // candidates considered at a time
    uint64_t wide;                   // the same later in the search; 0: see pipeline_width.h
    uint64_t lag;                    // batches under way at a time; 0: see pipeline_width.h
    char *seed;                      // NULL: drawn at random
    double weight;                   // of the search at the daemon; 0: as the daemon has it
    uint64_t hard_ns;                // device time that the daemon enforces; 0: none
    char *queue_class;               // name of a class of proto/queue_class.h
    uint64_t exec_jobs;              // programs of a generator "exec:" that run at a time
    uint64_t surplus;                // proposals that are asked for, times what a batch takes
    uint64_t exec_ns;                // after which such a program is killed
    uint64_t play_off;               // candidates of the play-off; 0: none
    bool unsealed, accept_unsealed;  // candidates may run unsealed, and then be records
    bool machine_code;               // features of machine code
    const struct bytes *warm;        // text of client/propose/warm.h, no option; NULL: none
};

// The confidence from which on a forecast is trusted.
static inline double search_confidence(const struct search_options *options)
{
    return options->confidence > 0 ? options->confidence : POLICY_CONFIDENCE;
}

// One row of an option table (common/options.h) whose struct has a struct search_options at `base`.
#define SEARCH_ROW(base, name, letter, type, field, argument, initial, min, max, choices, help)    \
    {                                                                                              \
        name, letter, type, (base) + offsetof(struct search_options, field), argument, initial,    \
            min, max, choices, help                                                                \
    }
// The rows of all search options.
#define SEARCH_OPTION_ROWS(base)                                                                   \
    SEARCH_ROW(base, "strategy", 0, OPTION_CHOICE, strategy, "NAME", STRATEGY_DEFAULT, 0, 0,       \
               "best-of-n|greedy|islands|puct", "which candidate comes next"),                     \
        SEARCH_ROW(base, "policy", 0, OPTION_CHOICE, policy, "NAME", "rank", 0, 0,                 \
                   "rank|threshold|budget|risk|all",                                               \
                   "which candidates are measured: those that promise most of many points that "   \
                   "are forecast before they are compiled, those whose forecast cannot be "        \
                   "trusted, of these the most promising share only, those above a threshold "     \
                   "that is certified for a risk, or all"),                                        \
        SEARCH_ROW(                                                                                \
            base, "confidence", 'c', OPTION_F64, confidence, "P", NULL, 0.001, 1, NULL,            \
            "leave a candidate unmeasured when it is this sure that measuring is not worth "       \
            "its cost now; policy rank then ends the search; default: 0.9, and rank uses "         \
            "its limits up"),                                                                      \
        SEARCH_ROW(base, "weights", 0, OPTION_TEXT, weights, "LIST", NULL, 0, 0, NULL,             \
                   "what costs count in device-seconds; default: "                                 \
                   "device=1,compile=0.1,wall=0,token=0.001,money=1000"),                          \
        SEARCH_ROW(base, "audit", 0, OPTION_F64, audit, "SHARE", "0.05", 0, 1, NULL,               \
                   "of the measurements, so many are audits of what a forecast would leave out: "  \
                   "most at the end, of what is left then"),                                       \
        SEARCH_ROW(base, "share", 0, OPTION_F64, share, "SHARE", "0.15", 0.001, 1, NULL,           \
                   "of the candidates, at most so many are measured by --policy budget"),          \
        SEARCH_ROW(base, "guarantee", 0, OPTION_CHOICE, guarantee, "KIND", RISK_GUARANTEE_DEFAULT, \
                   0, 0, RISK_GUARANTEES,                                                          \
                   "what --policy risk bounds: the share of improvements that are discarded "      \
                   "(recall), or the share of improvements in what is discarded (selective; "      \
                   "online, which watches it all along)"),                                         \
        SEARCH_ROW(base, "alpha", 0, OPTION_F64, alpha, "SHARE", "0.1", 0.001, 0.5, NULL,          \
                   "by --policy risk, at most this share"),                                        \
        SEARCH_ROW(base, "delta", 0, OPTION_F64, delta, "P", "0.1", 0.001, 0.5, NULL,              \
                   "with which probability the share may be greater; not for --guarantee recall, " \
                   "which holds on average"),                                                      \
        SEARCH_ROW(base, "budget", 'b', OPTION_DURATION, budget_ns, "TIME", NULL, 0, 0, NULL,      \
                   "stop when so much device time is used; what is under way then is finished; "   \
                   "\"90s\", \"5m\""),                                                             \
        SEARCH_ROW(base, "hard-budget", 0, OPTION_DURATION, hard_ns, "TIME", NULL, 0, 0, NULL,     \
                   "device time that a daemon gives the search and no more, resumed or not"),      \
        SEARCH_ROW(                                                                                \
            base, "weight", 'w', OPTION_F64, weight, "W", NULL, 0.01, 100, NULL,                   \
            "share of the devices in relation to your other searches, 0.01 to 100; default: 1"),   \
        SEARCH_ROW(base, "class", 0, OPTION_CHOICE, queue_class, "CLASS", "normal", 0, 0,          \
                   QUEUE_CLASS_CHOICES,                                                            \
                   "interactive jobs go first while they are short, scavenge ones when nothing "   \
                   "else waits"),                                                                  \
        SEARCH_ROW(base, "measurements", 'm', OPTION_U64, measurements, "N", NULL, 0, 0, NULL,     \
                   "measure at most N candidates"),                                                \
        SEARCH_ROW(base, "candidates", 'n', OPTION_U64, candidates, "N", "600", 0, 0, NULL,        \
                   "consider at most N candidates; 0: all there are"),                             \
        SEARCH_ROW(base, "max-time", 0, OPTION_DURATION, max_time_ns, "TIME", NULL, 0, 0, NULL,    \
                   "begin nothing more after so much time in all; what is under way then is "      \
                   "finished"),                                                                    \
        SEARCH_ROW(base, "target", 0, OPTION_F64, target, "X", NULL, RUN_TARGET_LEAST,             \
                   RUN_TARGET_MOST, NULL,                                                          \
                   "stop when a record is X times as fast as the baseline; what is under way "     \
                   "then is finished"),                                                            \
        SEARCH_ROW(base, "seed", 's', OPTION_TEXT, seed, "N", NULL, 0, 0, NULL,                    \
                   "of all random choices; default: drawn"),                                       \
        SEARCH_ROW(base, "play-off", 0, OPTION_U64, play_off, "N", "5", 0, PLAY_OFF_MAX, NULL,     \
                   "at the end measure the N best against each other, for about a twentieth of "   \
                   "the budget, or a fifth of the device time used; 0: do not"),                   \
        SEARCH_ROW(base, "machine-code", 0, OPTION_FLAG, machine_code, NULL, NULL, 0, 0, NULL,     \
                   "count the machine instructions of CUDA candidates: for a space to be "         \
                   "exported, or for a language model that is asked for forecasts"),               \
        SEARCH_ROW(base, "batch", 0, OPTION_U64, batch, "N", "4", 1, RUN_BATCH_MAX, NULL,          \
                   "candidates considered at a time"),                                             \
        SEARCH_ROW(base, "wide", 0, OPTION_U64, wide, "N", NULL, 0, RUN_BATCH_MAX, NULL,           \
                   "the same after the first four batches; default: 16 for --policy budget, "      \
                   "--batch for --policy rank, else twice --batch; more for many devices and a "   \
                   "slow worker, and for --policy rank after 64 batches unless --batch, --wide "   \
                   "or --lag is given"),                                                           \
        SEARCH_ROW(                                                                                \
            base, "lag", 0, OPTION_U64, lag, "N", NULL, 0, RUN_LAG_MAX, NULL,                      \
            "decide from outcomes that are at most N batches behind; more keep more devices "      \
            "busy, "                                                                               \
            "fewer decide from fresher outcomes; default: what keeps devices and compilers busy")

// Refuses what cannot work before anything is created: a generator's text that cannot be parsed, or
// a problem that no device of the daemons runs. Creates the generators from their texts, which have
// been read. path names the template in errors. *ret_device is a device that runs the problem, the
// caller's (message_clear with device_info_message). *ret_capacity is what serves the search now.
MUST_CHECK int search_check(struct session *session, struct generator_list *generators,
                            const struct problem_dir *dir, const char *path,
                            struct device_info *ret_device, struct pipeline_capacity *ret_capacity,
                            struct err *err);

// Creates the run file *path with the sources and RUN_STARTED, which run_state then holds. When
// *path is NULL it becomes PROBLEM-DATE.run in the current folder, malloc'd. The generators' texts
// have been read. capacity is of search_check. ERR_CONFLICT when the file exists. After a failure
// no file is left.
MUST_CHECK int search_start(struct run **ret, struct run_state *run_state, char **path,
                            const struct generator_list *generators,
                            const struct search_options *options, const struct problem_dir *dir,
                            const struct pipeline_capacity *capacity, struct err *err);

#endif
