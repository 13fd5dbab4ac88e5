// Design note. The error of the whole play-off is held below 0.05 by intervals that are wider than
// those of single measurements (Bonferroni): those hold at a level of 0.05 / 6, for the looks
// within a measurement; a pair is looked at after each of its games, and there are up to seven
// pairs.
#include "client/policy/play_off.h"

#include "client/run/improvement.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

#define WIDEN                                                                                      \
    1.18 // two-sided normal quantiles: that of 0.05 / (4 games * 7 pairs) over that of 0.05 / 6
#define HALF_LEAST 1e-4 // no interval is believed to be narrower, log2

// ---- who takes part ----

// The best figure of a candidate that is correct; NULL: it has none. One that ran unsealed has none
// here: its times are of another clock than those of others, and it can be no baseline.
static const struct estimate *figure_of(const struct run_state_candidate *candidate)
{
    const struct result *result = candidate->record ? candidate->record : candidate->result;
    bool right = result && !result->unsealed && verdict_is_ratio(result->verdict) &&
                 result->speedup && isfinite(result->speedup->log2) &&
                 verdict_is_ratio(candidate->result->verdict);
    return right ? result->speedup : NULL;
}

// Whether the candidate may be as fast as the incumbent: by its figure or by its interval.
static bool is_near(const struct estimate *figure, const struct estimate *incumbent)
{
    return figure->log2 > incumbent->log2 - PLAY_OFF_NEAR || figure->hi > incumbent->lo;
}

// The candidate's place among those that were chosen, `count` when it is none.
static size_t find(const uint64_t *candidates, size_t count, uint64_t candidate)
{
    size_t i = 0;
    while (i < count && candidates[i] != candidate) {
        i++;
    }
    return i;
}

// The best candidate that was not chosen yet and is near; 0: none.
static uint64_t next_best(const struct run_state *run_state, const uint64_t *chosen, size_t count,
                          const struct estimate *incumbent)
{
    const struct estimate *best = NULL;
    uint64_t ret = 0;
    for (uint64_t id = 1; id <= run_state->candidate_count; id++) {
        const struct estimate *figure = figure_of(&run_state->candidate[id - 1]);
        if (figure && is_near(figure, incumbent) && (!best || figure->log2 > best->log2) &&
            find(chosen, count, id) == count) {
            best = figure;
            ret = id;
        }
    }
    return ret;
}

size_t play_off_choose(const struct run_state *run_state, size_t most,
                       uint64_t candidates[static PLAY_OFF_MAX])
{
    const struct run_state_candidate *incumbent = run_state_best(run_state);
    const struct estimate *figure = incumbent ? figure_of(incumbent) : NULL;
    if (!figure) {
        return 0;
    }
    size_t count = 0;
    uint64_t next = incumbent->proposed.candidate;
    most = most < PLAY_OFF_MAX ? most : PLAY_OFF_MAX;
    while (next != 0 && count < most) {
        candidates[count++] = next;
        next = next_best(run_state, candidates, count, figure);
    }
    return count;
}

// ---- standings ----

struct games {
    const struct run_game *game;
    size_t count;
};

// The games of the latest play-off.
static struct games games_of(const struct run_state *run_state)
{
    size_t first = run_state->first_game;
    return (struct games){.game = run_state->game ? run_state->game + first : NULL,
                          .count = run_state->game_count - first};
}

// What the games of a pair say of the first one's speed over the second's.
struct pair {
    unsigned games;
    double log2, lo, hi; // NaN without a result
};

static struct pair pair_of(const struct games *games, uint64_t first, uint64_t second)
{
    struct pair pair = {.log2 = NAN, .lo = NAN, .hi = NAN};
    double weights = 0, sum = 0;
    for (size_t i = 0; i < games->count; i++) {
        const struct run_game *game = &games->game[i];
        bool forth = game->candidate == first && game->against == second;
        bool back = game->candidate == second && game->against == first;
        const struct estimate *speedup = game->result ? game->result->speedup : NULL;
        pair.games += forth || back;
        if (!(forth || back) || !speedup || !verdict_is_ratio(game->result->verdict)) {
            continue;
        }
        double half = fmax((speedup->hi - speedup->lo) / 2, HALF_LEAST);
        if (isfinite(half) && isfinite(speedup->log2)) {
            double weight = 1 / (half * half);
            weights += weight;
            sum += weight * (forth ? speedup->log2 : -speedup->log2);
        }
    }
    if (weights > 0) {
        pair.log2 = sum / weights;
        pair.lo = pair.log2 - WIDEN / sqrt(weights);
        pair.hi = pair.log2 + WIDEN / sqrt(weights);
    }
    return pair;
}

