// The play-off that ends a search: the best candidates are measured against each other, in pairs,
// until they part or tie. The leader is the incumbent at first. Everyone else plays against the
// leader; who is told to be faster takes the lead, who is told to be slower is out. What several
// games of a pair say is put together, weighted by their precision. Games are played in rounds, of
// as many games as the search began with devices, so that these play side by side; who leads is
// settled between rounds. Called by the pipeline, by summaries and by reports. Pure functions of
// the run state.
#ifndef CLIENT_POLICY_PLAY_OFF_H
#define CLIENT_POLICY_PLAY_OFF_H

#include "client/run/run_state.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAY_OFF_DEFAULT 5      // candidates, the default of --play-off
#define PLAY_OFF_MAX 8          // candidates, at most
#define PLAY_OFF_GAMES 4        // of one pair, at most: then it is a tie
#define PLAY_OFF_SHARE 0.05     // of the budget of device seconds, kept for it
#define PLAY_OFF_FREE_SHARE 0.2 // without a budget: of the device seconds that the search has used
#define PLAY_OFF_NEAR 0.0704 // log2(1.05): who is surely further behind the incumbent takes no part

enum play_off_place {
    PLAY_OFF_LEADS,
    PLAY_OFF_OPEN,   // not told apart from the leader yet
    PLAY_OFF_TIED,   // not told apart from the leader by all its games, or equally fast
    PLAY_OFF_SLOWER, // than the leader, or than an earlier one that the leader has beaten
    PLAY_OFF_FAILED, // was not correct in a game
};

struct play_off_contestant {
    uint64_t candidate;
    enum play_off_place place;
    unsigned games; // against the leader
    double log2, lo,
        hi; // its speed over the leader's, with the interval; NaN: no game of the two says
};

struct play_off {
    struct play_off_contestant contestant[PLAY_OFF_MAX]; // in the order of the run
    size_t count;                                        // 0: there is no play-off
    size_t leader;                                       // contestant; count: none is left
};

// Chooses who takes part, the incumbent first: of the correct candidates that were measured the
// best `most`, without equal objects and without those that lie further behind the incumbent than
// PLAY_OFF_NEAR, unless their interval overlaps the incumbent's. Returns how many; with fewer than
// two there is nothing to play.
size_t play_off_choose(const struct run_state *run_state, size_t most,
                       uint64_t candidates[static PLAY_OFF_MAX]);

// Where the play-off of the run stands, from its games so far.
void play_off_standings(const struct run_state *run_state, struct play_off *ret);

struct play_off_game {
    uint64_t candidate, against; // who is measured, and against whom
};

// The games of the round under way that have no outcome yet, in the order in which their outcomes
// are to be recorded: of those that are not told apart from the leader the ones with the fewest
// games. A pair changes places from game to game. Returns how many; 0: everything is decided.
size_t play_off_due(const struct run_state *run_state,
                    struct play_off_game ret[static PLAY_OFF_MAX]);

// Appends one sentence about the play-off, without a full stop. Nothing when there was none.
void play_off_describe(const struct run_state *run_state, struct strbuf *out);

#endif
