// Each doubling of the rows takes each / 2 turns, as the distance doubles with it.
#include "worker/schedule.h"

uint64_t schedule_step_max(const struct schedule *schedule)
{
    uint64_t step = 1;
    while (schedule->rows_max / step > schedule->each) {
        step *= 2;
    }
    return step;
}

uint64_t schedule_count(const struct schedule *schedule, uint64_t turn)
{
    uint64_t most = schedule_step_max(schedule), half = schedule->each / 2;
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

uint64_t schedule_turn(const struct schedule *schedule, uint64_t count)
{
    uint64_t low = 0, high = count + 1; // count of low <= count < count of high
    if (schedule_count(schedule, high) <= count) {
        high = 2 * high; // quarters came earlier
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (schedule_count(schedule, middle) <= count) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
