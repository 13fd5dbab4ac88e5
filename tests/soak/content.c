#include "tests/soak/content.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL 25         // shared sources in use at a time
#define POOL_JOBS 40    // jobs of a client, after which the shared sources change
#define TEAMS 8         // searches that several clients share
#define BUDGET_EVERY 10 // one client in so many has a search with a budget
#define BUDGET_S 0.5    // device-seconds
#define HANG_S 0.05     // time limit of a job that hangs

static const char cuda_problem[] =
    "{\"name\": \"copy\", \"title\": \"Copy\", \"license\": \"MIT\", \"language\": \"cuda\","
    " \"params\": [{\"name\": \"N\", \"type\": \"int\"}],"
    " \"tensors\": [{\"name\": \"A\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": "
    "[\"N\"],"
    " \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    " {\"name\": \"B\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"],"
    " \"tolerance\": 1}],"
    " \"cases\": {\"check\": [{\"N\": 17}],"
    " \"bench\": [{\"params\": {\"N\": 4096}, \"weight\": 1}],"
    " \"hidden\": {\"N\": {\"min\": 1, \"max\": 300}}},"
    " \"cache\": \"warm\", \"work\": {\"flops\": \"N\", \"bytes\": \"8*N\"}}";

// The fake executor passes candidates with "//! real" to the real one.
static const char real_reference[] =
    "//! real\nvoid reference(const float *A, double *B, double *B_scale, int64_t N)\n"
    "{ for (int64_t i = 0; i < N; i++) { B[i] = A[i]; B_scale[i] = 1; } }\n";
static const char real_baseline[] = "//! real\nvoid copy(const float *A, float *B, int64_t N)\n"
                                    "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n";
static const char fake_reference[] = "void reference(void);\n";
static const char fake_baseline[] = "void baseline(void);\n";

static struct digest digest_of_text(const char *text)
{
    return digest_of(text, strlen(text));
}

static enum content_kind draw_kind(struct stats_rng *rng, bool real)
{
    static const struct {
        enum content_kind kind;
        unsigned weight; // of 10000
    } share[] = {
        {CONTENT_RATIO, 5337},  {CONTENT_POOL, 2000},      {CONTENT_REFUSED, 800},
        {CONTENT_VERDICT, 900}, {CONTENT_KILLER, 150},     {CONTENT_COMPILE, 700},
        {CONTENT_REAL, 60},     {CONTENT_JAIL_KILLER, 50}, {CONTENT_HANG, 3},
    };
    uint64_t at = stats_rng_below(rng, 10000);

    for (size_t i = 0; i < ARRAY_LEN(share); i++) {
        if (at < share[i].weight) {
            return share[i].kind == CONTENT_REAL && !real ? CONTENT_RATIO : share[i].kind;
        }
        at -= share[i].weight;
    }
    return CONTENT_RATIO;
}

// Milliseconds on a device. Most jobs are short; some are long enough to be hit by a kill.
static unsigned draw_takes(struct stats_rng *rng)
{
    return stats_rng_below(rng, 12) == 0 ? (unsigned)stats_rng_below(rng, 600)
                                         : (unsigned)stats_rng_below(rng, 30);
}

static void set_ratio(struct content *content, double log2)
{
    content->log2 = log2;
    content->verdict = log2 > 0.002    ? VERDICT_FASTER
                       : log2 < -0.002 ? VERDICT_SLOWER
                                       : VERDICT_EQUIVALENT;
}

static char *killer_words(struct stats_rng *rng)
{
    static const char *const words[] = {"run-crash", "run-exit 3", "run-garbage", "run-empty",
                                        "lie-nan",   "lie-digest", "run-flood"};
    // A flood takes long to read, so it is rare.
    uint64_t at = stats_rng_below(rng, 50);

    return xasprintf("//! %s\n", words[at == 0 ? 6 : at % 6]);
}

// The comment lines that tell the fake executor what to do with this client's candidate. Sets what
// is expected of it.
static char *words_of(struct content *content, struct stats_rng *rng, unsigned client,
                      unsigned index)
{
    static const uint64_t verdicts[] = {VERDICT_WRONG, VERDICT_CRASH, VERDICT_TIMEOUT,
                                        VERDICT_REJECTED, VERDICT_QUARANTINED};

    switch (content->kind) {
    case CONTENT_RATIO:
        set_ratio(content, floor(stats_rng_normal(rng) * 1000) / 1000 +
                               (double)(client * 7919 + index) * 1e-9);
        return xasprintf("//! log2 %.17g\n//! takes %u\n", content->log2, draw_takes(rng));
    case CONTENT_REFUSED:
        content->verdict = VERDICT_COMPILE_ERROR;
        return xasprintf("//! compile-error\n");
    case CONTENT_VERDICT:
        content->verdict = verdicts[stats_rng_below(rng, ARRAY_LEN(verdicts))];
        return xasprintf("//! verdict %llu\n", (unsigned long long)content->verdict);
    case CONTENT_KILLER:
        return killer_words(rng);
    case CONTENT_JAIL_KILLER:
        return xasprintf("//! compile-%s\n", stats_rng_below(rng, 2) ? "crash" : "garbage");
    case CONTENT_HANG:
        content->spec.max_seconds = HANG_S;
        return xasprintf("//! run-hang\n");
    default:
        return xstrdup("");
    }
}

