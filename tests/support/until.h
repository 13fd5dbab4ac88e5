// Waiting for what tells nobody. A test waits for an event where there is one: a message, a pipe,
// the end of a process. Where there is none it looks again and again, here, with a deadline;
// nothing else in the tests may sleep.
#ifndef TESTS_SUPPORT_UNTIL_H
#define TESTS_SUPPORT_UNTIL_H

#include <stdbool.h>
#include <stdint.h>

struct until {
    uint64_t began_ns; // when it was first looked; 0: not yet
    uint64_t pause_ns; // the last one
};

// Looks at the condition until it holds: soon at first, every hundredth of a second in the end. The
// test fails, naming the condition, when it does not hold after two minutes: a deadline that only
// something that never happens meets.
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        struct until until_ = {0};                                                                 \
        while (!(condition)) {                                                                     \
            until_look_again(&until_, #condition, __FILE__, __LINE__);                             \
        }                                                                                          \
    } while (0)

// A pause between two looks; fails the test when the deadline has passed.
void until_look_again(struct until *until, const char *condition, const char *file, int line);

#endif
