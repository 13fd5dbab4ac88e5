// Design note. The step doubles whenever the rows have doubled, so that each doubling of the rows
// takes each / 2 turns.
#include "worker/model/training_schedule.h"

uint64_t training_schedule_step_max(const struct training_schedule *schedule)
{
    uint64_t step = 1;
    while (schedule->rows_max / step > schedule->each) {
        step *= 2;
    }
    return step;
}

uint64_t training_schedule_rows(const struct training_schedule *schedule, uint64_t turn)
{
    uint64_t most = training_schedule_step_max(schedule), half = schedule->each / 2;
    if (turn <= schedule->each || most == 1) {
        return turn;
    }
    uint64_t from = schedule->each, step = 2, turns = turn - schedule->each;
    for (; turns > half && step < most; step *= 2) {
        from += half * step;
        turns -= half;
    }
    return from + turns * step - step * schedule->quarter / 4;
}

uint64_t training_schedule_turn(const struct training_schedule *schedule, uint64_t count)
{
    uint64_t low = 0, high = count + 1; // turns: low is due, high is not
    if (training_schedule_rows(schedule, high) <= count) {
        high = 2 * high; // with quarters there may be more turns than rows
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (training_schedule_rows(schedule, middle) <= count) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
