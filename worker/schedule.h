// When the dear parts of a model are trained again: a function of how many rows there ever were, so
// that a model follows from its rows, however often it was fitted on the way. Up to `each` rows
// every row is a turn, up to twice as many every second one, up to four times every fourth, and so
// on until rows_max, after which turns keep their distance. What a turn costs grows with the rows;
// this way what a row costs does not.
#ifndef WORKER_SCHEDULE_H
#define WORKER_SCHEDULE_H

#include <stdint.h>

struct schedule {
    uint64_t each;     // at least 2, even
    uint64_t rows_max; // rows never become more
    unsigned quarter;  // turns are this many quarters of their distance earlier, 0 to 3, so that
                       // parts with different quarters are not trained at the same row
};

uint64_t schedule_count(const struct schedule *schedule, uint64_t turn); // rows at that turn
uint64_t schedule_turn(const struct schedule *schedule, uint64_t count); // the last by that count
uint64_t schedule_step_max(const struct schedule *schedule);             // their final distance

#endif