static char *source_of(struct content *content, struct stats_rng *rng, uint64_t seed,
                       unsigned client, unsigned index)
{
    if (content->kind == CONTENT_POOL) {
        unsigned number = index / POOL_JOBS * POOL + (unsigned)stats_rng_below(rng, POOL);

        set_ratio(content, (double)number * 1e-3 + 0.01);
        return xasprintf("//! log2 %.17g\n//! takes %u\nint pool_%llx_%u;\n", content->log2,
                         number % 40, (unsigned long long)seed, number);
    }
    if (content->kind == CONTENT_REAL) {
        content->spec.max_seconds = 0.05;
        content->spec.max_launches = 16;
        return xasprintf("//! real\nvoid copy(const float *A, float *B, int64_t N)\n"
                         "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n"
                         "int soak_%u_%u;\n",
                         client, index);
    }
    char *words = words_of(content, rng, client, index);
    char *source =
        xasprintf("%sint soak_%llx_%u_%u;\n", words, (unsigned long long)seed, client, index);
    free(words);
    return source;
}

static void set_search(struct content *content, struct stats_rng *rng, unsigned client,
                       unsigned index)
{
    uint64_t at = stats_rng_below(rng, 10);

    content->budget_seconds = NAN;
    if (client % BUDGET_EVERY == 0 && at < 2) {
        content->budgeted = true;
        content->budget_seconds = BUDGET_S;
        (void)snprintf(content->search, sizeof(content->search), "budget-%u", client);
    } else if (at < 5) {
        (void)snprintf(content->search, sizeof(content->search), "team-%u", client % TEAMS);
    } else {
        (void)snprintf(content->search, sizeof(content->search), "own-%u", client);
    }
    (void)snprintf(content->key, sizeof(content->key), "%u-%u", client, index);
    content->priority = stats_rng_below(rng, 3);
    at = stats_rng_below(rng, 20);
    content->queue_class = at == 0 ? 1 : at == 1 ? 2 : 0; // interactive, scavenge
}

void content_make(struct content *ret, uint64_t seed, bool real, unsigned client, unsigned index)
{
    memset(ret, 0, sizeof(*ret));
    struct stats_rng rng;
    stats_rng_init(&rng, seed, ((uint64_t)(client + 1) << 32) | index);
    ret->kind = draw_kind(&rng, real);
    message_init(&job_spec_message, &ret->spec);
    bool cuda = ret->kind != CONTENT_REAL && stats_rng_below(&rng, 100) < 70;
    set_search(ret, &rng, client, index);
    ret->source = source_of(ret, &rng, seed, client, index);
    ret->unique = ret->kind == CONTENT_RATIO || ret->kind == CONTENT_VERDICT;
    ret->spec.kind = ret->kind == CONTENT_COMPILE ? JOB_COMPILE : JOB_MEASURE;
    ret->spec.fresh = ret->spec.kind == JOB_MEASURE && stats_rng_below(&rng, 33) == 0;
    ret->spec.problem = digest_of_text(cuda ? cuda_problem : daemon_client_problem);
    ret->spec.candidate = digest_of_text(ret->source);
    if (ret->kind == CONTENT_REAL) {
        ret->spec.reference = digest_of_text(real_reference);
        ret->spec.baseline = digest_of_text(real_baseline);
    } else {
        ret->spec.reference = digest_of_text(fake_reference);
        ret->spec.baseline = digest_of_text(fake_baseline);
    }
}

void content_release(struct content *content)
{
    free(content->source);
    content->source = NULL;
}

void content_blobs(const struct content *content, const char *blob[CONTENT_BLOBS])
{
    struct digest cuda = digest_of_text(cuda_problem);
    bool real = content->kind == CONTENT_REAL;

    blob[0] = content->source;
    blob[1] = digest_equal(&cuda, &content->spec.problem) ? cuda_problem : daemon_client_problem;
    blob[2] = real ? real_reference : fake_reference;
    blob[3] = real ? real_baseline : fake_baseline;
}

bool content_is_killer(const struct content *content)
{
    return content->kind == CONTENT_KILLER || content->kind == CONTENT_JAIL_KILLER ||
           content->kind == CONTENT_HANG;
}

static const char *check_result(const struct content *content, const struct result *result)
{
    if (!digest_equal(&result->candidate, &content->spec.candidate) ||
        !digest_equal(&result->problem, &content->spec.problem)) {
        return "its result is about another candidate or problem";
    }
    switch (content->kind) {
    case CONTENT_RATIO:
    case CONTENT_POOL:
        if (result->verdict != content->verdict || !result->speedup) {
            return "its verdict is not what was measured";
        }
        return fabs(result->speedup->log2 - content->log2) > 1e-12
                   ? "its ratio is not what was measured"
                   : NULL;
    case CONTENT_REFUSED:
    case CONTENT_VERDICT:
        return result->verdict != content->verdict ? "its verdict is not what was found" : NULL;
    // A machine under this load may time out or quarantine even a correct candidate.
    case CONTENT_REAL:
        return verdict_is_ratio(result->verdict) || result->verdict == VERDICT_TIMEOUT ||
                       result->verdict == VERDICT_QUARANTINED
                   ? NULL
                   : "a right candidate was found wrong";
    default:
        return "it has a result although it ends whoever runs it";
    }
}

bool content_allows(const struct content *content, const struct job_info *info, const char **why)
{
    *why = NULL;
    if (info->state != JOB_DONE) {
        return true;
    }
    if (content->spec.kind == JOB_COMPILE) {
        if (!info->compiled) {
            *why = "it is done without what was compiled";
        } else if (info->compiled->verdict != VERDICT_NONE ||
                   digest_is_zero(&info->compiled->object)) {
            *why = "it was compiled without an object";
        }
    } else if (!info->result) {
        *why = "it is done without a result";
    } else if (!info->cached && info->result->attempt != info->attempt) {
        *why = "its result is of another attempt";
    } else {
        *why = check_result(content, info->result);
    }
    return !*why;
}

void content_name(const struct content *content, char name[17])
{
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(&content->spec.candidate, hex);
    memcpy(name, hex, 16);
    name[16] = '\0';
}
