// Reading a recording: what a source with host code of its own has launched, case by case. It
// comes out of a process in which the source has run, so nothing in it is true until it has been
// checked. executor/gpu/record and executor/gpu/program use it. Pure.
#ifndef EXECUTOR_GPU_PROGRAM_RECORDING_H
#define EXECUTOR_GPU_PROGRAM_RECORDING_H

#include "common/err.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/recorded.h"

#define RECORDING_BYTES_MAX ((uint64_t)64 << 30) // of the memory of a case, with what lies between
#define RECORDING_ALIGN ((uint64_t)256)          // blocks of memory begin at multiples of it
#define RECORDING_IMAGES_MAX ((size_t)128 << 20) // bytes of all images together, unpacked

// Checks everything that does not need a GPU: that the base is one of those that recordings have,
// numbers of images, contents and nodes, names and extents of launches, places of blocks, of their
// pieces and of results, and that images are as long as they say, because a driver is not told how
// long they are. A reference's has an expected value and an error scale of every output, and no
// other recording has those. A recording that passes can be replayed without reading or writing
// memory of the host that is not its own. What its kernels do on the GPU is theirs, as with any
// candidate. ERR_INVALID says what is wrong, in words that are printable.
MUST_CHECK int recording_check(const struct cuda_recording *recording,
                               const struct problem *problem, enum manifest_role role,
                               struct err *err);
// Packs the images, for an object. They must not be packed.
void recording_pack_images(struct cuda_recording *recording);
// Unpacks those that are packed. ERR_INVALID when one is damaged, ERR_LIMIT when they are larger
// than RECORDING_IMAGES_MAX.
MUST_CHECK int recording_unpack_images(struct cuda_recording *recording, struct err *err);
// Returns the case with these values of the parameters, NULL when there is none. Those that are no
// integers count where the recording has them.
const struct recorded_case *recording_find(const struct cuda_recording *recording,
                                           const struct problem *problem,
                                           const struct shape_case *shape);
// Whether all of the range lies in one block of the case.
bool recording_holds(const struct recorded_case *of, uint64_t at, uint64_t bytes);

#endif