// Whether the contestant was not correct in one of its games.
static bool has_failed(const struct games *games, uint64_t candidate)
{
    for (size_t i = 0; i < games->count; i++) {
        const struct run_game *game = &games->game[i];
        if (game->candidate == candidate && game->result &&
            !verdict_is_ratio(game->result->verdict)) {
            return true;
        }
    }
    return false;
}

static enum play_off_place place_of(const struct play_off_contestant *one)
{
    if (one->hi < 0) {
        return PLAY_OFF_SLOWER;
    }
    if (one->lo > 0) {
        return PLAY_OFF_LEADS;
    }
    bool equal = one->lo > -IMPROVEMENT_MARGIN_LOG2 && one->hi < IMPROVEMENT_MARGIN_LOG2;
    return equal || one->games >= PLAY_OFF_GAMES ? PLAY_OFF_TIED : PLAY_OFF_OPEN;
}

// Fills in what the games against the leader say.
static void compare(const struct games *games, const struct play_off *play_off,
                    struct play_off_contestant *one)
{
    struct pair pair =
        pair_of(games, one->candidate, play_off->contestant[play_off->leader].candidate);
    one->games = pair.games;
    one->log2 = pair.log2;
    one->lo = pair.lo;
    one->hi = pair.hi;
}

// Places everyone who is not out against the leader. Returns the one that is told to be faster by
// most; count when nobody is.
static size_t place_all(const struct games *games, struct play_off *play_off)
{
    size_t faster = play_off->count;
    for (size_t i = 0; i < play_off->count; i++) {
        struct play_off_contestant *one = &play_off->contestant[i];
        if (i == play_off->leader || one->place == PLAY_OFF_SLOWER ||
            one->place == PLAY_OFF_FAILED) {
            continue;
        }
        compare(games, play_off, one);
        one->place = place_of(one);
        if (one->place == PLAY_OFF_LEADS &&
            (faster == play_off->count || one->log2 > play_off->contestant[faster].log2)) {
            faster = i;
        }
    }
    return faster;
}

// Where the play-off stood after these games.
static void place_after(const struct run_play_off *event, const struct games *games,
                        struct play_off *ret)
{
    *ret = (struct play_off){
        .count = event->candidates_count < PLAY_OFF_MAX ? event->candidates_count : PLAY_OFF_MAX};
    ret->leader = ret->count;
    for (size_t i = 0; i < ret->count; i++) {
        bool failed = has_failed(games, event->candidates[i]);
        ret->contestant[i] =
            (struct play_off_contestant){.candidate = event->candidates[i],
                                         .place = failed ? PLAY_OFF_FAILED : PLAY_OFF_OPEN,
                                         .log2 = NAN,
                                         .lo = NAN,
                                         .hi = NAN};
        ret->leader = !failed && ret->leader == ret->count ? i : ret->leader;
    }
    // Each new leader puts the one before out, so this ends.
    for (size_t next = ret->leader; next < ret->count;) {
        if (next != ret->leader) {
            ret->contestant[ret->leader].place = PLAY_OFF_SLOWER;
        }
        ret->leader = next;
        ret->contestant[next].place = PLAY_OFF_LEADS;
        next = place_all(games, ret);
    }
    for (size_t i = 0; i < ret->count && ret->leader < ret->count; i++) {
        compare(games, ret, &ret->contestant[i]); // also of those who lost to another one
    }
}

void play_off_standings(const struct run_state *run_state, struct play_off *ret)
{
    struct games games = games_of(run_state);
    place_after(&run_state->play_off, &games, ret);
}

// ---- rounds ----

static struct play_off_game game_against(const struct play_off *play_off, size_t contestant)
{
    uint64_t one = play_off->contestant[contestant].candidate,
             leader = play_off->contestant[play_off->leader].candidate;
    bool swapped = play_off->contestant[contestant].games % 2 == 1;
    return swapped ? (struct play_off_game){.candidate = leader, .against = one}
                   : (struct play_off_game){.candidate = one, .against = leader};
}

