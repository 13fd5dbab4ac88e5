// A forecaster that knows the truth about a recorded space and says something made up about it: a
// stand-in for a language model whose skill is known. What it says is recalibrated by the code of
// the worker's engines, and learnt from in their way, so that several searches in a row meet the
// state that a real worker would have. Used by bench_trust.c and by tests.
#ifndef TESTS_BENCH_SCRIPTED_FORECASTER_H
#define TESTS_BENCH_SCRIPTED_FORECASTER_H

#include "client/forecast/forecast_service.h"
#include "replay/recorded_space.h"
#include "replay/sim.h"

#define SCRIPT_DRIFT 50 // answers of a search until a drifting forecaster changes

// What the forecaster says. A certain one puts 98 % on one bin, others 70 %.
enum script {
    SCRIPT_GOOD,         // the truth, with a log2 error of 0.15
    SCRIPT_EXACT,        // the bin of the truth, certainly
    SCRIPT_NOISY,        // the truth, with a log2 error of 0.8
    SCRIPT_FAST,         // two bins too fast
    SCRIPT_SLOW,         // two bins too slow, certainly
    SCRIPT_ADVERSARY,    // the space upside down: its best is called its worst
    SCRIPT_CONSTANT,     // 0.2 times, certainly, whatever it is asked
    SCRIPT_NOISE,        // a bin at random
    SCRIPT_TO_ADVERSARY, // good for SCRIPT_DRIFT answers, then an adversary
    SCRIPT_TO_NOISE,     // good for SCRIPT_DRIFT answers, then noise
    SCRIPT_TO_CONSTANT,  // good for SCRIPT_DRIFT answers, then a constant
    SCRIPTS
};
extern const char *const script_name[SCRIPTS];

enum script_engine { SCRIPT_LLM, SCRIPT_BOTH, SCRIPT_STATIC, SCRIPT_ENGINES };
extern const char *const script_engine_name[SCRIPT_ENGINES];

struct scripted_forecaster;

// recorded is borrowed. Never NULL.
struct scripted_forecaster *scripted_forecaster_create(const struct recorded_space *recorded,
                                                       enum script_engine engine);
void scripted_forecaster_free(struct scripted_forecaster *forecaster); // NULL is fine

// From now on it forecasts for another search, in this simulation, by this script. What it has
// learnt stays. model is what it calls itself.
void scripted_forecaster_begin(struct scripted_forecaster *forecaster, struct sim *sim,
                               enum script script, const char *model, uint64_t seed);
struct forecast_service *scripted_forecaster_service(struct scripted_forecaster *forecaster);

#endif
