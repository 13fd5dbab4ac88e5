// What was measured elsewhere, on another device or for another problem with the same parameters,
// and where a search begins with it. Its text is JSON lines {"params": {"NAME": number, …},
// "log2": number or null}, null for what was not correct; it is kept in the run file. Called by
// commands that begin a search, by the pipeline and by replays. Pure: the same text, generator and
// outcomes give the same points.
//
// The first WARM_TRIED points are the best ones elsewhere and as many that stand at equal distances
// in its ranking, in turn. When ten outcomes of points known elsewhere are visible, they are
// compared: if the order of speed there does not show here (Kendall's tau-a below WARM_TAU,
// failures slowest), the search goes on as if it had begun cold. Chance passes that with a
// probability of about 0.15.
#ifndef CLIENT_PROPOSE_WARM_H
#define CLIENT_PROPOSE_WARM_H

#include "client/propose/strategy.h"
#include "common/err.h"
#include "common/mem.h"

#define WARM_TRIED 10 // points that are measured before it is trusted
#define WARM_TAU 0.25
#define WARM_FACT "warm:log2" // source fact of a point that is known elsewhere

struct warm;

// The number of the generator that a search begins warm with: the first whose points have
// parameters and positions. count when there is none.
size_t warm_generator(const struct generator *const *generator, size_t count);

// Parses the text and finds its points in the generator. path names the text in errors. ERR_INVALID
// when a line is wrong, when no point of the generator has the parameters of any line, or when
// fewer than WARM_TRIED of those that do are correct. generator is borrowed for the call.
MUST_CHECK int warm_create(struct warm **ret, const struct bytes *text, const char *path,
                           const struct generator *generator, struct err *err);
void warm_free(struct warm *warm); // NULL is fine

// The log2 speedup that the point had elsewhere; NaN when it is not known or was not correct.
double warm_log2(const struct warm *warm, size_t point);

// Whether the visible outcomes show the order of speed that was found elsewhere. True while there
// are fewer than WARM_TRIED.
bool warm_holds(const struct warm *warm, const struct strategy_view *view);

// Chooses up to want different points that were not proposed before: first those to be tried, then
// the best ones. Returns how many; 0 when all are proposed.
size_t warm_choose(const struct warm *warm, const struct strategy_view *view, size_t want,
                   struct strategy_choice *out);

#endif
