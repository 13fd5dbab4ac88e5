// What acts.c can be told to do.
#ifndef TESTS_DATA_EXEC_RUNNER_ACTS_H
#define TESTS_DATA_EXEC_RUNNER_ACTS_H

#define ACTS_WORK_NS 20000000 // processor time
#define ACTS_PAGES 32         // pages of both tensors

enum act {
    ACT_STATE = 1, // answers by enum acts_place whether anything was there already
    ACT_ANSWER,
    ACT_WORK,
    ACT_WORK_AFTER_DONE,
    ACT_WORK_FOR_EVER,
    ACT_WORK_FOR_EVER_AFTER_DONE,
    ACT_SLEEP_ELSEWHERE,
    ACT_SLEEP_ON_PARK,
    ACT_SLEEP_UNDONE,
    ACT_CHANGE_GO,
    ACT_CHANGE_GO_AND_RETURN,
    ACT_SERVE_NOTHING,
    ACT_WAKE_ITSELF,
    ACT_FORGE_SETUP,
    ACT_SEGV,
    ACT_EXIT,
    ACT_ABORT,
    ACT_STOP_PARENT,
    ACT_REMOVE_MEMORY,
    ACT_FORK,
    ACT_MEMBARRIER,
    ACT_DESCRIPTORS,
    ACT_FAULTS,
    ACT_SLEEP_AND_RETURN,
};

enum acts_place {
    ACTS_DATA,
    ACTS_BSS,
    ACTS_TLS,
    ACTS_HEAP,
    ACTS_STACK,
    ACTS_MMAP,
    ACTS_BREAK,
    ACTS_PAGE,
    ACTS_PLACES,
};

enum acts_constructor {
    ACTS_LOAD_LEAVES_FILES = 1,
    ACTS_LOAD_FORGES,
    ACTS_LOAD_CALLS_SOCKET,
    ACTS_LOAD_SEGV,
    ACTS_LOAD_ABORTS,
    ACTS_LOAD_EXITS,
    ACTS_LOAD_HANGS,
};

#endif
