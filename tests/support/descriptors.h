// A process that has no file descriptor left, as on a host where too many files are open.
#ifndef TESTS_SUPPORT_DESCRIPTORS_H
#define TESTS_SUPPORT_DESCRIPTORS_H

#include <sys/resource.h>

// From now on nothing can be opened: EMFILE. Returns the limit of before, for
// descriptors_give_back.
struct rlimit descriptors_take(void);
void descriptors_give_back(const struct rlimit *old);

#endif
