// Names and properties are rows of the tables in verdict.h. Here they become arrays that are
// indexed by number. Arguments are uint64_t because numbers arrive from the wire and from files,
// where any value may come. A number that is not in the table is "unknown", is not a ratio and is
// not terminal: an unknown state must not make a client stop waiting.
#include "proto/verdict.h"
#include "common/mem.h"

#define TIE_PRECISIONS 2.0 // a tie reaches no further than this many times the precision

struct verdict_row {
    const char *name;    // in reports and --json
    const char *meaning; // for people
    bool ratio;          // the candidate was correct and has an estimate
};

static const struct verdict_row verdict_table[] = {
#define X(number, id, name, ratio, text) [number] = {name, text, ratio},
    VERDICTS(X)
#undef X
};

struct job_state_row {
    const char *name; // in reports and --json
    bool terminal;    // a job never leaves this state
};

static const struct job_state_row job_state_table[] = {
#define X(number, id, name, terminal, text) [number] = {name, terminal},
    JOB_STATES(X)
#undef X
};

static const char *const job_cause_table[] = {
#define X(number, id, name, text) [number] = name,
    JOB_CAUSES(X)
#undef X
};

bool verdict_known(uint64_t verdict)
{
    return verdict < ARRAY_LEN(verdict_table) && verdict_table[verdict].name;
}

const char *verdict_name(uint64_t verdict)
{
    return verdict_known(verdict) ? verdict_table[verdict].name : "unknown";
}

const char *verdict_meaning(uint64_t verdict)
{
    return verdict_known(verdict) ? verdict_table[verdict].meaning
                                  : "a verdict this version does not know";
}

bool verdict_is_ratio(uint64_t verdict)
{
    return verdict_known(verdict) && verdict_table[verdict].ratio;
}

bool verdict_is_tie(double lo, double hi, double precision_log2)
{
    double margin = TIE_PRECISIONS * precision_log2;

    return lo <= 0 && hi >= 0 && lo > -margin && hi < margin;
}

const char *job_cause_name(uint64_t cause)
{
    return cause < ARRAY_LEN(job_cause_table) ? job_cause_table[cause] : "unknown";
}

const char *job_state_name(uint64_t state)
{
    return state < ARRAY_LEN(job_state_table) ? job_state_table[state].name : "unknown";
}

bool job_state_is_terminal(uint64_t state)
{
    return state < ARRAY_LEN(job_state_table) && job_state_table[state].terminal;
}