// The contestant of the next game among those that are not in the round yet; count when none is
// left.
static size_t next_of_round(const struct play_off *play_off, const bool in_round[PLAY_OFF_MAX])
{
    size_t next = play_off->count;
    for (size_t i = 0; i < play_off->count; i++) {
        const struct play_off_contestant *one = &play_off->contestant[i];
        if (one->place == PLAY_OFF_OPEN && !in_round[i] &&
            (next == play_off->count || one->games < play_off->contestant[next].games)) {
            next = i;
        }
    }
    return next;
}

// The games of the round that follows these standings, `most` at most.
static size_t make_round(const struct play_off *play_off, uint64_t most,
                         struct play_off_game ret[static PLAY_OFF_MAX])
{
    bool in_round[PLAY_OFF_MAX] = {false};
    size_t count = 0, next;
    while (count < most && (next = next_of_round(play_off, in_round)) < play_off->count) {
        in_round[next] = true;
        ret[count++] = game_against(play_off, next);
    }
    return count;
}

size_t play_off_due(const struct run_state *run_state,
                    struct play_off_game ret[static PLAY_OFF_MAX])
{
    uint64_t devices = run_state->started.pool_devices;
    struct games all = games_of(run_state), before = {.game = all.game};
    size_t count = 0, played = all.count; // of the round that follows `before`
    if (run_state->has_played_off) {
        return 0;
    }
    do { // the rounds so far
        struct play_off play_off;
        before.count += count;
        played -= count;
        place_after(&run_state->play_off, &before, &play_off);
        count = make_round(&play_off, devices > 1 ? devices : 1, ret);
    } while (count > 0 && played >= count);
    size_t due = count > played ? count - played : 0;
    memmove(ret, ret + count - due, due * sizeof(*ret));
    return due;
}

// ---- words ----

static void add_names(const struct play_off *play_off, enum play_off_place place,
                      struct strbuf *out)
{
    size_t count = 0, written = 0;
    for (size_t i = 0; i < play_off->count; i++) {
        count += play_off->contestant[i].place == place;
    }
    for (size_t i = 0; i < play_off->count; i++) {
        if (play_off->contestant[i].place == place) {
            strbuf_addf(out, "%s%llu",
                        written == 0           ? ""
                        : written + 1 == count ? " and "
                                               : ", ",
                        (unsigned long long)play_off->contestant[i].candidate);
            written++;
        }
    }
}

static size_t count_place(const struct play_off *play_off, enum play_off_place place)
{
    size_t count = 0;
    for (size_t i = 0; i < play_off->count; i++) {
        count += play_off->contestant[i].place == place;
    }
    return count;
}

void play_off_describe(const struct run_state *run_state, struct strbuf *out)
{
    struct play_off play_off;
    play_off_standings(run_state, &play_off);
    if (play_off.count == 0) {
        return;
    }
    size_t games = run_state->game_count - run_state->first_game;
    strbuf_addf(out, "%zu candidates in %zu game%s against each other: ", play_off.count, games,
                games == 1 ? "" : "s");
    if (play_off.leader == play_off.count) {
        strbuf_adds(out, "none was correct again");
        return;
    }
    strbuf_addf(out, "candidate %llu leads",
                (unsigned long long)play_off.contestant[play_off.leader].candidate);
    static const struct {
        enum play_off_place place;
        const char *text;
    } parts[] = {{PLAY_OFF_TIED, ", tied with "},
                 {PLAY_OFF_OPEN, ", not told apart from "},
                 {PLAY_OFF_SLOWER, ", faster than "},
                 {PLAY_OFF_FAILED, "; not correct again: "}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (count_place(&play_off, parts[i].place) > 0) {
            strbuf_adds(out, parts[i].text);
            add_names(&play_off, parts[i].place, out);
        }
    }
    if (!run_state->has_played_off) {
        strbuf_adds(out, "; it is not over");
    } else if (run_state->played_off.reason) {
        strbuf_addf(out, "; it ended early: %.300s", run_state->played_off.reason);
    }
}
