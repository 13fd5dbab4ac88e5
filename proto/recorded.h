// Words of a recording (recorded_node in proto/exec.def), which the process that records and the
// one that replays share.
#ifndef PROTO_RECORDED_H
#define PROTO_RECORDED_H

enum recorded_kind {
    RECORDED_KERNEL = 1,
    RECORDED_FILL = 2, // memory is filled with a value
    RECORDED_COPY = 3, // from device memory to device memory
};

enum recorded_flag {
    RECORDED_COOPERATIVE = 1,
    RECORDED_PDL = 2, // it may begin before the launch before it has ended
};

#define RECORDED_SHAPE 9 // numbers of a kernel's shape: grid, block and cluster

#endif
