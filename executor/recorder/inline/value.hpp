// What the candidate's C++ and the interpreter hand each other, how failures are told, and how
// texts are made. The other headers here stand on this one. They give the names of PyTorch's C++
// interface that kernels' host functions use, and none of its code: whatever is more than reading
// what a tensor is like is done by the interpreter (executor/recorder/inline.py), which has the same
// structures. Include nothing here that takes long to parse; that is what these headers are for.
#pragma once
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#define KCAST_BOTH __host__ __device__ inline
#else
#define KCAST_BOTH inline
#endif

namespace kcast {

enum Kind : int32_t {
    NONE,
    BOOL,
    INT,
    FLOAT,
    TEXT,
    TENSOR,
    LIST,
    INTS,
    TENSORS,
    DTYPE,
    DEVICE,
    FORMAT
};

// A tensor as the interpreter describes it; its memory is the interpreter's, and stays until
// Host::release. references: of the objects here that mean it.
struct Described {
    int64_t id, references;
    void *data;
    int64_t dim;
    const int64_t *sizes, *strides; // strides in elements
    int32_t dtype, device, index, element; // ScalarType, DeviceType, which device, bytes
};

// One value. bits: i of BOOL, INT, DTYPE, FORMAT and DEVICE (its index; count is its type); f; p is
// text of count bytes, a Described, or of these count: values, int64_t, addresses of Described.
struct Value {
    int32_t kind, is_tuple; // is_tuple: a list that is one
    int64_t count;
    union {
        int64_t i;
        double f;
        const void *p;
    };
    const char *keyword; // NULL: by its place
};

// What the interpreter offers.
struct Host {
    // Calls a method (".name", of the first value) or a function of torch. Returns 0, and *ret,
    // which lies there until the next call; or 1, and why it failed as a text in *ret.
    int (*call)(const char *name, const Value *values, int64_t count, Value *ret);
    void (*release)(int64_t id);
    // The end of a function: its result, or which exception of Python's to raise and its text.
    void (*give)(const Value *result);
    void (*fail)(const char *kind, const char *text);
};

inline const Host *host = nullptr;

} // namespace kcast

namespace c10 {

class Error : public std::exception {
    std::string text;

  public:
    explicit Error(std::string what) : text(std::move(what)) {}
    const char *what() const noexcept override { return text.c_str(); }
    const char *what_without_backtrace() const noexcept { return text.c_str(); }
    const std::string &msg() const { return text; }
    virtual const char *python_name() const { return "RuntimeError"; }
};

#define KCAST_ERROR(name, python)                                                                  \
    class name : public c10::Error {                                                               \
      public:                                                                                      \
        using Error::Error;                                                                        \
        const char *python_name() const override { return python; }                                \
    };
KCAST_ERROR(IndexError, "IndexError")
KCAST_ERROR(ValueError, "ValueError")
KCAST_ERROR(TypeError, "TypeError")
KCAST_ERROR(NotImplementedError, "NotImplementedError")

} // namespace c10

namespace kcast {

// What the interpreter has raised, and will raise again.
KCAST_ERROR(Raised, nullptr)

// Types of ours have an overload of append_text beside them.
inline void append_text(std::string &out, const std::string &text) { out += text; }
inline void append_text(std::string &out, const char *text) { out += text ? text : ""; }
inline void append_text(std::string &out, char one) { out += one; }

template <class T> std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>
append_text(std::string &out, T number)
{
    char text[64];

    if constexpr (std::is_floating_point_v<T>) {
        snprintf(text, sizeof(text), "%g", static_cast<double>(number));
    } else if constexpr (std::is_unsigned_v<T>) {
        snprintf(text, sizeof(text), "%llu", static_cast<unsigned long long>(number));
    } else {
        snprintf(text, sizeof(text), "%lld", static_cast<long long>(number));
    }
    out += text;
}

inline void append_text(std::string &out, const void *at)
{
    char text[32];

    snprintf(text, sizeof(text), "%p", at);
    out += text;
}

template <class... T> std::string text_of(const T &...part)
{
    std::string out;

    (append_text(out, part), ...);
    return out;
}

// The text of a check that failed.
template <class... T> std::string failure(const char *condition, const T &...part)
{
    if constexpr (sizeof...(part) == 0) {
        return text_of("Expected ", condition, " to be true, but got false.");
    } else {
        return text_of(part...);
    }
}

} // namespace kcast

namespace c10 {
template <class... T> std::string str(const T &...part) { return kcast::text_of(part...); }
} // namespace c10

#define KCAST_CHECK(error, condition, ...)                                                         \
    if (__builtin_expect(!(condition), 0)) {                                                       \
        throw ::c10::error(::kcast::failure(#condition, ##__VA_ARGS__));                           \
    }
#define TORCH_CHECK(condition, ...) KCAST_CHECK(Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) KCAST_CHECK(IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) KCAST_CHECK(ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) KCAST_CHECK(TypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...)                                                \
    KCAST_CHECK(NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) KCAST_CHECK(Error, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...)
#define AT_ASSERT(condition, ...) KCAST_CHECK(Error, condition, ##__VA_ARGS__)
#define AT_ASSERTM(condition, ...) KCAST_CHECK(Error, condition, ##__VA_ARGS__)
#define AT_ERROR(...) KCAST_CHECK(Error, false, ##__VA_ARGS__)
#define TORCH_WARN(...) fprintf(stderr, "%s\n", ::kcast::text_of(__VA_ARGS__).c_str())
#define TORCH_WARN_ONCE(...) TORCH_WARN(__VA_ARGS__)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define C10_HOST_DEVICE KCAST_HOST_DEVICE
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#ifdef __CUDACC__
#define KCAST_HOST_DEVICE __host__ __device__
#define C10_HOST __host__
#define C10_DEVICE __device__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define KCAST_HOST_DEVICE
#define C10_HOST
#define C10_DEVICE
#endif
