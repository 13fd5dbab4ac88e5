// When the expensive parts of a model are trained again, as a function of the number of rows
// (outcomes) that there ever were. A model therefore follows from its rows alone, however often it
// was fitted on the way. Each time of training is called a turn; turns are numbered from 0. Up to
// `each` rows there is a turn at every row, up to twice as many at every second row, up to four
// times as many at every fourth, and so on until rows_max, from where on the step stays the same. A
// turn costs more with more rows; with these steps the cost per row does not grow. Called by the
// models. Pure functions.
#ifndef WORKER_MODEL_TRAINING_SCHEDULE_H
#define WORKER_MODEL_TRAINING_SCHEDULE_H

#include <stdint.h>

struct training_schedule {
    uint64_t each;     // up to so many rows every row is a turn; at least 2, even
    uint64_t rows_max; // a model is trained on at most so many rows
    unsigned quarter;  // turns come this many quarters of a step earlier, 0 to 3: parts of a model
                       // with different quarters are not trained at the same row
};

// The number of rows at which turn number `turn` is due.
uint64_t training_schedule_rows(const struct training_schedule *schedule, uint64_t turn);
// The number of the last turn that is due with `count` rows.
uint64_t training_schedule_turn(const struct training_schedule *schedule, uint64_t count);
// The largest step between two turns, in rows.
uint64_t training_schedule_step_max(const struct training_schedule *schedule);

#endif
